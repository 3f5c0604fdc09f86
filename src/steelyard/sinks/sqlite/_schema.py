"""The tables of a results database.

The columns of `evaluations` and `scores` are for queries. What they do not hold (contexts, verdicts,
evidence) is in `bodies`: one row for each Evaluation that was written, compressed as a whole. Claims are
sentences of the answer, evidence is a piece of a context, and several metrics judge the same claims, so that
one by one they would take several times as much.
"""

from __future__ import annotations

from typing import Final

from steelyard.errors import ConfigurationError

SQLITE_SCHEMA: Final = 8
"""Version of the tables, kept in `PRAGMA user_version`."""
APPLICATION_ID: Final = 0x53544C59
"""In `PRAGMA application_id` of every results database from schema 2 on: "STLY"."""

JUDGE_CHECKS: Final = """CREATE TABLE IF NOT EXISTS judge_checks (
    id INTEGER PRIMARY KEY, checked_at REAL NOT NULL, judge TEXT NOT NULL, figures TEXT NOT NULL
)"""
TABLES: Final = (
    """CREATE TABLE bodies (id INTEGER PRIMARY KEY, record_id TEXT NOT NULL, body BLOB NOT NULL)""",
    """CREATE TABLE ledger (
        run TEXT NOT NULL PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL,
        started_at REAL NOT NULL, updated_at REAL NOT NULL, counts TEXT NOT NULL
    )""",
    "CREATE INDEX bodies_by_record ON bodies (record_id)",
)
BY_TIME: Final = "CREATE INDEX evaluations_by_time ON evaluations (happened_at, record_id, evidence)"
"""Evidence is in it so that turns are counted and found by it without a look at the table."""
BY_DIAGNOSIS: Final = (
    "CREATE INDEX evaluations_by_diagnosis ON evaluations (diagnosis, happened_at, record_id) "
    "WHERE diagnosis IS NOT NULL"
)
WITHOUT_VALUE: Final = (
    "CREATE INDEX scores_without_value ON scores "
    "(metric, status, cause, happened_at, turn, inclusion_probability) WHERE status != 'scored'"
)
BY_METRIC: Final = "CREATE INDEX scores_by_metric_and_time ON scores (metric, happened_at, value, turn)"
"""The turn is in it so that every so many-th score is found without a look at the others."""
SCREENED: Final = (
    """CREATE TABLE screened (
        record_id TEXT NOT NULL, metric TEXT NOT NULL, happened_at REAL NOT NULL, value REAL,
        inclusion_probability REAL NOT NULL, judge TEXT NOT NULL, fitted TEXT NOT NULL,
        PRIMARY KEY (record_id, metric)
    ) WITHOUT ROWID""",
    "CREATE INDEX screened_by_metric_and_time ON screened (metric, happened_at)",
)
"""What screens said: beside `scores` and not among them, so that no figure takes one for the other."""
RESULT_TABLES: Final = (
    *SCREENED,
    """CREATE TABLE evaluations (
        turn INTEGER PRIMARY KEY, record_id TEXT NOT NULL UNIQUE,
        happened_at REAL NOT NULL, evaluated_at REAL NOT NULL, duration REAL NOT NULL,
        session TEXT, user_hash TEXT, tenant TEXT, evidence TEXT, diagnosis TEXT,
        trace_id TEXT, span_id TEXT, run_id TEXT, framework TEXT,
        record_status TEXT, question TEXT, answer TEXT, tags TEXT, metadata TEXT,
        requests INTEGER NOT NULL, questions INTEGER NOT NULL, reasked INTEGER NOT NULL,
        prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL,
        cost REAL, seconds REAL NOT NULL, body INTEGER NOT NULL
    )""",
    """CREATE TABLE scores (
        id TEXT NOT NULL UNIQUE, turn INTEGER NOT NULL, record_id TEXT NOT NULL, position INTEGER NOT NULL,
        happened_at REAL NOT NULL, evaluated_at REAL NOT NULL,
        metric TEXT NOT NULL, status TEXT NOT NULL, value REAL, passed INTEGER, label TEXT,
        threshold REAL, direction TEXT NOT NULL, standard_error REAL, inclusion_probability REAL NOT NULL,
        cause TEXT, explanation TEXT NOT NULL, options TEXT NOT NULL,
        judge TEXT, embedder TEXT, prompt_version TEXT, metric_version TEXT, fuse TEXT, calibrated INTEGER,
        body INTEGER NOT NULL
    )""",
    BY_TIME,
    BY_DIAGNOSIS,
    "CREATE INDEX evaluations_by_session ON evaluations (session, happened_at) WHERE session IS NOT NULL",
    "CREATE INDEX evaluations_by_tenant ON evaluations (tenant, happened_at) WHERE tenant IS NOT NULL",
    "CREATE INDEX evaluations_by_user ON evaluations (user_hash, happened_at) WHERE user_hash IS NOT NULL",
    "CREATE INDEX evaluations_by_trace ON evaluations (trace_id) WHERE trace_id IS NOT NULL",
    "CREATE INDEX scores_by_record ON scores (record_id, position)",
    BY_METRIC,
    WITHOUT_VALUE,
    "CREATE INDEX scores_not_passed ON scores (metric, happened_at) WHERE passed = 0",
)
"""Results go by `happened_at`, when the turn began; where nothing says, that is `evaluated_at`."""


def check_version(version: int, path: str) -> None:
    """Refuse a database that a newer version wrote.

    Raises:
        ConfigurationError: If it is newer.
    """
    if version > SQLITE_SCHEMA:
        raise ConfigurationError(
            f"{path!r} has schema {version}, newer than {SQLITE_SCHEMA}; "
            "update steelyard or give another path"
        )
