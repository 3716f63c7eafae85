-- The schema of a new file, in one step: what all scripts together leave behind, as SQLite stores it. A
-- test compares the two and prints this text.

CREATE TABLE streams (
    stream    TEXT    NOT NULL PRIMARY KEY,
    stream_no INTEGER NOT NULL,
    head      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshots (
    stream_no INTEGER PRIMARY KEY,
    seq       INTEGER NOT NULL,
    format    INTEGER NOT NULL,
    body      TEXT    NOT NULL
, compressed BLOB) STRICT;

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
, tombstone TEXT) STRICT;

CREATE INDEX runs_by_tenant    ON runs (tenant);

CREATE INDEX runs_by_status    ON runs (tenant, status);

CREATE INDEX runs_by_workflow  ON runs (tenant, workflow_id);

CREATE INDEX runs_by_workspace ON runs (tenant, workspace) WHERE workspace IS NOT NULL;

CREATE INDEX runs_by_parent    ON runs (tenant, parent)    WHERE parent IS NOT NULL;

CREATE TABLE interrupts (
    position   INTEGER PRIMARY KEY,
    interrupt  TEXT    NOT NULL UNIQUE,
    stream     TEXT    NOT NULL,
    step       TEXT    NOT NULL,
    tenant     TEXT    NOT NULL,
    workspace  TEXT,
    kind       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    deadline   INTEGER,
    closed     TEXT,
    body       TEXT    NOT NULL
, priority INTEGER NOT NULL DEFAULT 0, groups TEXT NOT NULL DEFAULT '[]') STRICT;

CREATE INDEX interrupts_by_tenant ON interrupts (tenant);

