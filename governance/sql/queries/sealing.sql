-- What the sealer asks: positions in the tree for entries that have none, and checkpoints.

-- name: try_lock
-- Held by the session, so that one sealer runs. Not behind a pooler in transaction mode.
SELECT pg_try_advisory_lock(7174, 2) AS locked;

-- name: fetch_origin
SELECT origin FROM governance.log;

-- name: fetch_view
-- Takes the snapshot of a round. Everything below xmin has ended, committed or not.
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xmin,
    (SELECT coalesce(max(id), 0) FROM governance.entry) AS last_id,
    (SELECT coalesce(max(idx) + 1, 0) FROM governance.leaf) AS size;

-- name: fetch_transaction_id
-- Above that of every transaction that drew an id visible in this snapshot, and above that of
-- every one that drew a smaller id: a transaction gets its own before it draws an entry's id.
SELECT pg_current_xact_id()::text::bigint AS xid;

-- name: fetch_unsealed
-- In the order of ids, which never contradicts what a lock decided. LIMIT 1 keeps the planner to
-- one look-up an entry; a join of the whole tables is what it would choose when statistics are old.
SELECT e.id, coalesce(s.kind, 'missing') AS kind, e.stream, e.seq, e.type, e.body, e.leaf,
    coalesce(to_char(e.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '') AS at,
    p.body AS payload
FROM governance.entry e
LEFT JOIN LATERAL (
    SELECT kind FROM governance.stream WHERE id = e.stream LIMIT 1) s ON true
LEFT JOIN LATERAL (
    SELECT body FROM governance.payload WHERE entry = e.id LIMIT 1) p ON true
WHERE e.id > %(low)s
  AND NOT EXISTS (
    SELECT FROM governance.leaf l WHERE l.entry = e.id AND l.entry > %(low)s)
ORDER BY e.id
LIMIT %(limit)s;

-- name: fetch_links
-- The sealed leaves at these places of streams.
SELECT e.stream, e.seq, l.hash
FROM unnest(%(streams)s::uuid[], %(seqs)s::bigint[]) AS place (stream, seq)
JOIN governance.entry e ON e.stream = place.stream AND e.seq = place.seq
JOIN governance.leaf l ON l.entry = e.id;

-- name: fetch_sealed
-- Which of these hashes are leaves of the tree.
SELECT DISTINCT hash FROM governance.leaf WHERE hash = ANY(%(hashes)s);

-- name: insert_leaves
INSERT INTO governance.leaf (idx, entry, hash)
SELECT %(size)s + t.n - 1, t.entry, t.hash
FROM unnest(%(entries)s::bigint[], %(hashes)s::bytea[]) WITH ORDINALITY AS t (entry, hash, n);

-- name: fetch_leaves
-- The whole tree, in order.
SELECT idx, hash FROM governance.leaf ORDER BY idx;

-- name: fetch_last_checkpoint
SELECT note FROM governance.checkpoint ORDER BY size DESC, at DESC LIMIT 1;

-- name: insert_checkpoint
INSERT INTO governance.checkpoint (size, key_name, root, note)
VALUES (%(size)s, %(key_name)s, %(root)s, %(note)s);
