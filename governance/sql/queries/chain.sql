-- name: append
-- One entry; the function locks the stream, draws the id last and returns the leaf.
SELECT governance.append(%(stream)s, %(type)s, %(payload)s, %(observed)s) AS leaf;

-- name: stream_of
-- The stream of an actor, a contract or the log, made on first use.
SELECT governance.stream_of(%(kind)s, %(realm)s, %(name)s) AS id;
