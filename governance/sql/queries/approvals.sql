-- name: fetch_for_step
-- Approvals asked for a step, newest first. The execution's row is locked.
SELECT id, state, step_key, run_id, round, decide_by, execute_by, input_digest, admitted_run,
       governance.clock() AS now
FROM governance.approval
WHERE execution = %(execution)s AND step = %(step)s AND n = %(n)s
  AND generation = %(generation)s
ORDER BY requested_at DESC, id;

-- name: insert_approval
-- A new request; it waits until somebody decides.
INSERT INTO governance.approval
    (id, realm, execution, step_key, step, name, generation, n, round, run_id, input_digest, binds_digest,
     roles, needed, title, shown, state, requested_at, decide_by)
VALUES
    (%(id)s, %(realm)s, %(execution)s, %(step_key)s, %(step)s, %(name)s, %(generation)s, %(n)s, %(round)s,
     %(run_id)s, %(input_digest)s, %(binds_digest)s, %(roles)s, %(needed)s, %(title)s, %(shown)s, 'pending',
     %(requested_at)s, %(decide_by)s);

-- name: fetch_approval
-- One approval with its execution, its contract and the newest decision.
SELECT a.id, a.realm, a.execution, a.step, a.name, a.n, a.state, a.title, a.shown, a.roles,
       a.input_digest, a.binds_digest, a.requested_at, a.decide_by, a.execute_by, a.decided_at,
       a.used_at, governance.clock() AS now, e.workflow_id, e.flow, e.actor, e.state AS execution_state,
       e.contract AS contract_digest, c.body AS contract_body,
       d.decided_by, d.verdict, d.reason, d.at AS verdict_at
FROM governance.approval a
JOIN governance.execution e ON e.id = a.execution
JOIN governance.contract c ON c.realm = e.realm AND c.digest = e.contract
LEFT JOIN LATERAL (
    SELECT decided_by, verdict, reason, at FROM governance.decision
    WHERE approval = a.id ORDER BY id DESC LIMIT 1) d ON true
WHERE a.realm = %(realm)s AND a.id = %(id)s;

-- name: lock_approval
-- The state that counts, read after the execution's lock.
SELECT id, state, decide_by, execute_by, admitted_run, governance.clock() AS now
FROM governance.approval
WHERE id = %(id)s
FOR NO KEY UPDATE;

-- name: fetch_decisions
-- Who decided, in order.
SELECT verdict, decided_by, submitted_by, method, reason, roles_held, at
FROM governance.decision
WHERE approval = %(id)s
ORDER BY id;

-- name: fetch_votes
-- Who approved so far, each with the leaf of the vote's entry. The execution's row is locked.
SELECT decided_by, leaf FROM governance.decision
WHERE approval = %(id)s AND verdict = 'approve'
ORDER BY id;

-- name: fetch_use
-- How often the step of an approval was begun, whether an attempt holds it or it is done, and
-- whether the wake-up of its decision is unused: then somebody may wait for it. But for renewals
-- all of it changes under the execution's lock, which the caller holds.
SELECT coalesce(s.token, 0) AS attempts,
       s.outcome IS NOT NULL OR coalesce(s.lease_until > governance.clock(), false) AS begun,
       EXISTS (SELECT FROM governance.outbox o
               WHERE o.realm = a.realm AND o.execution = a.execution
                 AND o.topic = replace(a.id::text, '-', '') AND o.done_at IS NULL) AS unheard
FROM governance.approval a
LEFT JOIN governance.step s ON s.key = a.step_key
WHERE a.id = %(id)s;

-- name: fetch_approvers
-- Who approved what the step of this key may run by.
SELECT d.decided_by
FROM governance.approval a
JOIN governance.decision d ON d.approval = a.id AND d.verdict = 'approve'
WHERE a.step_key = %(step_key)s AND a.state IN ('approved', 'used')
ORDER BY d.id;

-- name: insert_decision
-- Sent right behind the decision's entry, whose leaf is then the head of the execution's stream.
INSERT INTO governance.decision
    (approval, verdict, decided_by, submitted_by, method, reason, roles_held, at, leaf)
VALUES
    (%(approval)s, %(verdict)s, %(decided_by)s, %(submitted_by)s, %(method)s, %(reason)s,
     %(roles_held)s, %(at)s, (SELECT head FROM governance.stream WHERE id = %(execution)s));

-- name: decide_approval
UPDATE governance.approval
SET state = %(state)s, decided_at = %(at)s, execute_by = %(execute_by)s
WHERE id = %(id)s AND state = 'pending';

-- name: change_state
-- Expired, withdrawn or revoked.
UPDATE governance.approval
SET state = %(state)s
WHERE id = %(id)s AND state = %(was)s
RETURNING id;

-- name: fetch_overdue
-- Approvals nobody decided in time. Their limit holds without this; it is only told here.
SELECT id, execution FROM governance.approval
WHERE realm = %(realm)s AND state = 'pending' AND decide_by < governance.clock()
ORDER BY decide_by
LIMIT %(limit)s;

-- name: admit_run
-- Which run was last let go on; its admission is on record once.
UPDATE governance.approval SET admitted_run = %(run_id)s WHERE id = %(id)s;

-- name: use_approval
-- The step that this approval allowed succeeded.
UPDATE governance.approval
SET state = 'used', used_at = governance.clock()
WHERE execution = %(execution)s AND step_key = %(step_key)s AND state = 'approved';

-- name: list_approvals
-- Approvals of a realm in one state, oldest first.
SELECT a.id, a.state, a.title, a.step, a.roles, a.needed, a.requested_at, a.decide_by, e.actor,
       e.workflow_id, e.flow, governance.clock() AS now,
       (SELECT count(*) FROM governance.decision d
        WHERE d.approval = a.id AND d.verdict = 'approve') AS voted
FROM governance.approval a
JOIN governance.execution e ON e.id = a.execution
WHERE a.realm = %(realm)s AND (%(state)s::text IS NULL OR a.state = %(state)s)
  AND (%(role)s::text IS NULL OR %(role)s = ANY (a.roles))
ORDER BY a.requested_at, a.id
LIMIT %(limit)s;

-- name: clock
SELECT governance.clock() AS now;

-- name: find_by_beginning
-- Approvals whose id lies in a range; two are enough to know that it is not one.
SELECT id FROM governance.approval
WHERE realm = %(realm)s AND id BETWEEN %(low)s AND %(high)s
LIMIT 2;
