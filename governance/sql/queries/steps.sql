-- name: insert_step
-- The row may be there already; the next statement reads it under its lock.
INSERT INTO governance.step
    (key, realm, execution, generation, name, n, binds_digest, input_digest, owner_run)
VALUES
    (%(key)s, %(realm)s, %(execution)s, %(generation)s, %(name)s, %(n)s, %(binds_digest)s,
     %(input_digest)s, %(run_id)s)
ON CONFLICT (key) DO NOTHING;

-- name: lock_step
-- Who holds the step, what came of it, and the failure that ended this round, if one did: that is
-- written under the execution's lock, which the caller holds already.
SELECT token, holder, lease_until > governance.clock() AS live, lease_until, outcome,
       governance.clock() AS now,
       (SELECT f.failure FROM governance.step_failure f
        WHERE f.key = %(key)s AND f.round = %(round)s) AS failure
FROM governance.step
WHERE key = %(key)s
FOR NO KEY UPDATE;

-- name: fetch_outcome
SELECT outcome IS NOT NULL AS done FROM governance.step WHERE key = %(key)s;

-- name: claim_step
-- A new holder under the next token.
UPDATE governance.step
SET token = token + 1, holder = %(attempt)s, round = greatest(round, %(round)s),
    lease_until = governance.clock() + make_interval(secs => %(lease)s)
WHERE key = %(key)s AND outcome IS NULL;

-- name: renew_leases
-- Ordered and skipping locked rows: a finishing step needs no renewal, and nothing deadlocks.
WITH mine AS MATERIALIZED (
    SELECT s.key, u.lease
    FROM governance.step s
    JOIN unnest(%(keys)s::bytea[], %(attempts)s::uuid[], %(leases)s::float8[])
        u (key, attempt, lease)
      ON s.key = u.key AND s.holder = u.attempt
    WHERE s.outcome IS NULL
    ORDER BY s.key
    FOR NO KEY UPDATE OF s SKIP LOCKED)
UPDATE governance.step s
SET lease_until = governance.clock() + make_interval(secs => mine.lease)
FROM mine
WHERE s.key = mine.key;

-- name: fetch_holders
-- Which of these steps are still held by the attempts that ask.
SELECT s.key
FROM governance.step s
JOIN unnest(%(keys)s::bytea[], %(attempts)s::uuid[]) u (key, attempt)
  ON s.key = u.key AND s.holder = u.attempt;

-- name: finish_step
-- Holder and token fence; the lease is not asked: a late holder that nobody replaced is honest.
UPDATE governance.step
SET outcome = %(outcome)s, done_by = holder, done_token = token, done_at = governance.clock()
WHERE key = %(key)s AND holder = %(attempt)s AND token = %(token)s AND outcome IS NULL
RETURNING done_at;

-- name: fetch_step
SELECT outcome, done_by, done_token, holder, token FROM governance.step WHERE key = %(key)s;

-- name: release_step
-- The attempt failed: the next one need not wait for the lease.
UPDATE governance.step
SET holder = NULL, lease_until = NULL
WHERE key = %(key)s AND holder = %(attempt)s AND token = %(token)s AND outcome IS NULL
RETURNING key;

-- name: insert_failure
INSERT INTO governance.step_failure (key, round, failure, at)
VALUES (%(key)s, %(round)s, %(failure)s, governance.clock())
ON CONFLICT (key, round) DO NOTHING;
