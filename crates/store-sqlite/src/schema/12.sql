-- Version 12: large events and snapshots are stored compressed. The text column of such a row is empty.
-- Older rows stay as they are.
ALTER TABLE events ADD COLUMN compressed BLOB;
ALTER TABLE snapshots ADD COLUMN compressed BLOB;
