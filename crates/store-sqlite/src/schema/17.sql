-- Version 19: the one agent whose conversations a key reads and writes. Keys of earlier versions are bound to none.
ALTER TABLE keys ADD COLUMN agent TEXT;
