-- The whole schema as it stands after the last migration (held equal by a test). Everything lives in
-- its own schema and belongs to governance_owner, a role without login. Digests are 32 bytes.

CREATE SCHEMA governance AUTHORIZATION governance_owner;
SET LOCAL ROLE governance_owner;

-- ---------------------------------------------------------------- small functions

-- The one clock. Never now(): a lease counted from the start of a slow transaction is too short.
CREATE FUNCTION governance.clock() RETURNS timestamptz
    LANGUAGE sql VOLATILE
    AS $$ SELECT pg_catalog.clock_timestamp() $$;

-- The text form of a time in entries: UTC, microseconds.
CREATE FUNCTION governance.utc_text(p_at timestamptz) RETURNS text
    LANGUAGE sql STABLE
    AS $$ SELECT to_char(p_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') $$;

-- Role changes of one actor and reads of the same actor's roles meet on one of 1,024 advisory
-- locks. One lock per actor would exhaust the lock table in a bulk change.
CREATE FUNCTION governance.actor_bucket(p_realm text, p_actor text) RETURNS integer
    LANGUAGE sql IMMUTABLE
    AS $$ SELECT (hashtextextended(p_realm || chr(31) || p_actor, 0) & 1023)::integer $$;

-- Is the login that holds this session in the group role governance_<p_group>?
CREATE FUNCTION governance.session_is(p_group text) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$ SELECT pg_has_role(session_user, 'governance_' || p_group, 'member') $$;

-- ---------------------------------------------------------------- the log

-- One row: the log's name and the incarnation of this database.
CREATE TABLE governance.log (
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    origin text NOT NULL CHECK (origin ~ '^[a-z0-9][a-z0-9._/-]{2,199}$'),
    incarnation uuid NOT NULL DEFAULT gen_random_uuid(),
    created_at timestamptz NOT NULL DEFAULT governance.clock()
);

-- A chain of entries: of an execution, of an actor's roles, of a contract, of the log itself.
-- The row is locked while its next entry is written, so seq and head are never guessed.
CREATE TABLE governance.stream (
    id uuid PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('execution', 'actor', 'contract', 'log')),
    realm text NOT NULL,
    name text NOT NULL,
    seq bigint NOT NULL DEFAULT 0,
    head bytea CHECK (octet_length(head) = 32),
    UNIQUE (kind, realm, name)
) WITH (fillfactor = 70);

-- The entry types there are, and the group roles whose members may append them.
CREATE TABLE governance.entry_kind (
    type text PRIMARY KEY,
    writers text[] NOT NULL
);

INSERT INTO governance.entry_kind (type, writers) VALUES
    ('flow.started', '{worker}'),
    ('flow.continued', '{worker}'),
    ('flow.refused', '{worker}'),
    ('flow.completed', '{worker}'),
    ('flow.failed', '{worker}'),
    ('flow.cancelled', '{worker}'),
    ('approval.requested', '{worker}'),
    ('approval.vote', '{decider}'),
    ('approval.decided', '{decider}'),
    ('approval.refused', '{decider}'),
    ('approval.withdrawn', '{worker,decider}'),
    ('approval.revoked', '{decider}'),
    ('approval.expired', '{worker,decider}'),
    ('resume.admitted', '{worker}'),
    ('resume.denied', '{worker}'),
    ('step.claimed', '{worker}'),
    ('step.taken_over', '{worker}'),
    ('step.executed', '{worker}'),
    ('step.failed', '{worker}'),
    ('step.injected', '{worker}'),
    ('step.evicted', '{worker}'),
    ('step.refused', '{worker}'),
    ('role.granted', '{admin}'),
    ('role.revoked', '{admin}'),
    ('contract.registered', '{admin}'),
    ('contract.activated', '{admin}'),
    ('contract.retired', '{admin}'),
    ('freeze.set', '{admin}'),
    ('freeze.lifted', '{admin}'),
    ('log.opened', '{owner}');

CREATE SEQUENCE governance.entry_id AS bigint CACHE 1;

