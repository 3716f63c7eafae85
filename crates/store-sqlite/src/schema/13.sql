-- Version 13: what several processes on one store need.

-- A lease has a number, so that a process cannot confuse a lease it lost with one it took later.
ALTER TABLE outbox ADD COLUMN lease_no INTEGER;

-- How often each kind of cached data was changed.
CREATE TABLE epochs (
    data    INTEGER PRIMARY KEY,
    changes INTEGER NOT NULL
);

-- Holders of tasks that one process at a time does.
CREATE TABLE task_leases (
    task         TEXT PRIMARY KEY,
    owner        TEXT NOT NULL,
    leased_until INTEGER NOT NULL
) WITHOUT ROWID;
