-- Version 12: large events and snapshots are stored compressed, as blobs. Older rows stay text;
-- nothing changes in the file until the first large row. Older programs cannot read such rows and
-- refuse the file.
SELECT 1;