-- Permanent, no personal data. `body` is the evidence; the other columns repeat it for queries.
-- No foreign keys here and below: append() is the only writer and has looked; verifying looks again.
CREATE TABLE governance.entry (
    id bigint PRIMARY KEY,
    stream uuid NOT NULL,
    seq bigint NOT NULL CHECK (seq > 0),
    type text NOT NULL,
    body bytea NOT NULL CHECK (octet_length(body) <= 65535),
    leaf bytea NOT NULL CHECK (octet_length(leaf) = 32),
    at timestamptz NOT NULL,
    UNIQUE (stream, seq)
);

-- What an entry says, as hashed. May be erased; the entry keeps its digest.
CREATE TABLE governance.payload (
    entry bigint PRIMARY KEY,
    body bytea NOT NULL
);

-- The position of each sealed entry in the tree.
CREATE TABLE governance.leaf (
    idx bigint PRIMARY KEY CHECK (idx >= 0),
    entry bigint NOT NULL UNIQUE REFERENCES governance.entry,
    hash bytea NOT NULL CHECK (octet_length(hash) = 32),
    sealed_at timestamptz NOT NULL DEFAULT governance.clock()
);
-- Whether a leaf that an entry observed is in the tree.
CREATE UNIQUE INDEX leaf_hash ON governance.leaf (hash);

-- Signed tree heads (C2SP signed notes), as published.
CREATE TABLE governance.checkpoint (
    size bigint NOT NULL CHECK (size >= 0),
    key_name text NOT NULL,
    root bytea NOT NULL CHECK (octet_length(root) = 32),
    note text NOT NULL,
    at timestamptz NOT NULL DEFAULT governance.clock(),
    PRIMARY KEY (size, at)
);

CREATE FUNCTION governance.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'governance.% is insert-only', TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege';
END
$$;

CREATE TRIGGER insert_only BEFORE UPDATE OR DELETE ON governance.entry
    FOR EACH ROW EXECUTE FUNCTION governance.refuse_change();
CREATE TRIGGER insert_only_truncate BEFORE TRUNCATE ON governance.entry
    FOR EACH STATEMENT EXECUTE FUNCTION governance.refuse_change();
CREATE TRIGGER insert_only BEFORE UPDATE OR DELETE ON governance.payload
    FOR EACH ROW EXECUTE FUNCTION governance.refuse_change();
CREATE TRIGGER insert_only_truncate BEFORE TRUNCATE ON governance.payload
    FOR EACH STATEMENT EXECUTE FUNCTION governance.refuse_change();
CREATE TRIGGER insert_only BEFORE UPDATE OR DELETE ON governance.leaf
    FOR EACH ROW EXECUTE FUNCTION governance.refuse_change();
CREATE TRIGGER insert_only_truncate BEFORE TRUNCATE ON governance.leaf
    FOR EACH STATEMENT EXECUTE FUNCTION governance.refuse_change();
CREATE TRIGGER insert_only BEFORE UPDATE OR DELETE ON governance.checkpoint
    FOR EACH ROW EXECUTE FUNCTION governance.refuse_change();
CREATE TRIGGER insert_only_truncate BEFORE TRUNCATE ON governance.checkpoint
    FOR EACH STATEMENT EXECUTE FUNCTION governance.refuse_change();
ALTER TABLE governance.entry ENABLE ALWAYS TRIGGER insert_only;
ALTER TABLE governance.entry ENABLE ALWAYS TRIGGER insert_only_truncate;
ALTER TABLE governance.payload ENABLE ALWAYS TRIGGER insert_only;
ALTER TABLE governance.payload ENABLE ALWAYS TRIGGER insert_only_truncate;
ALTER TABLE governance.leaf ENABLE ALWAYS TRIGGER insert_only;
ALTER TABLE governance.leaf ENABLE ALWAYS TRIGGER insert_only_truncate;
ALTER TABLE governance.checkpoint ENABLE ALWAYS TRIGGER insert_only;
ALTER TABLE governance.checkpoint ENABLE ALWAYS TRIGGER insert_only_truncate;

