-- name: fetch_contract
SELECT realm, digest, flow, body, state, registered_at, registered_by, activated_at, activated_by
FROM governance.contract
WHERE realm = %(realm)s AND digest = %(digest)s;

-- name: lock_contracts
-- One change at a time to the versions of a flow.
SELECT pg_advisory_xact_lock(7175, hashtext(%(realm)s || chr(31) || %(flow)s));

-- name: insert_contract
-- Sent right behind its entry, whose leaf is then the head of the contract's stream.
INSERT INTO governance.contract
    (realm, digest, flow, body, state, registered_at, registered_by, leaf)
VALUES
    (%(realm)s, %(digest)s, %(flow)s, %(body)s, 'registered', governance.clock(), %(by)s,
     (SELECT head FROM governance.stream WHERE id = %(stream)s));

-- name: retire_active
-- The version that was active until now; runs pinned to it go on under it.
UPDATE governance.contract
SET state = 'retired', retired_at = governance.clock(), retired_by = %(by)s
WHERE realm = %(realm)s AND flow = %(flow)s AND state = 'active'
RETURNING digest;

-- name: activate_contract
UPDATE governance.contract
SET state = 'active', activated_at = governance.clock(), activated_by = %(by)s,
    retired_at = NULL, retired_by = NULL
WHERE realm = %(realm)s AND digest = %(digest)s;

-- name: list_contracts
SELECT flow, digest, state, registered_at, registered_by, activated_at, activated_by
FROM governance.contract
WHERE realm = %(realm)s AND (%(flow)s::text IS NULL OR flow = %(flow)s)
ORDER BY flow, registered_at;

-- name: find_by_beginning
-- Versions whose digest lies in a range; two are enough to know that it is not one.
SELECT digest FROM governance.contract
WHERE realm = %(realm)s AND digest BETWEEN %(low)s AND %(high)s
LIMIT 2;
