-- Version 2: subscriptions to events, and the log of their deliveries.

CREATE TABLE webhooks (
    webhook     TEXT    NOT NULL PRIMARY KEY,
    tenant      TEXT    NOT NULL,
    body        TEXT    NOT NULL,
    health      TEXT,
    last_number INTEGER NOT NULL DEFAULT 0,
    dropped     INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE INDEX webhooks_by_tenant ON webhooks (tenant);

-- `due` is set while the delivery is pending.
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