-- Write one entry. The caller holds every other lock it needs; this locks the stream's row and
-- draws the id last, so that the order of ids never contradicts what a lock decided.
CREATE FUNCTION governance.append_unchecked(
    p_stream uuid, p_type text, p_payload bytea, p_observed bytea[]
) RETURNS bytea
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    v_kind text;
    v_seq bigint;
    v_prev bytea;
    v_origin text;
    v_id bigint;
    v_at timestamptz;
    v_body bytea;
    v_leaf bytea;
BEGIN
    SELECT origin INTO STRICT v_origin FROM governance.log;
    SELECT kind, seq + 1, coalesce(head, decode(repeat('00', 32), 'hex'))
        INTO v_kind, v_seq, v_prev
        FROM governance.stream WHERE id = p_stream FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no stream %', p_stream USING ERRCODE = 'foreign_key_violation';
    END IF;
    -- The sealer's low-water mark rests on this order: transaction id first, entry id second.
    PERFORM pg_current_xact_id();
    v_id := nextval('governance.entry_id');
    v_at := governance.clock();
    v_body := convert_to(
        '{"at":"' || governance.utc_text(v_at)
        || '","log":"' || v_origin
        || '","observed":['
        || coalesce((SELECT string_agg('"' || encode(o, 'hex') || '"', ',' ORDER BY i)
                     FROM unnest(p_observed) WITH ORDINALITY AS t (o, i)), '')
        || '],"payload":"' || encode(sha256(p_payload), 'hex')
        || '","prev":"' || encode(v_prev, 'hex')
        || '","seq":' || v_seq
        || ',"stream":"' || v_kind || '/' || replace(p_stream::text, '-', '')
        || '","type":"' || p_type
        || '","v":"governance/entry/1"}', 'UTF8');
    v_leaf := sha256('\x00'::bytea || v_body);
    UPDATE governance.stream SET seq = v_seq, head = v_leaf WHERE id = p_stream;
    INSERT INTO governance.entry (id, stream, seq, type, body, leaf, at)
        VALUES (v_id, p_stream, v_seq, p_type, v_body, v_leaf, v_at);
    INSERT INTO governance.payload (entry, body) VALUES (v_id, p_payload);
    RETURN v_leaf;
END
$$;

-- The only way for a login role to write an entry.
CREATE FUNCTION governance.append(
    p_stream uuid, p_type text, p_payload bytea, p_observed bytea[]
) RETURNS bytea
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM governance.entry_kind k, unnest(k.writers) w
        WHERE k.type = p_type AND governance.session_is(w)
    ) THEN
        RAISE EXCEPTION 'role % may not append entries of type "%"', session_user, p_type
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN governance.append_unchecked(p_stream, p_type, p_payload, p_observed);
END
$$;

-- Find or open the stream of an actor, a contract or the log; returns its id.
CREATE FUNCTION governance.stream_of(p_kind text, p_realm text, p_name text) RETURNS uuid
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    v_id uuid;
BEGIN
    IF p_kind = 'execution' THEN
        RAISE EXCEPTION 'an execution''s stream is opened with the execution';
    END IF;
    SELECT id INTO v_id FROM governance.stream
        WHERE kind = p_kind AND realm = p_realm AND name = p_name;
    IF NOT FOUND THEN
        INSERT INTO governance.stream (id, kind, realm, name)
            VALUES (gen_random_uuid(), p_kind, p_realm, p_name)
            ON CONFLICT (kind, realm, name) DO NOTHING;
        SELECT id INTO STRICT v_id FROM governance.stream
            WHERE kind = p_kind AND realm = p_realm AND name = p_name;
    END IF;
    RETURN v_id;
END
$$;

-- ---------------------------------------------------------------- contracts

