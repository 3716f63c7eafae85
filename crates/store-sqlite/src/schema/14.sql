-- Version 14: timers, questions and outbox entries belong to streams of any machine, and outbox entries
-- can have an order.

ALTER TABLE timers ADD COLUMN tenant TEXT;
UPDATE timers SET tenant = (SELECT r.tenant FROM runs r WHERE r.run_id = substr(timers.stream, 5))
WHERE stream LIKE 'run:%';

DROP INDEX interrupts_by_run;
ALTER TABLE interrupts RENAME COLUMN run_id TO stream;
ALTER TABLE interrupts RENAME COLUMN node TO step;
UPDATE interrupts SET stream = 'run:' || stream;
CREATE INDEX interrupts_by_stream ON interrupts (stream);

-- Entries with the same order key are leased one at a time. `held` is 1 while another is before it.
ALTER TABLE outbox ADD COLUMN order_key TEXT;
ALTER TABLE outbox ADD COLUMN order_no  INTEGER;
ALTER TABLE outbox ADD COLUMN held      INTEGER NOT NULL DEFAULT 0;

-- An entry is in exactly one of these: it waits in its lane, is leased, is parked, or is held.
DROP INDEX outbox_by_lane;
DROP INDEX outbox_by_due;
CREATE INDEX outbox_by_lane  ON outbox (class, tenant, target, available_at)
    WHERE owner IS NULL AND parked = 0 AND held = 0;
CREATE INDEX outbox_by_due   ON outbox (available_at)
    WHERE owner IS NULL AND parked = 0 AND held = 0;
CREATE INDEX outbox_by_order ON outbox (tenant, order_key, order_no) WHERE order_key IS NOT NULL;
