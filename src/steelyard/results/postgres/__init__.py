"""Results in a Postgres database. Needs the extra `postgres` (psycopg 3)."""
