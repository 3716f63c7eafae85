-- Version 9. Effects wait in lanes, by class of work, tenant and target. Failed work is rescheduled
-- and finally parked.

CREATE TABLE waiting_effects (
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
    parked       INTEGER NOT NULL DEFAULT 0,
    CHECK ((owner IS NULL) = (leased_until IS NULL))
) STRICT;

INSERT INTO waiting_effects
    (entry_no, effect, stream, kind, body, class, tenant, available_at, attempts, owner, leased_until)
SELECT entry_no, effect, stream, kind, body,
       CASE WHEN kind IN ('continue', 'notify_parent', 'cancel_child') THEN 0
            WHEN kind IN ('webhook', 'announce') THEN 2
            ELSE 1 END,
       coalesce((SELECT r.tenant FROM runs r
                 WHERE r.run_id = substr(outbox.stream, 5) AND outbox.stream LIKE 'run:%'),
                (SELECT w.tenant FROM webhooks w
                 WHERE w.webhook = outbox.body AND outbox.kind = 'webhook'), ''),
       available_at, attempts, owner, leased_until
FROM outbox;

DROP TABLE outbox;
ALTER TABLE waiting_effects RENAME TO outbox;

-- An entry is in exactly one of these: it waits in its lane, is leased, or is parked.
CREATE INDEX outbox_by_lane ON outbox (class, tenant, target, available_at)
    WHERE owner IS NULL AND parked = 0;
CREATE INDEX outbox_leased  ON outbox (leased_until) WHERE owner IS NOT NULL;
CREATE INDEX outbox_parked  ON outbox (stream) WHERE parked = 1;
-- When the next waiting entry is due, over all lanes.
CREATE INDEX outbox_by_due  ON outbox (available_at) WHERE owner IS NULL AND parked = 0;

-- A timer that failed is due at its next attempt; a parked one at the maximum time.
ALTER TABLE timers ADD COLUMN failures  INTEGER NOT NULL DEFAULT 0;
ALTER TABLE timers ADD COLUMN error     TEXT;
ALTER TABLE timers ADD COLUMN failed_at INTEGER;
