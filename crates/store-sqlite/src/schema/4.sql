-- Version 4: the audit log. Entries are chained by hash and never change; what is stored is what is hashed.

CREATE TABLE audit (
    seq  INTEGER PRIMARY KEY,
    body TEXT    NOT NULL
) STRICT;

-- The end of the chain, so that missing last entries are detected.
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

-- Decisions by question. An entry is canonical JSON, so it starts with its action; only entries of
-- decisions are parsed.
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