CREATE TABLE governance.contract (
    realm text NOT NULL,
    digest bytea NOT NULL CHECK (octet_length(digest) = 32),
    flow text NOT NULL,
    body bytea NOT NULL CHECK (sha256(body) = digest),
    state text NOT NULL CHECK (state IN ('registered', 'active', 'retired')),
    registered_at timestamptz NOT NULL,
    registered_by text NOT NULL,
    activated_at timestamptz,
    activated_by text CHECK (activated_by <> registered_by),
    retired_at timestamptz,
    retired_by text,
    leaf bytea NOT NULL CHECK (octet_length(leaf) = 32),
    PRIMARY KEY (realm, digest),
    CHECK (state = 'registered' OR activated_by IS NOT NULL)
);
CREATE UNIQUE INDEX contract_active ON governance.contract (realm, flow) WHERE state = 'active';

-- ---------------------------------------------------------------- roles

-- Who holds which role now. Every change appends its entry, whoever writes (see role_changed).
CREATE TABLE governance.role_grant (
    realm text NOT NULL,
    actor text NOT NULL,
    role text NOT NULL,
    granted_at timestamptz NOT NULL DEFAULT governance.clock(),
    granted_by text NOT NULL CHECK (granted_by <> actor),
    reason text NOT NULL DEFAULT '',
    PRIMARY KEY (realm, actor, role)
);

-- Lock the buckets of all changed actors in ascending order, then append an entry per change.
-- A begin that read the old roles holds its bucket shared, so this waits for it to commit; a
-- begin that comes later waits for this and reads the new roles.
CREATE FUNCTION governance.role_changed() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    v_change record;
    v_by text := nullif(current_setting('governance.acting_as', true), '');
BEGIN
    IF TG_OP = 'UPDATE' THEN
        RAISE EXCEPTION 'grants are inserted and deleted, never updated'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    FOR v_change IN
        SELECT DISTINCT governance.actor_bucket(realm, actor) AS bucket FROM changed ORDER BY 1
    LOOP
        PERFORM pg_advisory_xact_lock(7173, v_change.bucket);
    END LOOP;
    FOR v_change IN
        SELECT c.realm, c.actor, c.role, c.granted_by, c.granted_at, c.reason
        FROM changed c ORDER BY c.realm, c.actor, c.role
    LOOP
        PERFORM governance.append_unchecked(
            governance.stream_of('actor', v_change.realm, v_change.actor),
            CASE TG_OP WHEN 'INSERT' THEN 'role.granted' ELSE 'role.revoked' END,
            convert_to(
                '{"actor":' || to_json(v_change.actor)
                || ',"by":' || to_json(CASE TG_OP WHEN 'INSERT' THEN v_change.granted_by
                                       ELSE coalesce(v_by, 'db:' || session_user) END)
                || ',"db_user":' || to_json(session_user::text)
                || ',"nonce":"' || replace(gen_random_uuid()::text, '-', '')
                || '","realm":' || to_json(v_change.realm)
                || ',"reason":' || to_json(CASE TG_OP WHEN 'INSERT' THEN v_change.reason
                    ELSE coalesce(current_setting('governance.reason', true), '') END)
                || ',"role":' || to_json(v_change.role)
                || ',"submitted_by":'
                || to_json(coalesce(current_setting('governance.submitted_by', true), ''))
                || '}', 'UTF8'),
            '{}');
    END LOOP;
    RETURN NULL;
END
$$;

CREATE TRIGGER role_granted AFTER INSERT ON governance.role_grant
    REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION governance.role_changed();
CREATE TRIGGER role_revoked AFTER DELETE ON governance.role_grant
    REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION governance.role_changed();
CREATE TRIGGER role_updated BEFORE UPDATE ON governance.role_grant
    FOR EACH STATEMENT EXECUTE FUNCTION governance.role_changed();
CREATE TRIGGER role_truncated BEFORE TRUNCATE ON governance.role_grant
    FOR EACH STATEMENT EXECUTE FUNCTION governance.refuse_change();