CREATE TABLE timers (
    stream TEXT    NOT NULL,
    key    TEXT    NOT NULL,
    due    INTEGER NOT NULL, failures  INTEGER NOT NULL DEFAULT 0, error     TEXT, failed_at INTEGER, tenant TEXT,
    PRIMARY KEY (stream, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX timers_by_due ON timers (due);

CREATE TABLE idempotency (
    answer_no   INTEGER PRIMARY KEY,
    key         TEXT    NOT NULL UNIQUE,
    digest      TEXT    NOT NULL,
    status      INTEGER NOT NULL,
    body        TEXT    NOT NULL,
    recorded_at INTEGER NOT NULL
, session TEXT) STRICT;

CREATE TABLE definitions (
    hash     TEXT NOT NULL PRIMARY KEY,
    document TEXT NOT NULL
) STRICT;

CREATE TABLE registry (
    tenant        TEXT,
    workflow      TEXT    NOT NULL,
    hash          TEXT    NOT NULL REFERENCES definitions (hash),
    registered_at INTEGER NOT NULL
, workspace TEXT) STRICT;

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
, made_by TEXT, rotates TEXT, agent TEXT) STRICT;

CREATE TABLE heartbeat (
    id    INTEGER PRIMARY KEY CHECK (id = 0),
    beats INTEGER NOT NULL
) STRICT;

CREATE TABLE webhooks (
    webhook     TEXT    NOT NULL PRIMARY KEY,
    tenant      TEXT    NOT NULL,
    body        TEXT    NOT NULL,
    health      TEXT,
    last_number INTEGER NOT NULL DEFAULT 0,
    dropped     INTEGER NOT NULL DEFAULT 0
, feed_start INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;

CREATE INDEX webhooks_by_tenant ON webhooks (tenant);

CREATE TABLE webhook_deliveries (
    webhook    TEXT    NOT NULL,
    number     INTEGER NOT NULL,
    run_id     TEXT    NOT NULL,
    seq        INTEGER NOT NULL,
    event_type TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    state      TEXT    NOT NULL,
    due        INTEGER,
    attempts   INTEGER NOT NULL,
    last_at    INTEGER,
    outcome    TEXT,
    PRIMARY KEY (webhook, number),
    CHECK ((state = 'pending') = (due IS NOT NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX webhook_deliveries_by_due ON webhook_deliveries (webhook, due)
    WHERE due IS NOT NULL;

CREATE TABLE inbox (
    tenant    TEXT    NOT NULL,
    workspace TEXT    NOT NULL,
    kind      TEXT    NOT NULL,
    grp       TEXT    NOT NULL,
    position  INTEGER NOT NULL,
    due       INTEGER NOT NULL,
    urgency   INTEGER NOT NULL,
    PRIMARY KEY (tenant, workspace, kind, grp, position)
) STRICT, WITHOUT ROWID;

CREATE INDEX inbox_by_due     ON inbox (tenant, workspace, kind, grp, due, position);

CREATE INDEX inbox_by_urgency ON inbox (tenant, workspace, kind, grp, urgency, position);

CREATE INDEX inbox_of         ON inbox (position);

CREATE TABLE audit (
    seq  INTEGER PRIMARY KEY,
    body TEXT    NOT NULL
) STRICT;

CREATE TABLE audit_head (
    id   INTEGER PRIMARY KEY CHECK (id = 0),
    seq  INTEGER NOT NULL,
    hash BLOB    NOT NULL CHECK (length(hash) = 32)
) STRICT;

CREATE TABLE audit_checkpoints (
    at_sequence INTEGER PRIMARY KEY,
    id          TEXT    NOT NULL UNIQUE,
    merkle_root TEXT    NOT NULL,
    signature   TEXT    NOT NULL
) STRICT;

CREATE INDEX audit_decisions ON audit (json_extract(body, '$.target'))
    WHERE substr(body, 1, 29) = '{"action":"interrupt.resolve"';

CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;

CREATE TRIGGER audit_is_not_removed BEFORE DELETE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;

CREATE TRIGGER audit_head_is_not_removed BEFORE DELETE ON audit_head
    BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;

CREATE TRIGGER audit_head_only_advances BEFORE UPDATE ON audit_head WHEN NEW.seq <= OLD.seq
    BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;

CREATE TRIGGER audit_checkpoint_is_not_changed BEFORE UPDATE ON audit_checkpoints
    BEGIN SELECT RAISE(ABORT, 'checkpoints are not changed'); END;

CREATE TRIGGER audit_checkpoint_is_not_removed BEFORE DELETE ON audit_checkpoints
    BEGIN SELECT RAISE(ABORT, 'checkpoints are not removed'); END;

CREATE TABLE groups (
    tenant     TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    members    TEXT    NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE delegations (
    tenant         TEXT    NOT NULL,
    id             TEXT    NOT NULL,
    from_principal TEXT    NOT NULL,
    to_principal   TEXT    NOT NULL,
    starts_at      INTEGER NOT NULL,
    ends_at        INTEGER NOT NULL,
    created_at     INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

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

CREATE INDEX memory_by_scope ON memory (tenant, scope, memory_ref, key);

CREATE INDEX memory_by_run   ON memory (run_id, memory_ref, key);

CREATE TABLE memory_joins (
    run_id TEXT    NOT NULL,
    seq    INTEGER NOT NULL,
    child  TEXT    NOT NULL,
    PRIMARY KEY (run_id, seq, child)
) STRICT, WITHOUT ROWID;

CREATE INDEX runs_by_end ON runs (ended_at) WHERE ended_at IS NOT NULL AND tombstone IS NULL;

CREATE TABLE memory_present (
    tenant     TEXT    NOT NULL,
    scope      TEXT    NOT NULL,
    memory_ref TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    position   INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (tenant, scope, memory_ref, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX memory_present_by_expiry ON memory_present (tenant, scope, memory_ref, expires_at)
    WHERE expires_at IS NOT NULL;

CREATE TRIGGER memory_written AFTER INSERT ON memory WHEN NEW.body IS NOT NULL
BEGIN
    -- Remove entries that have expired.
    DELETE FROM memory_present
    WHERE tenant = NEW.tenant AND scope = NEW.scope AND memory_ref = NEW.memory_ref
        AND expires_at IS NOT NULL AND expires_at <= NEW.body ->> '$.written_at';
    INSERT OR REPLACE INTO memory_present
    VALUES (NEW.tenant, NEW.scope, NEW.memory_ref, NEW.key, NEW.position,
            NEW.body ->> '$.expires_at');
END;

CREATE TRIGGER memory_taken_out AFTER INSERT ON memory WHEN NEW.body IS NULL
BEGIN
    DELETE FROM memory_present
    WHERE tenant = NEW.tenant AND scope = NEW.scope AND memory_ref = NEW.memory_ref
        AND key = NEW.key;
END;

CREATE TABLE "events" (
    place  INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    bodies TEXT    NOT NULL
, compressed BLOB) STRICT;

CREATE TABLE "outbox" (
    entry_no     INTEGER PRIMARY KEY,
    effect       TEXT    NOT NULL UNIQUE,
    stream       TEXT    NOT NULL,
    kind         TEXT    NOT NULL,
    body         TEXT    NOT NULL,
    -- 0 internal, 1 call to the outside, 2 delivery (webhook or callback).
    class        INTEGER NOT NULL DEFAULT 1,
    tenant       TEXT    NOT NULL DEFAULT '',
    target       TEXT    NOT NULL DEFAULT '',
    available_at INTEGER NOT NULL,
    attempts     INTEGER NOT NULL,
    owner        TEXT,
    leased_until INTEGER,
    failures     INTEGER NOT NULL DEFAULT 0,
    error        TEXT,
    failed_at    INTEGER,
    parked       INTEGER NOT NULL DEFAULT 0, lease_no INTEGER, order_key TEXT, order_no  INTEGER, held      INTEGER NOT NULL DEFAULT 0,
    CHECK ((owner IS NULL) = (leased_until IS NULL))
) STRICT;

CREATE INDEX outbox_leased  ON outbox (leased_until) WHERE owner IS NOT NULL;

CREATE INDEX outbox_parked  ON outbox (stream) WHERE parked = 1;

CREATE UNIQUE INDEX registry_own ON registry (tenant, workflow)
    WHERE tenant IS NOT NULL AND workspace IS NULL;

CREATE UNIQUE INDEX registry_of_workspace ON registry (tenant, workspace, workflow)
    WHERE workspace IS NOT NULL;

CREATE INDEX runs_by_scope ON runs (tenant, scope, workspace)
    WHERE scope IS NOT NULL AND status NOT IN ('completed', 'failed', 'cancelled');

CREATE TABLE epochs (
    data    INTEGER PRIMARY KEY,
    changes INTEGER NOT NULL
);

CREATE TABLE task_leases (
    task         TEXT PRIMARY KEY,
    owner        TEXT NOT NULL,
    leased_until INTEGER NOT NULL
) WITHOUT ROWID;

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

CREATE INDEX interrupts_by_stream ON interrupts (stream);

CREATE INDEX outbox_by_lane  ON outbox (class, tenant, target, available_at)
    WHERE owner IS NULL AND parked = 0 AND held = 0;

CREATE INDEX outbox_by_due   ON outbox (available_at)
    WHERE owner IS NULL AND parked = 0 AND held = 0;

CREATE INDEX outbox_by_order ON outbox (tenant, order_key, order_no) WHERE order_key IS NOT NULL;

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

CREATE TABLE chat_user_lists (
    tenant  TEXT NOT NULL,
    agent   TEXT NOT NULL,
    tag     TEXT NOT NULL,
    user_id TEXT NOT NULL,
    PRIMARY KEY (tenant, agent, tag, user_id)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE escalation_lists (
    tenant    TEXT    NOT NULL,
    workspace TEXT    NOT NULL,
    list      TEXT    NOT NULL,
    status    TEXT    NOT NULL,
    position  INTEGER NOT NULL,
    PRIMARY KEY (tenant, workspace, list, status, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE agent_logs (
    tenant TEXT    NOT NULL,
    agent  TEXT    NOT NULL,
    head   INTEGER NOT NULL,
    PRIMARY KEY (tenant, agent)
) STRICT, WITHOUT ROWID;

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

CREATE INDEX idempotency_by_age     ON idempotency (recorded_at) WHERE session IS NULL;

CREATE INDEX idempotency_by_session ON idempotency (session)     WHERE session IS NOT NULL;

CREATE TABLE test_records (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    kind     TEXT NOT NULL,
    agent    TEXT NOT NULL,
    address  TEXT NOT NULL,
    key      TEXT,
    body     TEXT NOT NULL
) STRICT;

CREATE INDEX test_records_by_kind ON test_records (kind);

CREATE TABLE proxies (
    position         INTEGER PRIMARY KEY AUTOINCREMENT,
    proxy_id         TEXT    NOT NULL UNIQUE,
    session_id       TEXT    NOT NULL,
    tenant           TEXT    NOT NULL,
    workspace        TEXT,
    agent            TEXT    NOT NULL,
    user_external_id TEXT    NOT NULL,
    transport        TEXT    NOT NULL,
    address          TEXT    NOT NULL,
    short_id         TEXT    NOT NULL,
    status           TEXT    NOT NULL,
    started_at       INTEGER NOT NULL,
    body             TEXT    NOT NULL
) STRICT;

CREATE INDEX proxies_by_session ON proxies (session_id);

CREATE INDEX proxies_by_desk ON proxies (tenant, agent, transport, address, status, position);

CREATE INDEX proxies_by_short_id ON proxies (tenant, agent, transport, address, short_id, position);

CREATE TABLE proxy_lists (
    tenant    TEXT    NOT NULL,
    workspace TEXT    NOT NULL,
    list      TEXT    NOT NULL,
    status    TEXT    NOT NULL,
    position  INTEGER NOT NULL,
    PRIMARY KEY (tenant, workspace, list, status, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE proxy_messages (
    tenant     TEXT NOT NULL,
    agent      TEXT NOT NULL,
    transport  TEXT NOT NULL,
    address    TEXT NOT NULL,
    message_id TEXT NOT NULL,
    proxy_id   TEXT NOT NULL,
    PRIMARY KEY (tenant, agent, transport, address, message_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX proxy_messages_by_proxy ON proxy_messages (proxy_id);

CREATE TABLE schedules (
    position         INTEGER PRIMARY KEY AUTOINCREMENT,
    schedule_id      TEXT    NOT NULL UNIQUE,
    tenant           TEXT    NOT NULL,
    workspace        TEXT,
    agent            TEXT    NOT NULL,
    flow             TEXT    NOT NULL,
    status           TEXT    NOT NULL,
    target_kind      TEXT    NOT NULL,
    user_external_id TEXT,
    campaign         TEXT,
    body             TEXT    NOT NULL
) STRICT;

CREATE INDEX schedules_by_tenant ON schedules (tenant, position);

CREATE INDEX schedules_by_agent ON schedules (tenant, agent, position);

CREATE INDEX schedules_by_user ON schedules (tenant, user_external_id, position)
WHERE user_external_id IS NOT NULL;

CREATE INDEX schedules_by_configuration ON schedules (tenant, position)
WHERE schedule_id >= 'cfg:' AND schedule_id < 'cfg;';

CREATE TABLE schedule_runs (
    run_id        TEXT    NOT NULL PRIMARY KEY,
    schedule_id   TEXT    NOT NULL,
    tenant        TEXT    NOT NULL,
    scheduled_for INTEGER NOT NULL,
    body          TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX schedule_runs_by_schedule ON schedule_runs (schedule_id, scheduled_for, run_id);

CREATE TABLE schedule_recipients (
    run_id  TEXT    NOT NULL,
    ordinal INTEGER NOT NULL,
    body    TEXT    NOT NULL,
    PRIMARY KEY (run_id, ordinal)
) STRICT, WITHOUT ROWID;

INSERT INTO heartbeat VALUES (0, 0);
