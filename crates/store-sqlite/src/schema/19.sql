-- Version 19: schedules, their occurrences that were claimed, and the recipients of campaigns.
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
