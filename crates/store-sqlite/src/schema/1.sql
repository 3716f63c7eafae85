-- Version 1. Never edited once released; a change is a new file.
--
-- Streams have a short number, so that events sort by it: streams are created in time order and the
-- table grows at its end. Text ids are uuid v7 for the same reason.

CREATE TABLE streams (
    stream    TEXT    NOT NULL PRIMARY KEY,
    stream_no INTEGER NOT NULL,
    head      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    stream_no INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    body      TEXT    NOT NULL,
    PRIMARY KEY (stream_no, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshots (
    stream_no INTEGER PRIMARY KEY,
    seq       INTEGER NOT NULL,
    format    INTEGER NOT NULL,
    body      TEXT    NOT NULL
) STRICT;

-- `position` is the order of creation. Rows are never deleted, so it is never reused.
CREATE TABLE runs (
    position    INTEGER PRIMARY KEY,
    run_id      TEXT    NOT NULL UNIQUE,
    tenant      TEXT    NOT NULL,
    workspace   TEXT,
    workflow_id TEXT    NOT NULL,
    definition  TEXT    NOT NULL,
    status      TEXT    NOT NULL,
    parent      TEXT,
    scope       TEXT,
    created_at  INTEGER NOT NULL,
    ended_at    INTEGER,
    error_code  TEXT
) STRICT;

-- Each ends in `position`, as every index does, and so gives a listing in its order.
CREATE INDEX runs_by_tenant    ON runs (tenant);
CREATE INDEX runs_by_status    ON runs (tenant, status);
CREATE INDEX runs_by_workflow  ON runs (tenant, workflow_id);
CREATE INDEX runs_by_workspace ON runs (tenant, workspace) WHERE workspace IS NOT NULL;
CREATE INDEX runs_by_parent    ON runs (tenant, parent)    WHERE parent IS NOT NULL;
CREATE INDEX runs_by_scope     ON runs (tenant, scope)
    WHERE scope IS NOT NULL AND status NOT IN ('completed', 'failed', 'cancelled');

-- The inbox: every question, with its outcome.
CREATE TABLE interrupts (
    position   INTEGER PRIMARY KEY,
    interrupt  TEXT    NOT NULL UNIQUE,
    run_id     TEXT    NOT NULL,
    node       TEXT    NOT NULL,
    tenant     TEXT    NOT NULL,
    workspace  TEXT,
    kind       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    deadline   INTEGER,
    closed     TEXT,
    body       TEXT    NOT NULL
) STRICT;

CREATE INDEX interrupts_by_tenant ON interrupts (tenant);
CREATE INDEX interrupts_by_run    ON interrupts (tenant, run_id);
CREATE INDEX interrupts_open      ON interrupts (tenant) WHERE closed IS NULL;

CREATE TABLE timers (
    stream TEXT    NOT NULL,
    key    TEXT    NOT NULL,
    due    INTEGER NOT NULL,
    PRIMARY KEY (stream, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX timers_by_due ON timers (due);

-- A leased entry is due when its lease expires.
CREATE TABLE outbox (
    entry_no     INTEGER PRIMARY KEY,
    effect       TEXT    NOT NULL UNIQUE,
    stream       TEXT    NOT NULL,
    kind         TEXT    NOT NULL,
    body         TEXT    NOT NULL,
    available_at INTEGER NOT NULL,
    attempts     INTEGER NOT NULL,
    owner        TEXT,
    leased_until INTEGER,
    due_at       INTEGER NOT NULL AS (coalesce(leased_until, available_at)) VIRTUAL,
    CHECK ((owner IS NULL) = (leased_until IS NULL))
) STRICT;

CREATE INDEX outbox_by_due ON outbox (due_at);

-- Keys are hashes in random order, so they have a small index of their own and the responses are
-- appended.
CREATE TABLE idempotency (
    answer_no   INTEGER PRIMARY KEY,
    key         TEXT    NOT NULL UNIQUE,
    digest      TEXT    NOT NULL,
    status      INTEGER NOT NULL,
    body        TEXT    NOT NULL,
    recorded_at INTEGER NOT NULL
) STRICT;

CREATE INDEX idempotency_by_age ON idempotency (recorded_at);

CREATE TABLE definitions (
    hash     TEXT NOT NULL PRIMARY KEY,
    document TEXT NOT NULL
) STRICT;

-- No tenant: visible to every tenant.
CREATE TABLE registry (
    tenant        TEXT,
    workflow      TEXT    NOT NULL,
    hash          TEXT    NOT NULL REFERENCES definitions (hash),
    registered_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX registry_own    ON registry (tenant, workflow) WHERE tenant IS NOT NULL;
CREATE UNIQUE INDEX registry_shared ON registry (workflow)         WHERE tenant IS NULL;

CREATE TABLE settings (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE keys (
    key_id     TEXT    NOT NULL PRIMARY KEY,
    hash       TEXT    NOT NULL UNIQUE,
    name       TEXT    NOT NULL,
    tenant     TEXT    NOT NULL,
    workspace  TEXT,
    principal  TEXT    NOT NULL,
    scopes     TEXT    NOT NULL,
    roles      TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT;

-- Written by the readiness check.
CREATE TABLE heartbeat (
    id    INTEGER PRIMARY KEY CHECK (id = 0),
    beats INTEGER NOT NULL
) STRICT;

INSERT INTO heartbeat VALUES (0, 0);
