-- What each group role may do. Run after every migration; safe to run again.
-- Entries have no INSERT grant for anybody: governance.append() is the only way in.

REVOKE ALL ON ALL TABLES IN SCHEMA governance FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA governance FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA governance FROM PUBLIC;
GRANT USAGE ON SCHEMA governance
    TO governance_worker, governance_decider, governance_admin, governance_sealer, governance_reader;
GRANT EXECUTE ON FUNCTION governance.clock(), governance.utc_text(timestamptz),
    governance.actor_bucket(text, text), governance.session_is(text)
    TO governance_worker, governance_decider, governance_admin, governance_sealer, governance_reader;
GRANT EXECUTE ON FUNCTION governance.append(uuid, text, bytea, bytea[]),
    governance.stream_of(text, text, text)
    TO governance_worker, governance_decider, governance_admin;
GRANT SELECT ON ALL TABLES IN SCHEMA governance
    TO governance_worker, governance_decider, governance_admin, governance_sealer, governance_reader;

-- worker: opens executions, asks, withdraws, claims and records steps.
GRANT EXECUTE ON FUNCTION
    governance.open_execution(uuid, text, text, text, bytea, text) TO governance_worker;
GRANT INSERT ON governance.run TO governance_worker;
GRANT UPDATE (state, code, closed_at) ON governance.execution TO governance_worker;
GRANT INSERT ON governance.approval TO governance_worker;
GRANT UPDATE (state, used_at, admitted_run) ON governance.approval TO governance_worker;
GRANT INSERT ON governance.step TO governance_worker;
GRANT UPDATE (round, token, holder, lease_until, outcome, done_by, done_token, done_at)
    ON governance.step TO governance_worker;
GRANT INSERT ON governance.step_failure, governance.turn, governance.freeze_told
    TO governance_worker;
GRANT INSERT (realm, execution, topic, created_at, next_at) ON governance.outbox
    TO governance_worker, governance_decider;
GRANT UPDATE (next_at, tries, done_at) ON governance.outbox TO governance_worker;

-- decider: records what people decide. UPDATE (closed_at) is what locking the row asks for. What is
-- withdrawn or has run out wakes nobody any more.
GRANT UPDATE (closed_at) ON governance.execution TO governance_decider;
GRANT UPDATE (done_at) ON governance.outbox TO governance_decider;
GRANT UPDATE (state, decided_at, execute_by) ON governance.approval TO governance_decider;
GRANT INSERT (approval, verdict, decided_by, submitted_by, method, reason, roles_held, at, leaf)
    ON governance.decision TO governance_decider;

-- admin: contracts, role grants and freezes.
GRANT INSERT (realm, digest, flow, body, state, registered_at, registered_by, leaf)
    ON governance.contract TO governance_admin;
GRANT UPDATE (state, activated_at, activated_by, retired_at, retired_by)
    ON governance.contract TO governance_admin;
GRANT INSERT, DELETE ON governance.role_grant TO governance_admin;
GRANT INSERT (id, realm, flow, set_at, set_by, reason, leaf) ON governance.freeze
    TO governance_admin;
GRANT UPDATE (lifted_at, lifted_by) ON governance.freeze TO governance_admin;

-- sealer: positions and checkpoints.
GRANT INSERT ON governance.leaf, governance.checkpoint TO governance_sealer;
GRANT SELECT ON SEQUENCE governance.entry_id TO governance_sealer;
