-- How every transaction of the product begins. The statements of one kind are sent together, as
-- one message: no round trip more than BEGIN alone. SET LOCAL ends with the transaction, so all of
-- it works behind a pooler in transaction mode, and SET takes no snapshot: under REPEATABLE READ
-- the snapshot is still the one of the caller's first statement.

-- name: begin
-- For all that decides, claims or records. Each statement sees what was committed before it, so
-- what is read after a lock was granted is what the lock protects.
BEGIN ISOLATION LEVEL READ COMMITTED;

-- name: begin_snapshot
-- For sealing and export alone: one view of the whole log.
BEGIN ISOLATION LEVEL REPEATABLE READ;

-- name: begin_read
-- For lists; also on a standby.
BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY;

-- name: durable
-- An acknowledged commit is on disk, whatever the server's default is: a token or a decision that
-- was told to somebody must not be lost in a crash. (A server with remote_apply keeps its
-- guarantee of durability; a standby may show the commit a moment later.)
SET LOCAL synchronous_commit = on;

-- name: lock_timeout
-- Nobody queues behind a lock for longer than this.
SET LOCAL lock_timeout = '2s';

-- name: idle_timeout
-- A process that stands still inside a transaction loses it before those that wait for its locks
-- give up: less than lock_timeout.
SET LOCAL idle_in_transaction_session_timeout = '1500ms';

-- name: statement_timeout
SET LOCAL statement_timeout = '5s';

-- name: transaction_timeout
-- Postgres 17 and newer.
SET LOCAL transaction_timeout = '5s';

-- name: long_idle_timeout
-- Sealing and export look at many rows, and work on them between two statements.
SET LOCAL idle_in_transaction_session_timeout = '60s';

-- name: long_statement_timeout
SET LOCAL statement_timeout = '60s';

-- name: read_only
-- 'on' when the server is in recovery, whatever was asked for.
SHOW transaction_read_only;