ALTER TABLE governance.role_grant ENABLE ALWAYS TRIGGER role_granted;
ALTER TABLE governance.role_grant ENABLE ALWAYS TRIGGER role_revoked;
ALTER TABLE governance.role_grant ENABLE ALWAYS TRIGGER role_updated;
ALTER TABLE governance.role_grant ENABLE ALWAYS TRIGGER role_truncated;

-- ---------------------------------------------------------------- executions

-- One governed workflow through retries, resets and continue-as-new. Its id names its stream.
CREATE TABLE governance.execution (
    id uuid PRIMARY KEY REFERENCES governance.stream,
    realm text NOT NULL,
    workflow_id text NOT NULL,
    flow text NOT NULL,
    contract bytea NOT NULL,
    actor text NOT NULL,
    state text NOT NULL CHECK (state IN ('open', 'denied', 'completed', 'failed', 'cancelled')),
    code text,
    opened_at timestamptz NOT NULL,
    closed_at timestamptz,
    FOREIGN KEY (realm, contract) REFERENCES governance.contract (realm, digest)
) WITH (fillfactor = 70);

-- A denial is final for every run of the execution, whoever asks.
CREATE FUNCTION governance.guard_execution() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF OLD.state = 'denied' AND NEW.state <> 'denied' THEN
        RAISE EXCEPTION 'a denied execution stays denied' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER guard BEFORE UPDATE ON governance.execution
    FOR EACH ROW EXECUTE FUNCTION governance.guard_execution();
ALTER TABLE governance.execution ENABLE ALWAYS TRIGGER guard;
CREATE INDEX execution_workflow ON governance.execution (realm, workflow_id);

-- Which execution a Temporal run belongs to, and after how many continue-as-new.
CREATE TABLE governance.run (
    realm text NOT NULL,
    run_id text NOT NULL,
    execution uuid NOT NULL REFERENCES governance.execution,
    generation integer NOT NULL CHECK (generation >= 0),
    opened_at timestamptz NOT NULL,
    PRIMARY KEY (realm, run_id)
);
CREATE INDEX run_execution ON governance.run (execution);

-- Open an execution together with its stream. Only here is a stream of that kind made.
CREATE FUNCTION governance.open_execution(
    p_id uuid, p_realm text, p_workflow_id text, p_flow text, p_contract bytea, p_actor text
) RETURNS void
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    INSERT INTO governance.stream (id, kind, realm, name)
        VALUES (p_id, 'execution', p_realm, p_id::text);
    INSERT INTO governance.execution
        (id, realm, workflow_id, flow, contract, actor, state, opened_at)
        VALUES (p_id, p_realm, p_workflow_id, p_flow, p_contract, p_actor, 'open',
                governance.clock());
END
$$;

-- ---------------------------------------------------------------- approvals

CREATE TABLE governance.approval (
    id uuid PRIMARY KEY,
    realm text NOT NULL,
    execution uuid NOT NULL REFERENCES governance.execution,
    step_key bytea NOT NULL CHECK (octet_length(step_key) = 32),
    step text NOT NULL,
    name text NOT NULL,
    generation integer NOT NULL,
    n integer NOT NULL,
    round integer NOT NULL,
    run_id text NOT NULL,
    input_digest bytea NOT NULL CHECK (octet_length(input_digest) = 32),
    binds_digest bytea NOT NULL CHECK (octet_length(binds_digest) = 32),
    roles text[] NOT NULL,
    needed integer NOT NULL DEFAULT 1 CHECK (needed BETWEEN 1 AND 20),
    title text NOT NULL,
    shown text NOT NULL,
    state text NOT NULL CHECK (state IN
        ('pending', 'approved', 'rejected', 'expired', 'withdrawn', 'revoked', 'used')),
    requested_at timestamptz NOT NULL,
    decide_by timestamptz,
    execute_by timestamptz,
    decided_at timestamptz,
    admitted_run text,
    used_at timestamptz
) WITH (fillfactor = 70);
-- A step has at most one approval that is alive.
CREATE UNIQUE INDEX approval_live ON governance.approval (step_key)
    WHERE state IN ('pending', 'approved', 'used');
