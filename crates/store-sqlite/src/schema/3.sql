-- Version 3. The inbox can be read by deadline, priority, kind and group. The cost of a page
-- depends only on its size.

ALTER TABLE interrupts ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
-- Names of approver groups as a JSON list.
ALTER TABLE interrupts ADD COLUMN groups TEXT NOT NULL DEFAULT '[]';

-- Open questions, one row for every filter that includes them: '' means any. `due` sorts those
-- without a deadline last, `urgency` the most urgent first.
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

-- Replaced by the table `inbox`.
DROP INDEX interrupts_open;

INSERT INTO inbox
SELECT q.tenant, w.workspace, k.kind, '', q.position, coalesce(q.deadline, 9223372036854775807), 0
FROM interrupts q
JOIN (SELECT position, '' AS workspace FROM interrupts
      UNION SELECT position, workspace FROM interrupts WHERE workspace IS NOT NULL) w
  ON w.position = q.position
JOIN (SELECT position, '' AS kind FROM interrupts UNION SELECT position, kind FROM interrupts) k
  ON k.position = q.position
WHERE q.closed IS NULL;
