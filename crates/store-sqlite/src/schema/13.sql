-- Version 13: what several processes on one store need, and webhook deliveries that are derived from a
-- feed.

-- A process cannot confuse a lease that it lost with one that it took later.
ALTER TABLE outbox ADD COLUMN lease_no INTEGER;

-- How often each kind of cached data was changed.
CREATE TABLE epochs (
    data    INTEGER PRIMARY KEY,
    changes INTEGER NOT NULL
);

-- Holders of tasks that one process at a time does.
CREATE TABLE task_leases (
    task         TEXT PRIMARY KEY,
    owner        TEXT NOT NULL,
    leased_until INTEGER NOT NULL
) WITHOUT ROWID;

-- The commit of an event adds one row to its tenant's webhook feed. Later commits expand the feed to
-- deliveries. Deliveries of earlier versions stay pending in `webhook_deliveries`.
-- A chunk of rows is expanded for one subscription after the other, in order of their ids.
-- `chunk_end` is the last row of the chunk under way, `through` the last subscription done.
CREATE TABLE webhook_feeds (
    tenant    TEXT    NOT NULL PRIMARY KEY,
    head      INTEGER NOT NULL,
    chunk_end INTEGER,
    through   TEXT,
    CHECK ((chunk_end IS NULL) = (through IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TABLE webhook_feed_rows (
    tenant   TEXT    NOT NULL,
    position INTEGER NOT NULL,
    body     TEXT    NOT NULL,
    PRIMARY KEY (tenant, position)
) STRICT, WITHOUT ROWID;

-- A subscription receives rows after this position. Those of earlier versions receive all.
ALTER TABLE webhooks ADD COLUMN feed_start INTEGER NOT NULL DEFAULT 0;