CREATE INDEX approval_execution ON governance.approval (execution, step, n, requested_at);
CREATE INDEX approval_pending ON governance.approval (realm, requested_at, id)
    WHERE state = 'pending';
CREATE INDEX approval_overdue ON governance.approval (realm, decide_by) WHERE state = 'pending';

-- What people decided, each vote a row. Insert-only for everybody. Who approved may still reject
-- while others are asked.
CREATE TABLE governance.decision (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    approval uuid NOT NULL REFERENCES governance.approval,
    verdict text NOT NULL CHECK (verdict IN ('approve', 'reject')),
    decided_by text NOT NULL,
    submitted_by text NOT NULL,
    method text NOT NULL,
    reason text NOT NULL,
    roles_held text[] NOT NULL,
    at timestamptz NOT NULL,
    leaf bytea NOT NULL CHECK (octet_length(leaf) = 32),
    UNIQUE (approval, decided_by, verdict)
);

-- A worker asks and withdraws; only a decider's session decides.
CREATE FUNCTION governance.guard_approval() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.state <> 'pending' THEN
            RAISE EXCEPTION 'an approval begins as pending'
                USING ERRCODE = 'insufficient_privilege';
        END IF;
        RETURN NEW;
    END IF;
    IF NEW.state IS DISTINCT FROM OLD.state THEN
        IF NEW.state IN ('approved', 'rejected', 'revoked') AND NOT governance.session_is('decider')
        THEN
            RAISE EXCEPTION 'role % may not decide', session_user
                USING ERRCODE = 'insufficient_privilege';
        END IF;
        IF (OLD.state, NEW.state) NOT IN (
            ('pending', 'approved'), ('pending', 'rejected'), ('pending', 'expired'),
            ('pending', 'withdrawn'), ('approved', 'used'), ('approved', 'expired'),
            ('approved', 'withdrawn'), ('approved', 'revoked'))
        THEN
            RAISE EXCEPTION 'an approval does not go from % to %', OLD.state, NEW.state
                USING ERRCODE = 'insufficient_privilege';
        END IF;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON governance.approval
    FOR EACH ROW EXECUTE FUNCTION governance.guard_approval();
ALTER TABLE governance.approval ENABLE ALWAYS TRIGGER guard;

-- ---------------------------------------------------------------- steps

-- One row a step key: who holds it, under which token, and what came of it.
CREATE TABLE governance.step (
    key bytea PRIMARY KEY CHECK (octet_length(key) = 32),
    realm text NOT NULL,
    execution uuid NOT NULL REFERENCES governance.execution,
    generation integer NOT NULL,
    name text NOT NULL,
    n integer NOT NULL CHECK (n > 0),
    binds_digest bytea NOT NULL CHECK (octet_length(binds_digest) = 32),
    input_digest bytea NOT NULL CHECK (octet_length(input_digest) = 32),
    owner_run text NOT NULL,
    round integer NOT NULL DEFAULT 1 CHECK (round > 0),
    token bigint NOT NULL DEFAULT 0,
    holder uuid,
    lease_until timestamptz,
    outcome bytea,
    done_by uuid,
    done_token bigint,
    done_at timestamptz
) WITH (fillfactor = 70);
CREATE INDEX step_execution ON governance.step (execution, generation, name);

-- A failure that ends a round: everybody who calls this round again gets it.
CREATE TABLE governance.step_failure (
    key bytea NOT NULL REFERENCES governance.step,
    round integer NOT NULL,
    failure bytea NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (key, round)
);

-- An outcome, once there, stays; a token only rises.
CREATE FUNCTION governance.guard_step() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF OLD.outcome IS NOT NULL AND (NEW.outcome, NEW.done_by, NEW.done_token)
        IS DISTINCT FROM (OLD.outcome, OLD.done_by, OLD.done_token) THEN
        RAISE EXCEPTION 'the outcome of a step is never changed'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NEW.token < OLD.token THEN
        RAISE EXCEPTION 'a token never falls' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER guard BEFORE UPDATE ON governance.step
    FOR EACH ROW EXECUTE FUNCTION governance.guard_step();
