-- Version 7: which keys a memory scope has now.

-- The newest write of every key that has a body. Deleted keys are not here, so that the cost of
-- counting depends on existing keys only. Triggers keep it up to date with the journal.
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

INSERT INTO memory_present
SELECT tenant, scope, memory_ref, key, position, body ->> '$.expires_at' FROM memory
WHERE body IS NOT NULL AND position IN (
    SELECT max(position) FROM memory INDEXED BY memory_by_scope
    GROUP BY tenant, scope, memory_ref, key);

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
