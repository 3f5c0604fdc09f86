"""The tables of a results database, and how an Evaluation becomes their rows and back.

The columns are for queries; the `json` column of each row is the whole value, which is what the reader uses.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from steelyard.errors import ConfigurationError
from steelyard.record import text_of
from steelyard.scores import Evaluation, Score, evaluation_from_dict, evaluation_to_dict, score_to_dict

SQLITE_SCHEMA = 1
"""Version of the tables, kept in `PRAGMA user_version`."""

_TABLES = (
    """CREATE TABLE evaluations (
        record_id TEXT PRIMARY KEY, evaluated_at REAL NOT NULL, duration REAL NOT NULL,
        trace_id TEXT, span_id TEXT, run_id TEXT, framework TEXT,
        record_status TEXT, question TEXT, answer TEXT, tags TEXT,
        requests INTEGER NOT NULL, questions INTEGER NOT NULL, reasked INTEGER NOT NULL,
        prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL,
        cost REAL, seconds REAL NOT NULL, json TEXT NOT NULL
    ) WITHOUT ROWID""",
    """CREATE TABLE scores (
        id TEXT PRIMARY KEY, record_id TEXT NOT NULL, position INTEGER NOT NULL, evaluated_at REAL NOT NULL,
        metric TEXT NOT NULL, status TEXT NOT NULL, value REAL, passed INTEGER, label TEXT,
        threshold REAL, direction TEXT NOT NULL, standard_error REAL, inclusion_probability REAL NOT NULL,
        cause TEXT, explanation TEXT NOT NULL, reading TEXT NOT NULL,
        judge TEXT, embedder TEXT, prompt_version TEXT, metric_version TEXT, fuse TEXT, calibrated INTEGER,
        json TEXT NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX evaluations_by_time ON evaluations (evaluated_at)",
    "CREATE INDEX evaluations_by_trace ON evaluations (trace_id) WHERE trace_id IS NOT NULL",
    "CREATE INDEX scores_by_record ON scores (record_id, position)",
    "CREATE INDEX scores_by_metric_and_time ON scores (metric, evaluated_at, value)",
    "CREATE INDEX scores_not_passed ON scores (metric, evaluated_at) WHERE passed = 0",
)


def create_tables(connection: sqlite3.Connection, path: str) -> None:
    """Make the tables in a new database; leave those of this version alone.

    Raises:
        ConfigurationError: If the file was written by a newer version, or belongs to something else.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                raise ConfigurationError(
                    f"{path!r} is a database of another program; give SQLiteSink another path"
                )
            for statement in _TABLES:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {SQLITE_SCHEMA}")
        check_version(version, path)
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


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


def evaluation_row(evaluation: Evaluation) -> dict[str, Any]:
    """The row of the `evaluations` table; content is there only if the Evaluation still has its record."""
    record, trace, usage = evaluation.record, evaluation.trace, evaluation.usage
    data = evaluation_to_dict(evaluation.replace(scores=()))
    return _row(
        record_id=evaluation.record_id,
        evaluated_at=evaluation.evaluated_at,
        duration=evaluation.duration,
        trace_id=trace and trace.trace_id,
        span_id=trace and trace.span_id,
        run_id=trace and trace.run_id,
        framework=trace and trace.framework,
        record_status=record and record.status,
        question=record and data["record"].get("question", ""),
        answer=record and data["record"].get("answer", ""),
        tags=json.dumps(data["record"].get("tags", []), ensure_ascii=False) if record else None,
        requests=usage.requests,
        questions=usage.questions,
        reasked=usage.reasked,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cached_tokens=usage.cached_tokens,
        cost=usage.cost,
        seconds=usage.seconds,
        json=json.dumps(data, ensure_ascii=False, separators=(",", ":")),
    )


def score_row(score: Score, evaluation: Evaluation, position: int) -> dict[str, Any]:
    """The row of the `scores` table."""
    made = score.provenance
    return _row(
        id=score.id or f"{evaluation.record_id}:{score.metric}",
        record_id=evaluation.record_id,
        position=position,
        evaluated_at=evaluation.evaluated_at,
        metric=score.metric,
        status=score.status,
        value=score.value,
        passed=score.passed,
        label=score.label,
        threshold=score.threshold,
        direction=score.direction,
        standard_error=score.standard_error,
        inclusion_probability=score.inclusion_probability,
        cause=score.cause,
        explanation=score.explanation,
        reading=score.options,
        judge=made and made.judge,
        embedder=made and made.embedder,
        prompt_version=made and made.prompt_version,
        metric_version=made and made.metric_version,
        fuse=made and made.fuse,
        calibrated=made and made.calibrated,
        json=json.dumps(score_to_dict(score), ensure_ascii=False, separators=(",", ":")),
    )


def _row(**columns: Any) -> dict[str, Any]:
    """SQLite takes no lone surrogates, and a judge may have sent some."""
    return {name: text_of(item) if isinstance(item, str) else item for name, item in columns.items()}


def upsert(table: str, key: str, row: Mapping[str, Any]) -> str:
    """The statement that inserts a row or replaces the one with the same key."""
    changes = ", ".join(f"{name} = excluded.{name}" for name in row if name != key)
    values = ", ".join(f":{name}" for name in row)
    insert = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({values})"
    return f"{insert} ON CONFLICT ({key}) DO UPDATE SET {changes}"


def evaluation_of(evaluation_json: str, score_jsons: list[str]) -> Evaluation:
    """The Evaluation again, from its own row and those of its Scores."""
    data = json.loads(evaluation_json)
    data["scores"] = [json.loads(score) for score in score_jsons]
    return evaluation_from_dict(data)