ALTER TABLE governance.step ENABLE ALWAYS TRIGGER guard;

-- ---------------------------------------------------------------- freezes

-- While a row stands here that nobody has lifted, no step of its flow begins, or of its whole realm
-- where `flow` is NULL. Rows stay: whoever asks later sees what was stopped, by whom and why.
CREATE TABLE governance.freeze (
    id uuid PRIMARY KEY,
    realm text NOT NULL,
    flow text CHECK (flow <> ''),
    set_at timestamptz NOT NULL,
    set_by text NOT NULL,
    reason text NOT NULL CHECK (reason <> ''),
    lifted_at timestamptz,
    lifted_by text CHECK (lifted_by <> set_by),
    leaf bytea NOT NULL CHECK (octet_length(leaf) = 32),
    CHECK ((lifted_at IS NULL) = (lifted_by IS NULL))
);
CREATE UNIQUE INDEX freeze_stands ON governance.freeze (realm, coalesce(flow, ''))
    WHERE lifted_at IS NULL;

-- Whoever freezes waits for the begins that saw no freeze; those that come later wait for this. A
-- begin holds both locks shared: of the realm and of its flow. Services take them before they read.
CREATE FUNCTION governance.guard_freeze() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.lifted_at IS NOT NULL THEN
            RAISE EXCEPTION 'a freeze is lifted later than it is set'
                USING ERRCODE = 'insufficient_privilege';
        END IF;
        IF NEW.flow IS NULL THEN
            PERFORM pg_advisory_xact_lock(7178, hashtext(NEW.realm));
        ELSE
            PERFORM pg_advisory_xact_lock(7179, hashtext(NEW.realm || chr(31) || NEW.flow));
        END IF;
        RETURN NEW;
    END IF;
    IF OLD.lifted_at IS NOT NULL OR (NEW.id, NEW.realm, NEW.flow, NEW.set_at, NEW.set_by,
        NEW.reason, NEW.leaf) IS DISTINCT FROM (OLD.id, OLD.realm, OLD.flow, OLD.set_at,
        OLD.set_by, OLD.reason, OLD.leaf)
    THEN
        RAISE EXCEPTION 'a freeze is lifted once and changed in no other way'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON governance.freeze
    FOR EACH ROW EXECUTE FUNCTION governance.guard_freeze();
CREATE TRIGGER stays BEFORE DELETE OR TRUNCATE ON governance.freeze
    FOR EACH STATEMENT EXECUTE FUNCTION governance.refuse_change();
ALTER TABLE governance.freeze ENABLE ALWAYS TRIGGER guard;
ALTER TABLE governance.freeze ENABLE ALWAYS TRIGGER stays;

-- Which steps were refused under which freeze: it is on record once, however often they ask.
CREATE TABLE governance.freeze_told (
    freeze_id uuid NOT NULL REFERENCES governance.freeze,
    step bytea NOT NULL REFERENCES governance.step,
    PRIMARY KEY (freeze_id, step)
);

-- ---------------------------------------------------------------- told

-- A message for the actor, readable outside any open connection.
CREATE TABLE governance.turn (
    execution uuid NOT NULL REFERENCES governance.execution,
    seq integer NOT NULL CHECK (seq > 0),
    realm text NOT NULL,
    kind text NOT NULL,
    recipient text NOT NULL,
    body text NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (execution, seq)
);

-- Wake-ups to send. A row is done when the database says that it was used, not when it was sent.
CREATE TABLE governance.outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    realm text NOT NULL,
    execution uuid NOT NULL REFERENCES governance.execution,
    topic text NOT NULL,
    created_at timestamptz NOT NULL,
    next_at timestamptz NOT NULL,
    tries integer NOT NULL DEFAULT 0,
    done_at timestamptz
) WITH (fillfactor = 70);
CREATE INDEX outbox_open ON governance.outbox (realm, execution, id) WHERE done_at IS NULL;

RESET ROLE;
