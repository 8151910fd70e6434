-- name: lock_run
-- One opening of a run at a time.
SELECT pg_advisory_xact_lock(7174, hashtext(%(realm)s || chr(31) || %(run_id)s));

-- name: fetch_run
-- A run with its execution and the contract it is pinned to.
SELECT r.run_id, r.generation, e.id AS execution, e.workflow_id, e.flow, e.actor, e.state, e.code,
       e.contract AS contract_digest, c.body AS contract_body
FROM governance.run r
JOIN governance.execution e ON e.id = r.execution
JOIN governance.contract c ON c.realm = e.realm AND c.digest = e.contract
WHERE r.realm = %(realm)s AND r.run_id = %(run_id)s;

-- name: fetch_active_contract
-- The contract that new executions of a flow take.
SELECT digest, body, leaf
FROM governance.contract
WHERE realm = %(realm)s AND flow = %(flow)s AND state = 'active';

-- name: open_execution
-- An execution and its stream.
SELECT governance.open_execution(
    %(id)s, %(realm)s, %(workflow_id)s, %(flow)s, %(contract)s, %(actor)s);

-- name: insert_run
-- The run belongs to this execution from now on.
INSERT INTO governance.run (realm, run_id, execution, generation, opened_at)
VALUES (%(realm)s, %(run_id)s, %(execution)s, %(generation)s, governance.clock());

-- name: fetch_last_run
SELECT run_id FROM governance.run
WHERE execution = %(execution)s
ORDER BY opened_at DESC, run_id
LIMIT 1;

-- name: lock_execution
-- Everything that changes an execution, its approvals or its steps takes this lock first.
SELECT id, state, code, actor, contract AS contract_digest, workflow_id, flow
FROM governance.execution
WHERE id = %(execution)s
FOR NO KEY UPDATE;

-- name: lock_execution_of
-- The same lock, for whoever has only an approval; which execution it is of never changes.
SELECT id FROM governance.execution
WHERE id = (SELECT execution FROM governance.approval WHERE id = %(approval)s)
FOR NO KEY UPDATE;

-- name: reopen_execution
-- A later run of an ended execution goes on; a denied one stays denied.
UPDATE governance.execution
SET state = 'open', code = NULL, closed_at = NULL
WHERE id = %(execution)s AND state <> 'denied';

-- name: close_execution
-- The execution ends; a denied one stays denied.
UPDATE governance.execution
SET state = %(state)s, code = %(code)s, closed_at = governance.clock()
WHERE id = %(execution)s AND state = 'open'
RETURNING id;

-- name: withdraw_pending
-- Nobody is asked any more for an execution that ended.
UPDATE governance.approval
SET state = 'withdrawn'
WHERE execution = %(execution)s AND state = 'pending'
RETURNING id, step;

-- name: find_executions
-- The executions of a workflow id, newest first.
SELECT e.id, e.workflow_id, e.flow, e.actor, e.state, e.code, e.opened_at, e.closed_at
FROM governance.execution e
WHERE e.realm = %(realm)s AND e.workflow_id = %(workflow_id)s
ORDER BY e.opened_at DESC;

-- name: fetch_timeline
-- All entries of an execution in order, with their payloads and positions in the log.
SELECT n.seq, n.type, n.at, n.leaf, n.body, p.body AS payload, l.idx
FROM governance.entry n
LEFT JOIN governance.payload p ON p.entry = n.id
LEFT JOIN governance.leaf l ON l.entry = n.id
WHERE n.stream = %(execution)s
ORDER BY n.seq;
