-- Which migrations were applied. Made with the first of them; written by migrations alone.

CREATE TABLE IF NOT EXISTS governance.migration (
    version integer PRIMARY KEY CHECK (version > 0),
    name text NOT NULL,
    sha256 text NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'),
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
