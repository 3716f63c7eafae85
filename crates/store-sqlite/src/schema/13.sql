-- Version 13: a lease has a number, so that a process cannot confuse a lease it lost with one it took later.
ALTER TABLE outbox ADD COLUMN lease_no INTEGER;
