-- How every transaction of the product begins and ends. What belongs to one beginning is sent
-- together: no round trip more than BEGIN alone. The settings end with the transaction, so all of it
-- works behind a pooler in transaction mode.

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

-- name: settings
-- An acknowledged commit is on disk, whatever the server's default is: a token or a decision that
-- was told to somebody must not be lost in a crash. (A server with remote_apply keeps its
-- guarantee of durability; a standby may show the commit a moment later.) Nobody queues behind a
-- lock for longer than lock_timeout. A process that stands still inside a transaction loses it
-- before those that wait for its locks give up. One statement: in a pipeline each costs.
SELECT set_config('synchronous_commit', 'on', true), set_config('lock_timeout', '2s', true),
       set_config('idle_in_transaction_session_timeout', '1500ms', true),
       set_config('statement_timeout', '5s', true);

-- name: settings_17
-- The same, with the limit that Postgres 17 brought.
SELECT set_config('synchronous_commit', 'on', true), set_config('lock_timeout', '2s', true),
       set_config('idle_in_transaction_session_timeout', '1500ms', true),
       set_config('statement_timeout', '5s', true), set_config('transaction_timeout', '5s', true);

-- name: long_durable
-- For sealing and export: SET, unlike SELECT, takes no snapshot.
SET LOCAL synchronous_commit = on;

-- name: long_lock_timeout
SET LOCAL lock_timeout = '2s';

-- name: long_idle_timeout
-- Sealing and export look at many rows, and work on them between two statements.
SET LOCAL idle_in_transaction_session_timeout = '60s';

-- name: long_statement_timeout
SET LOCAL statement_timeout = '60s';

-- name: read_only
-- 'on' when the server is in recovery, whatever was asked for.
SHOW transaction_read_only;

-- name: commit
COMMIT;
