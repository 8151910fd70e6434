"""What a schema is made of, as text, so that two databases can be compared."""

from __future__ import annotations

import psycopg

_PARTS = {
    "tables": """
        SELECT c.relname, c.relkind, c.relpersistence, c.reloptions, c.relrowsecurity,
               pg_get_userbyid(c.relowner), c.relacl::text
        FROM pg_class c WHERE c.relnamespace = 'governance'::regnamespace AND c.relkind <> 'i'
    """,
    "columns": """
        SELECT c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
               a.attidentity, a.attgenerated, pg_get_expr(d.adbin, d.adrelid), a.attacl::text
        FROM pg_attribute a
        JOIN pg_class c ON c.oid = a.attrelid
        LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE c.relnamespace = 'governance'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm')
          AND a.attnum > 0 AND NOT a.attisdropped
    """,
    "constraints": """
        SELECT conrelid::regclass::text, conname, contype, convalidated,
               pg_get_constraintdef(oid)
        FROM pg_constraint WHERE connamespace = 'governance'::regnamespace
    """,
    "indexes": """
        SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid), indisvalid
        FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        WHERE c.relnamespace = 'governance'::regnamespace
    """,
    "sequences": """
        SELECT sequencename, data_type::text, start_value, increment_by, cache_size, cycle
        FROM pg_sequences WHERE schemaname = 'governance'
    """,
    "functions": """
        SELECT pg_get_functiondef(oid), pg_get_userbyid(proowner), proacl::text
        FROM pg_proc WHERE pronamespace = 'governance'::regnamespace
    """,
    "triggers": """
        SELECT tgrelid::regclass::text, tgname, tgenabled, pg_get_triggerdef(t.oid)
        FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
        WHERE c.relnamespace = 'governance'::regnamespace AND NOT tgisinternal
    """,
    "types": """
        SELECT typname, typtype FROM pg_type
        WHERE typnamespace = 'governance'::regnamespace AND typtype IN ('d', 'e')
    """,
    "rules and policies": """
        SELECT ev_class::regclass::text, rulename FROM pg_rewrite r
        JOIN pg_class c ON c.oid = r.ev_class
        WHERE c.relnamespace = 'governance'::regnamespace
        UNION ALL
        SELECT polrelid::regclass::text, polname FROM pg_policy p
        JOIN pg_class c ON c.oid = p.polrelid
        WHERE c.relnamespace = 'governance'::regnamespace
    """,
    "schema": """
        SELECT nspname, pg_get_userbyid(nspowner), nspacl::text FROM pg_namespace
        WHERE nspname = 'governance'
    """,
    "vocabulary": "SELECT * FROM governance.entry_kind",
}


def catalog(dsn: str) -> dict[str, list[str]]:
    """Every part of the schema `governance`, each sorted."""
    found: dict[str, list[str]] = {}
    with psycopg.connect(dsn) as conn:
        for part, query in _PARTS.items():
            found[part] = sorted(repr(row) for row in conn.execute(query.encode()))
    return found
