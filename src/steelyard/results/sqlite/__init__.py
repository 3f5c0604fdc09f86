"""Results in a SQLite file."""
