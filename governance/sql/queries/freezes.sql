-- name: lock_shared
-- Whoever freezes this flow or its realm waits for us, or we wait for them. Read in a later statement.
SELECT pg_advisory_xact_lock_shared(7178, hashtext(%(realm)s)),
       pg_advisory_xact_lock_shared(7179, hashtext(%(realm)s || chr(31) || %(flow)s));

-- name: lock_realm
-- Wait for the begins of the whole realm.
SELECT pg_advisory_xact_lock(7178, hashtext(%(realm)s));

-- name: lock_flow
-- Wait for the begins of one flow.
SELECT pg_advisory_xact_lock(7179, hashtext(%(realm)s || chr(31) || %(flow)s));

-- name: fetch_for_step
-- The oldest freeze that stands in the way of a step, for how long, and whether the step's refusal
-- is on record.
SELECT f.id, f.flow, f.leaf,
       extract(epoch FROM governance.clock() - f.set_at)::float8 AS seconds,
       EXISTS (SELECT FROM governance.freeze_told t
               WHERE t.freeze_id = f.id AND t.step = %(key)s) AS told
FROM governance.freeze f
WHERE f.realm = %(realm)s AND (f.flow IS NULL OR f.flow = %(flow)s) AND f.lifted_at IS NULL
ORDER BY f.set_at, f.id
LIMIT 1;

-- name: insert_told
INSERT INTO governance.freeze_told (freeze_id, step) VALUES (%(freeze)s, %(key)s);

-- name: fetch_freeze
-- The freeze of just this flow, or of just the realm, that nobody has lifted.
SELECT id, flow, set_at, set_by, reason, leaf
FROM governance.freeze
WHERE realm = %(realm)s AND flow IS NOT DISTINCT FROM %(flow)s AND lifted_at IS NULL;

-- name: insert_freeze
-- Sent right behind its entry, whose leaf is then the head of the stream.
INSERT INTO governance.freeze (id, realm, flow, set_at, set_by, reason, leaf)
VALUES (%(id)s, %(realm)s, %(flow)s, governance.clock(), %(by)s, %(reason)s,
        (SELECT head FROM governance.stream WHERE id = %(stream)s));

-- name: lift_freeze
UPDATE governance.freeze
SET lifted_at = governance.clock(), lifted_by = %(by)s
WHERE id = %(id)s;

-- name: list_freezes
-- What stands in a realm, oldest first.
SELECT id, flow, set_at, set_by, reason
FROM governance.freeze
WHERE realm = %(realm)s AND lifted_at IS NULL
ORDER BY set_at, id;
