-- Version 15: conversations. All tables are projections, except `agent_log_ranges`, which has the
-- order of commits, and `test_records`.

CREATE TABLE chat_users (
    user_id          TEXT    NOT NULL PRIMARY KEY,
    tenant           TEXT    NOT NULL,
    agent            TEXT    NOT NULL,
    external_user_id TEXT    NOT NULL,
    created_at       INTEGER NOT NULL,
    last_active_at   INTEGER NOT NULL,
    tags             TEXT    NOT NULL,
    body             TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- One row for each tag of a user, and one with the empty tag. Derived from `chat_users`.
CREATE TABLE chat_user_lists (
    tenant  TEXT NOT NULL,
    agent   TEXT NOT NULL,
    tag     TEXT NOT NULL,
    user_id TEXT NOT NULL,
    PRIMARY KEY (tenant, agent, tag, user_id)
) STRICT, WITHOUT ROWID;

-- `position` is the order of creation.
CREATE TABLE sessions (
    position         INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id       TEXT    NOT NULL UNIQUE,
    tenant           TEXT    NOT NULL,
    workspace        TEXT,
    agent            TEXT    NOT NULL,
    user_id          TEXT    NOT NULL,
    user_external_id TEXT    NOT NULL,
    started_at       INTEGER NOT NULL,
    last_active_at   INTEGER NOT NULL,
    ended_at         INTEGER,
    body             TEXT    NOT NULL
) STRICT;

CREATE INDEX sessions_by_end ON sessions (ended_at, session_id) WHERE ended_at IS NOT NULL;

-- One row for each selection that shows a session; an empty text is any. `state`: 0 any, 1 active,
-- 2 ended. Derived from `sessions`.
CREATE TABLE session_lists (
    tenant           TEXT    NOT NULL,
    workspace        TEXT    NOT NULL,
    agent            TEXT    NOT NULL,
    user_external_id TEXT    NOT NULL,
    state            INTEGER NOT NULL,
    position         INTEGER NOT NULL,
    PRIMARY KEY (tenant, workspace, agent, user_external_id, state, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE escalations (
    position         INTEGER PRIMARY KEY AUTOINCREMENT,
    escalation_id    TEXT    NOT NULL UNIQUE,
    session_id       TEXT    NOT NULL,
    tenant           TEXT    NOT NULL,
    workspace        TEXT,
    agent            TEXT    NOT NULL,
    user_external_id TEXT    NOT NULL,
    status           TEXT    NOT NULL,
    priority         INTEGER NOT NULL,
    queue            TEXT,
    assignee         TEXT,
    created_at       INTEGER NOT NULL,
    deadline         INTEGER,
    body             TEXT    NOT NULL
) STRICT;

CREATE INDEX escalations_by_session ON escalations (session_id);

-- One row for each list that shows an escalation: all, those of a session, an agent, a queue, an
-- assignee or a priority, and those of nobody; of any status (empty) or of one. Derived from
-- `escalations`.
CREATE TABLE escalation_lists (
    tenant    TEXT    NOT NULL,
    workspace TEXT    NOT NULL,
    list      TEXT    NOT NULL,
    status    TEXT    NOT NULL,
    position  INTEGER NOT NULL,
    PRIMARY KEY (tenant, workspace, list, status, position)
) STRICT, WITHOUT ROWID;

-- Positions count the events of an agent. They are not reused, so the last one is stored.
CREATE TABLE agent_logs (
    tenant TEXT    NOT NULL,
    agent  TEXT    NOT NULL,
    head   INTEGER NOT NULL,
    PRIMARY KEY (tenant, agent)
) STRICT, WITHOUT ROWID;

-- The events of one append. A range is found by the position of its last event.
CREATE TABLE agent_log_ranges (
    tenant        TEXT    NOT NULL,
    agent         TEXT    NOT NULL,
    last_position INTEGER NOT NULL,
    stream        TEXT    NOT NULL,
    last_seq      INTEGER NOT NULL,
    events        INTEGER NOT NULL,
    PRIMARY KEY (tenant, agent, last_position)
) STRICT, WITHOUT ROWID;

CREATE INDEX agent_log_ranges_by_stream ON agent_log_ranges (stream);

-- Ids of received messages are kept as long as their session; other records expire by age.
ALTER TABLE idempotency ADD COLUMN session TEXT;
DROP INDEX idempotency_by_age;
CREATE INDEX idempotency_by_age     ON idempotency (recorded_at) WHERE session IS NULL;
CREATE INDEX idempotency_by_session ON idempotency (session)     WHERE session IS NOT NULL;

-- Written with test seams only.
CREATE TABLE test_records (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    kind     TEXT NOT NULL,
    agent    TEXT NOT NULL,
    address  TEXT NOT NULL,
    key      TEXT,
    body     TEXT NOT NULL
) STRICT;

CREATE INDEX test_records_by_kind ON test_records (kind);
