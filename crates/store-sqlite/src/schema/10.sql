-- Version 10: workspaces have their own workflows, and their own scopes for one live run.

ALTER TABLE registry ADD COLUMN workspace TEXT;

DROP INDEX registry_own;
CREATE UNIQUE INDEX registry_own ON registry (tenant, workflow)
    WHERE tenant IS NOT NULL AND workspace IS NULL;
CREATE UNIQUE INDEX registry_of_workspace ON registry (tenant, workspace, workflow)
    WHERE workspace IS NOT NULL;

DROP INDEX runs_by_scope;
CREATE INDEX runs_by_scope ON runs (tenant, scope, workspace)
    WHERE scope IS NOT NULL AND status NOT IN ('completed', 'failed', 'cancelled');
