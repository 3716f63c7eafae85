-- Version 11: workspaces have their own memory.

-- What runs of a workspace wrote to a scope of the tenant belongs to the scope of the same name in
-- their workspace. '%' and '/' in the name of a workspace are escaped. The script is idempotent;
-- imports of older exports run it again.
CREATE TEMP TABLE of_workspaces AS
    SELECT run_id, 'workspace:' || replace(replace(workspace, '%', '%25'), '/', '%2F') AS prefix
    FROM runs WHERE workspace IS NOT NULL;
CREATE UNIQUE INDEX temp.of_workspaces_by_run ON of_workspaces (run_id);

UPDATE memory
SET scope = prefix || iif(scope = 'tenant', '', '/' || scope)
FROM of_workspaces
WHERE memory.run_id = of_workspaces.run_id
    AND (scope = 'tenant' OR substr(scope, 1, 6) = 'scope:');

UPDATE runs
SET tombstone = json_set(tombstone, '$.memory.scope',
    prefix || iif(tombstone ->> '$.memory.scope' = 'tenant', '',
                  '/' || (tombstone ->> '$.memory.scope')))
FROM of_workspaces
WHERE runs.run_id = of_workspaces.run_id AND tombstone IS NOT NULL
    AND (tombstone ->> '$.memory.scope' = 'tenant'
         OR substr(tombstone ->> '$.memory.scope', 1, 6) = 'scope:');

DROP TABLE of_workspaces;

-- Follows the journal, as in version 7.
DELETE FROM memory_present;
INSERT INTO memory_present
SELECT tenant, scope, memory_ref, key, position, body ->> '$.expires_at' FROM memory
WHERE body IS NOT NULL AND position IN (
    SELECT max(position) FROM memory INDEXED BY memory_by_scope
    GROUP BY tenant, scope, memory_ref, key);
