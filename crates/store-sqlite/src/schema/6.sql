-- Version 6: memory, and tombstones of purged runs.

-- Every write to every memory scope; `position` is the order of writing. An entry is never changed:
-- the newest write of a key counts, and one without a body deletes the key.
CREATE TABLE memory (
    position   INTEGER PRIMARY KEY,
    tenant     TEXT    NOT NULL,
    scope      TEXT    NOT NULL,
    memory_ref TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    run_id     TEXT    NOT NULL,
    seq        INTEGER NOT NULL,
    body       TEXT
) STRICT;

-- Both end in `position`, as every index does: the newest write of a key at or before any position
-- is one lookup.
CREATE INDEX memory_by_scope ON memory (tenant, scope, memory_ref, key);
CREATE INDEX memory_by_run   ON memory (run_id, memory_ref, key);

CREATE TABLE memory_joins (
    run_id TEXT    NOT NULL,
    seq    INTEGER NOT NULL,
    child  TEXT    NOT NULL,
    PRIMARY KEY (run_id, seq, child)
) STRICT, WITHOUT ROWID;

-- The events of a run with a tombstone are deleted.
ALTER TABLE runs ADD COLUMN tombstone TEXT;

CREATE INDEX runs_by_end ON runs (ended_at) WHERE ended_at IS NOT NULL AND tombstone IS NULL;
