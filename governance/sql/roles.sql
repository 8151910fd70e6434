-- The group roles, one set per server, shared by all its governance databases. Nobody logs in as
-- one of them: login roles are made members. governance_owner owns the schema and is used by
-- migrations alone. Safe to run again, and by two at once.

DO $roles$
DECLARE
    v_role text;
BEGIN
    FOREACH v_role IN ARRAY ARRAY[
        'governance_owner', 'governance_worker', 'governance_decider', 'governance_admin',
        'governance_sealer', 'governance_reader'
    ] LOOP
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = v_role) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', v_role);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;
            END;
        END IF;
    END LOOP;
    -- Since Postgres 16 who makes a role may administer it, which is not yet being able to become it.
    IF NOT pg_has_role(current_user, 'governance_owner',
        CASE WHEN current_setting('server_version_num')::integer >= 160000
            THEN 'SET' ELSE 'MEMBER' END)
    THEN
        EXECUTE format('GRANT governance_owner TO %I', current_user);
    END IF;
END
$roles$;
