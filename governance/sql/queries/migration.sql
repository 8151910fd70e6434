-- Finding out where a database stands, and bringing it forward.

-- name: has_ledger
-- Looks at the catalog alone, so that a login without any rights gets an answer.
SELECT count(*) > 0 AS there
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'governance' AND c.relname = 'migration' AND c.relkind = 'r';

-- name: fetch_applied
SELECT version, name, sha256 FROM governance.migration ORDER BY version;

-- name: fetch_version
SELECT coalesce(max(version), 0) AS version FROM governance.migration;

-- name: try_lock
-- One migration at a time in a database; false at once if somebody else has it.
SELECT pg_try_advisory_lock(7170, 1) AS locked;

-- name: unlock
SELECT pg_advisory_unlock(7170, 1);

-- name: lock_timeout
-- A statement that changes a table in use gives up rather than hold up everybody behind it.
SET LOCAL lock_timeout = '5s';

-- name: as_owner
SET LOCAL ROLE governance_owner;

-- name: insert_migration
INSERT INTO governance.migration (version, name, sha256)
VALUES (%(version)s, %(name)s, %(sha256)s);

-- name: fetch_missing_roles
SELECT role
FROM unnest(%(roles)s::text[]) WITH ORDINALITY AS wanted (role, i)
WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = role)
ORDER BY i;

-- name: fetch_origin
SELECT origin FROM governance.log;

-- name: insert_log
INSERT INTO governance.log (origin) VALUES (%(origin)s);
