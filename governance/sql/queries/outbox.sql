-- name: enqueue
-- A wake-up that commits with the change it tells of. The dispatcher that leads is told all it
-- needs to send it at once; the others find the row when they look.
WITH row AS (
    INSERT INTO governance.outbox (realm, execution, topic, created_at, next_at)
    VALUES (%(realm)s, %(execution)s, %(topic)s, governance.clock(), governance.clock())
    RETURNING id, realm, execution, topic)
SELECT pg_notify('governance_outbox', json_build_object(
    'row', row.id, 'realm', row.realm, 'execution', row.execution, 'workflow_id', e.workflow_id,
    'topic', row.topic, 'hint', coalesce((
        SELECT a.state FROM governance.approval a
        WHERE a.execution = row.execution AND replace(a.id::text, '-', '') = row.topic), ''))::text)
FROM row JOIN governance.execution e ON e.id = row.execution;

-- name: listen
-- Needs a session of its own: not behind a pooler in transaction mode.
LISTEN governance_outbox;

-- name: try_to_lead
-- One dispatcher of a realm sends what it is told of at once; gone with its session.
SELECT pg_try_advisory_lock(7177, hashtext(%(realm)s)) AS leads;

-- name: find_due
-- Rows that are due, in order within an execution: one that was never sent, or is being sent for
-- the first time, comes before those behind it. One that nobody used in that time holds up nobody.
SELECT f.id
FROM governance.outbox f
WHERE f.realm = %(realm)s AND f.done_at IS NULL AND f.next_at <= governance.clock()
  AND NOT EXISTS (
    SELECT FROM governance.outbox earlier
    WHERE earlier.realm = f.realm AND earlier.execution = f.execution
      AND earlier.done_at IS NULL AND earlier.id < f.id
      AND (earlier.tries = 0 OR (earlier.tries = 1 AND earlier.next_at > governance.clock())))
ORDER BY f.next_at
LIMIT %(limit)s;

-- name: lease
-- Whoever gets the row back sends it now; the others find it leased. `hint` is where the approval
-- that the row is about stands; empty for a denial.
UPDATE governance.outbox o
SET tries = o.tries + 1,
    next_at = governance.clock() + make_interval(secs => least(300, 2 ^ least(o.tries, 8) * 5))
FROM governance.execution e
WHERE o.id = %(id)s AND o.realm = %(realm)s AND o.done_at IS NULL AND e.id = o.execution
  AND o.next_at <= governance.clock()
  AND NOT EXISTS (
    SELECT FROM governance.outbox earlier
    WHERE earlier.realm = o.realm AND earlier.execution = o.execution
      AND earlier.done_at IS NULL AND earlier.id < o.id
      AND (earlier.tries = 0 OR (earlier.tries = 1 AND earlier.next_at > governance.clock())))
RETURNING o.execution, e.workflow_id, o.topic, o.tries, coalesce((
    SELECT a.state FROM governance.approval a
    WHERE a.execution = o.execution AND replace(a.id::text, '-', '') = o.topic), '') AS hint;

-- name: finish_topic
-- The wake-up was used. If others of the execution waited behind it, dispatchers look again.
WITH done AS (
    UPDATE governance.outbox
    SET done_at = governance.clock()
    WHERE execution = %(execution)s AND topic = %(topic)s AND done_at IS NULL
    RETURNING realm)
SELECT pg_notify('governance_outbox', json_build_object('realm', realm)::text) FROM done
WHERE EXISTS (
    SELECT FROM governance.outbox
    WHERE execution = %(execution)s AND topic <> %(topic)s AND done_at IS NULL);

-- name: finish_execution
-- The execution ended; nothing of it needs waking.
UPDATE governance.outbox
SET done_at = governance.clock()
WHERE execution = %(execution)s AND done_at IS NULL;
