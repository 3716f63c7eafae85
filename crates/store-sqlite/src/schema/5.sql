-- Version 5: approver groups and delegations.

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
