-- Looking whether a database is set up as it must be. Catalogs alone: any login may look, and a
-- standby answers too.

-- name: fetch_server
-- Settings of this session as the server and the database give them.
SELECT current_setting('fsync') AS fsync,
       current_setting('full_page_writes') AS full_page_writes,
       current_setting('synchronous_commit') AS synchronous_commit,
       pg_is_in_recovery() AS in_recovery,
       extract(epoch FROM clock_timestamp())::float8 AS clock;

-- name: fetch_prepared
-- Transactions that were prepared over an hour ago: they hold locks, and rows from being cleaned up.
SELECT gid FROM pg_catalog.pg_prepared_xacts
WHERE database = current_database() AND prepared < clock_timestamp() - interval '1 hour'
ORDER BY prepared;

-- name: fetch_roles
SELECT rolname AS role, rolcanlogin AS login, rolsuper OR rolbypassrls AS unbounded
FROM pg_catalog.pg_roles
WHERE rolname = ANY (%(roles)s);

-- name: fetch_tables
-- Tables, their owner, and what could swallow or hide rows of theirs.
SELECT c.relname AS name, pg_catalog.pg_get_userbyid(c.relowner) AS owner,
       c.relrowsecurity OR c.relforcerowsecurity
           OR EXISTS (SELECT FROM pg_catalog.pg_policy p WHERE p.polrelid = c.oid) AS row_security,
       ARRAY(SELECT r.rulename::text FROM pg_catalog.pg_rewrite r
             WHERE r.ev_class = c.oid ORDER BY 1) AS rules
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'governance' AND c.relkind IN ('r', 'p')
ORDER BY 1;

-- name: fetch_triggers
-- 'A' is ENABLE ALWAYS: it fires whatever session_replication_role says.
SELECT c.relname AS on_table, t.tgname AS name, t.tgenabled = 'A' AS always
FROM pg_catalog.pg_trigger t
JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'governance' AND NOT t.tgisinternal
ORDER BY 1, 2;

-- name: fetch_privileges
-- What anybody but an owner may do with anything in the schema.
SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_catalog.pg_get_userbyid(a.grantee) END AS grantee,
       o.object, o.field, a.privilege_type AS privilege
FROM (
    SELECT 'governance.' || c.relname AS object, '' AS field, c.relowner AS owner,
           coalesce(c.relacl, acldefault(
               CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", c.relowner)) AS acl
    FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'governance' AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
    UNION ALL
    SELECT 'governance.' || c.relname, a.attname, c.relowner, a.attacl
    FROM pg_catalog.pg_attribute a
    JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'governance' AND a.attacl IS NOT NULL AND NOT a.attisdropped
    UNION ALL
    SELECT 'governance.' || p.proname || '(' || oidvectortypes(p.proargtypes) || ')', '',
           p.proowner, coalesce(p.proacl, acldefault('f', p.proowner))
    FROM pg_catalog.pg_proc p
    JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = 'governance'
    UNION ALL
    SELECT n.nspname, '', n.nspowner, coalesce(n.nspacl, acldefault('n', n.nspowner))
    FROM pg_catalog.pg_namespace n
    WHERE n.nspname = 'governance'
) o, aclexplode(o.acl) a
WHERE a.grantee <> o.owner;
