-- name: insert_turn
-- The next turn of an execution, whose row is locked.
INSERT INTO governance.turn (execution, seq, realm, kind, recipient, body, at)
SELECT %(execution)s, coalesce(max(seq), 0) + 1, %(realm)s, %(kind)s, %(recipient)s, %(body)s,
       governance.clock()
FROM governance.turn WHERE execution = %(execution)s;

-- name: list_turns
SELECT seq, kind, recipient, body, at
FROM governance.turn
WHERE execution = %(execution)s
ORDER BY seq;
