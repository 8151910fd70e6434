-- What verifying a whole log asks. Every statement reads one snapshot, nothing is written.

-- name: fetch_isolation
SHOW transaction_isolation;

-- name: fetch_origin
SELECT origin FROM governance.log;

-- name: fetch_entries
-- Every entry, with its leaf and with the entry before it in its stream.
SELECT e.id, coalesce(s.kind, 'missing') AS kind, e.stream, e.seq, e.type, e.body, e.leaf,
    coalesce(to_char(e.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '') AS at,
    p.body AS payload, l.idx,
    before.leaf AS leaf_before, leaf_of_before.idx AS idx_before
FROM governance.entry e
LEFT JOIN governance.stream s ON s.id = e.stream
LEFT JOIN governance.payload p ON p.entry = e.id
LEFT JOIN governance.leaf l ON l.entry = e.id
LEFT JOIN governance.entry before ON before.stream = e.stream AND before.seq = e.seq - 1
LEFT JOIN governance.leaf leaf_of_before ON leaf_of_before.entry = before.id
ORDER BY e.id, l.idx;

-- name: fetch_positions
-- Where these hashes stand in the tree.
SELECT hash, min(idx) FROM governance.leaf WHERE hash = ANY(%(hashes)s) GROUP BY hash;

-- name: fetch_fork
-- A place in a stream that two entries claim.
SELECT e.stream, e.seq, max(e.id) AS id
FROM governance.entry e
GROUP BY e.stream, e.seq
HAVING count(*) > 1
ORDER BY max(e.id)
LIMIT 1;

-- name: fetch_wrong_head
-- A stream whose row does not agree with its last entry.
SELECT s.id, s.kind, s.seq, coalesce(last.seq, 0) AS last_seq
FROM governance.stream s
LEFT JOIN LATERAL (
    SELECT e.seq, e.leaf FROM governance.entry e
    WHERE e.stream = s.id ORDER BY e.seq DESC LIMIT 1) last ON true
WHERE s.seq IS DISTINCT FROM coalesce(last.seq, 0) OR s.head IS DISTINCT FROM last.leaf
ORDER BY s.id
LIMIT 1;

-- name: count_streams
SELECT count(*) FROM governance.stream WHERE seq > 0;

-- name: fetch_leaves
-- The tree in order, with what each leaf claims to be the hash of.
SELECT l.idx, l.entry, l.hash, e.leaf
FROM governance.leaf l
LEFT JOIN governance.entry e ON e.id = l.entry
ORDER BY l.idx;

-- name: fetch_checkpoints
SELECT size, key_name, root, note FROM governance.checkpoint ORDER BY size, at;
