-- name: enqueue
-- A wake-up that commits with the change it tells of.
INSERT INTO governance.outbox (realm, execution, topic, created_at, next_at)
VALUES (%(realm)s, %(execution)s, %(topic)s, governance.clock(), governance.clock());

-- name: notify
-- Dispatchers that listen look at once; the others find the row when they poll.
SELECT pg_notify('governance_outbox', %(realm)s);

-- name: listen
-- Needs a session of its own: not behind a pooler in transaction mode.
LISTEN governance_outbox;

-- name: lease_due
-- The first open row of each execution, if it is due. Skipping locked rows alone would send
-- later rows of an execution before earlier ones.
UPDATE governance.outbox o
SET tries = o.tries + 1,
    next_at = governance.clock() + make_interval(secs => least(300, 2 ^ least(o.tries, 8) * 5))
FROM (
    SELECT f.id
    FROM governance.outbox f
    WHERE f.realm = %(realm)s AND f.done_at IS NULL AND f.next_at <= governance.clock()
      AND NOT EXISTS (
        SELECT FROM governance.outbox earlier
        WHERE earlier.realm = f.realm AND earlier.execution = f.execution
          AND earlier.done_at IS NULL AND earlier.id < f.id)
    ORDER BY f.next_at
    LIMIT %(limit)s
    FOR NO KEY UPDATE SKIP LOCKED) due, governance.execution e
WHERE o.id = due.id AND e.id = o.execution
RETURNING o.id, o.execution, o.topic, o.tries, e.workflow_id;

-- name: next_due
-- Seconds until the next row is due; null when there is none.
SELECT extract(epoch FROM min(next_at) - governance.clock())::float8 AS seconds
FROM governance.outbox
WHERE realm = %(realm)s AND done_at IS NULL;

-- name: finish_topic
-- The wake-up was used.
UPDATE governance.outbox
SET done_at = governance.clock()
WHERE execution = %(execution)s AND topic = %(topic)s AND done_at IS NULL;

-- name: finish_execution
-- The execution ended; nothing of it needs waking.
UPDATE governance.outbox
SET done_at = governance.clock()
WHERE execution = %(execution)s AND done_at IS NULL;
