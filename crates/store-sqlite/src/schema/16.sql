-- Version 16: which key made a key, and which key it takes the place of. Keys of earlier versions do not tell.
ALTER TABLE keys ADD COLUMN made_by TEXT;
ALTER TABLE keys ADD COLUMN rotates TEXT;
