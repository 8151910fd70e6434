-- The logins that the containers use, each a member of one group role. Run after the
-- migrations, which make the group roles; safe to run again, and sets the passwords anew.
\getenv admin_password ADMIN_PASSWORD
\getenv worker_password WORKER_PASSWORD
\getenv sealer_password SEALER_PASSWORD

SELECT format('CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE', login)
FROM unnest(ARRAY['app_admin', 'app_worker', 'app_sealer']) AS wanted (login)
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = login)
\gexec

ALTER ROLE app_admin PASSWORD :'admin_password';
ALTER ROLE app_worker PASSWORD :'worker_password';
ALTER ROLE app_sealer PASSWORD :'sealer_password';

GRANT governance_admin TO app_admin;
GRANT governance_worker TO app_worker;
GRANT governance_sealer TO app_sealer;
