-- name: lock_actor_shared
-- Role changes of this actor wait for us, or we wait for them. Read the roles in a later statement.
SELECT pg_advisory_xact_lock_shared(7173, governance.actor_bucket(%(realm)s, %(actor)s));

-- name: lock_actors_shared
-- The same for several actors: each bucket once, in ascending order, as role changes take them.
SELECT pg_advisory_xact_lock_shared(7173, b.bucket)
FROM (SELECT DISTINCT governance.actor_bucket(%(realm)s, actor) AS bucket
      FROM unnest(%(actors)s::text[]) actor ORDER BY 1 OFFSET 0) b;

-- name: fetch_roles
-- The roles an actor holds, since when and by whose grant, each with the newest entry about them:
-- what a reading rests on. One row without a role for an actor who holds none.
SELECT s.head, g.role, g.granted_at, g.granted_by
FROM (SELECT %(realm)s::text AS realm, %(actor)s::text AS actor) asked
LEFT JOIN governance.stream s
    ON s.kind = 'actor' AND s.realm = asked.realm AND s.name = asked.actor
LEFT JOIN governance.role_grant g ON g.realm = asked.realm AND g.actor = asked.actor
ORDER BY g.role;

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
-- Who changes a role, why and through whom, for the trigger's entry; gone with the transaction.
SELECT set_config('governance.acting_as', %(by)s, true),
       set_config('governance.reason', %(reason)s, true),
       set_config('governance.submitted_by', %(submitted_by)s, true);

-- name: list_roles
-- Grants of a realm, optionally of one actor.
SELECT actor, role, granted_at, granted_by, reason
FROM governance.role_grant
WHERE realm = %(realm)s AND (%(actor)s::text IS NULL OR actor = %(actor)s)
ORDER BY actor, role;

-- name: list_role_names
-- Every role that somebody holds or that a contract names, in its policy or in an approval.
SELECT role FROM governance.role_grant WHERE realm = %(realm)s
UNION
SELECT jsonb_array_elements_text(convert_from(body, 'UTF8')::jsonb -> 'resume')
FROM governance.contract WHERE realm = %(realm)s
UNION
SELECT jsonb_array_elements_text(approval.rule -> 'roles')
FROM governance.contract c,
     jsonb_each(convert_from(c.body, 'UTF8')::jsonb -> 'approvals') AS approval (name, rule)
WHERE c.realm = %(realm)s
ORDER BY role;
