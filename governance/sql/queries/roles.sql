-- name: lock_actor_shared
-- Role changes of this actor wait for us, or we wait for them. Read the roles in a later statement.
SELECT pg_advisory_xact_lock_shared(7173, governance.actor_bucket(%(realm)s, %(actor)s));

-- name: fetch_roles
-- The roles an actor holds, since when and by whose grant.
SELECT role, granted_at, granted_by
FROM governance.role_grant
WHERE realm = %(realm)s AND actor = %(actor)s
ORDER BY role;

-- name: fetch_role_head
-- The newest entry about this actor's roles: what a reading of them rests on.
SELECT head FROM governance.stream
WHERE kind = 'actor' AND realm = %(realm)s AND name = %(actor)s;

-- name: grant_role
-- A trigger appends the entry.
INSERT INTO governance.role_grant (realm, actor, role, granted_by, reason)
VALUES (%(realm)s, %(actor)s, %(role)s, %(by)s, %(reason)s)
ON CONFLICT (realm, actor, role) DO NOTHING
RETURNING role;

-- name: revoke_role
-- A trigger appends the entry and waits for every begin that read the role.
DELETE FROM governance.role_grant
WHERE realm = %(realm)s AND actor = %(actor)s AND role = %(role)s
RETURNING role;

-- name: set_acting
-- Who revokes and why, for the trigger's entry; gone with the transaction.
SELECT set_config('governance.acting_as', %(by)s, true),
       set_config('governance.reason', %(reason)s, true);

-- name: list_roles
-- Grants of a realm, optionally of one actor.
SELECT actor, role, granted_at, granted_by, reason
FROM governance.role_grant
WHERE realm = %(realm)s AND (%(actor)s::text IS NULL OR actor = %(actor)s)
ORDER BY actor, role;

-- name: role_exists
-- A role that somebody holds or that a contract names.
SELECT EXISTS (SELECT FROM governance.role_grant WHERE realm = %(realm)s AND role = %(role)s)
    AS held;
