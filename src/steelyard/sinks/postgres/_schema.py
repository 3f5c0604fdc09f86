"""The tables in Postgres: those of SQLite, with Postgres's types, versions and migrations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from psycopg import Connection, Cursor, sql
from psycopg.rows import dict_row

from steelyard.errors import ConfigurationError
from steelyard.scores import Evaluation
from steelyard.sinks.sqlite._rows import evaluation_from_rows, rows_of, screened_rows, told_in

VERSION: Final = 8
"""Of these tables, in `schema_version`; a change adds an entry to `_MIGRATIONS`."""
_LOCK: Final = 0x53544C59
"""Of Postgres's advisory locks: "STLY". Who holds it writes bodies, so that their ids grow as they commit."""
_FIRST: Final = (
    """CREATE TABLE bodies (id bigserial PRIMARY KEY, record_id text NOT NULL, body bytea NOT NULL)""",
    """CREATE TABLE evaluations (
        record_id text PRIMARY KEY,
        evaluated_at double precision NOT NULL, duration double precision NOT NULL,
        trace_id text, span_id text, run_id text, framework text,
        record_status text, question text, answer text, tags jsonb, metadata jsonb,
        requests bigint NOT NULL, questions bigint NOT NULL, reasked bigint NOT NULL,
        prompt_tokens bigint NOT NULL, completion_tokens bigint NOT NULL, cached_tokens bigint NOT NULL,
        cost double precision, seconds double precision NOT NULL, body bigint NOT NULL
    )""",
    """CREATE TABLE scores (
        id text PRIMARY KEY, record_id text NOT NULL, position integer NOT NULL,
        evaluated_at double precision NOT NULL,
        metric text NOT NULL, status text NOT NULL, value double precision, passed integer, label text,
        threshold double precision, direction text NOT NULL, standard_error double precision,
        inclusion_probability double precision NOT NULL,
        cause text, explanation text NOT NULL, options text NOT NULL,
        judge text, embedder text, prompt_version text, metric_version text, fuse text, calibrated integer,
        body bigint NOT NULL
    )""",
    """CREATE TABLE ledger (
        run text PRIMARY KEY, host text NOT NULL, pid integer NOT NULL,
        started_at double precision NOT NULL, updated_at double precision NOT NULL, counts text NOT NULL
    )""",
    """CREATE TABLE labels (
        seq bigserial PRIMARY KEY, record_id text NOT NULL, metric text, claim integer, value text NOT NULL,
        note text NOT NULL, who text NOT NULL, labelled_at double precision NOT NULL
    )""",
    "CREATE UNIQUE INDEX labels_by_what_and_who ON labels "
    "(record_id, coalesce(metric, ''), coalesce(claim, -1), who)",
    "CREATE INDEX bodies_by_record ON bodies (record_id)",
    "CREATE INDEX evaluations_by_time ON evaluations (evaluated_at, record_id)",
    "CREATE INDEX evaluations_by_trace ON evaluations (trace_id) WHERE trace_id IS NOT NULL",
    "CREATE INDEX scores_by_record ON scores (record_id, position)",
    "CREATE INDEX scores_by_metric_and_time ON scores (metric, evaluated_at, value)",
    "CREATE INDEX scores_without_value ON scores (metric, status, cause, evaluated_at) "
    "WHERE status <> 'scored'",
    "CREATE INDEX scores_not_passed ON scores (metric, evaluated_at) WHERE passed = 0",
)
_SECOND: Final = (
    # What every old turn needs takes longer than a statement may otherwise.
    "SET LOCAL statement_timeout = 0",
    """ALTER TABLE evaluations ADD turn bigserial, ADD happened_at double precision,
        ADD session text, ADD user_hash text, ADD tenant text""",
    "ALTER TABLE scores ADD turn bigint, ADD happened_at double precision",
    "UPDATE evaluations e SET happened_at = coalesce("
    "(SELECT t.at FROM told t WHERE t.record_id = e.record_id), e.evaluated_at)",
    "UPDATE scores s SET turn = e.turn, happened_at = e.happened_at "
    "FROM evaluations e WHERE e.record_id = s.record_id",
    "DELETE FROM scores WHERE turn IS NULL",
    "ALTER TABLE evaluations ALTER happened_at SET NOT NULL",
    "ALTER TABLE scores ALTER happened_at SET NOT NULL, ALTER turn SET NOT NULL",
    *(
        f"DROP INDEX {name}"
        for name in (
            *("evaluations_by_time", "scores_by_metric_and_time", "scores_without_value"),
            "scores_not_passed",
        )
    ),
    "CREATE UNIQUE INDEX evaluations_by_turn ON evaluations (turn)",
    "CREATE INDEX evaluations_by_time ON evaluations (happened_at, record_id)",
    "CREATE INDEX evaluations_by_session ON evaluations (session, happened_at) WHERE session IS NOT NULL",
    "CREATE INDEX evaluations_by_tenant ON evaluations (tenant, happened_at) WHERE tenant IS NOT NULL",
    "CREATE INDEX evaluations_by_user ON evaluations (user_hash, happened_at) WHERE user_hash IS NOT NULL",
    "CREATE INDEX scores_by_metric_and_time ON scores (metric, happened_at, value)",
    "CREATE INDEX scores_without_value ON scores (metric, status, cause, happened_at) "
    "WHERE status <> 'scored'",
    "CREATE INDEX scores_not_passed ON scores (metric, happened_at) WHERE passed = 0",
)
# With which probability the turn of a label was drawn; of older labels nobody knows.
_THIRD: Final = ("ALTER TABLE labels ADD drawn double precision",)
_FOURTH: Final = (
    "SET LOCAL statement_timeout = 0",
    "ALTER TABLE evaluations ADD evidence text",
    "UPDATE evaluations e SET evidence = t.evidence FROM told t WHERE t.record_id = e.record_id",
    "DROP INDEX evaluations_by_time",
    "CREATE INDEX evaluations_by_time ON evaluations (happened_at, record_id, evidence)",
)
_FIFTH: Final = (
    "SET LOCAL statement_timeout = 0",
    "ALTER TABLE evaluations ADD diagnosis text",
    "CREATE INDEX evaluations_by_diagnosis ON evaluations (diagnosis, happened_at, record_id) "
    "WHERE diagnosis IS NOT NULL",
)
_SIXTH: Final = (
    """CREATE TABLE screened (
        record_id text NOT NULL, metric text NOT NULL, happened_at double precision NOT NULL,
        value double precision, inclusion_probability double precision NOT NULL,
        judge text NOT NULL, fitted text NOT NULL, PRIMARY KEY (record_id, metric)
    )""",
    "CREATE INDEX screened_by_metric_and_time ON screened (metric, happened_at)",
)
# With the turn in it every so many-th score is found without a look at the others.
_SEVENTH: Final = (
    "SET LOCAL statement_timeout = 0",
    "DROP INDEX scores_by_metric_and_time",
    "CREATE INDEX scores_by_metric_and_time ON scores (metric, happened_at, value, turn)",
    "DROP INDEX scores_without_value",
    "CREATE INDEX scores_without_value ON scores "
    "(metric, status, cause, happened_at, turn, inclusion_probability) WHERE status <> 'scored'",
)
_EIGHTH: Final = (
    """CREATE TABLE IF NOT EXISTS judge_checks (
        id bigserial PRIMARY KEY, checked_at double precision NOT NULL, judge text NOT NULL,
        figures text NOT NULL
    )""",
)
_MIGRATIONS: Final[Mapping[int, Sequence[str]]] = {
    1: _FIRST,
    2: _SECOND,
    3: _THIRD,
    4: _FOURTH,
    5: _FIFTH,
    6: _SIXTH,
    7: _SEVENTH,
    8: _EIGHTH,
}
"""By version, the statements that lead to it from the one before."""
_AT_ONCE: Final = 1_000


def prepare(connection: Connection[Any], schema: str, *, shown: str, create: bool) -> None:
    """Make the tables or bring them up to date, in the caller's transaction; processes may do so at once.

    Raises:
        ConfigurationError: If a newer version made them, or there are none and none are to be made.
    """
    if create:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        if connection.execute("SELECT to_regnamespace(%s)", (schema,)).fetchone() == (None,):
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version integer NOT NULL)")
    version = 0
    if connection.execute("SELECT to_regclass('schema_version')").fetchone() != (None,):
        row = connection.execute("SELECT coalesce(max(version), 0) FROM schema_version").fetchone()
        version = row[0] if row else 0
    if version > VERSION:
        raise ConfigurationError(
            f"the tables in {shown!r} have version {version}, newer than {VERSION}; update steelyard"
        )
    if version < VERSION and not create:
        raise ConfigurationError(
            f"the tables in {shown!r} are of an earlier version; start your application once with this one, "
            "and PostgresSink brings them up to date"
            if version
            else f"there are no results in {shown!r} yet; PostgresSink makes the tables; "
            "run your application first"
        )
    for number in range(version + 1, VERSION + 1):
        if number == max(version + 1, 2) <= 4:  # there are bodies to read, and the rest of them is to come
            _read_told(connection)
        for statement in _MIGRATIONS[number]:
            connection.execute(statement)
        connection.execute("INSERT INTO schema_version VALUES (%s)", (number,))


def _read_told(connection: Connection[Any]) -> None:
    """What the bodies of old turns say, into a table for the length of the transaction."""
    connection.execute(
        "CREATE TEMP TABLE told (record_id text PRIMARY KEY, at double precision, evidence text) "
        "ON COMMIT DROP"
    )
    with connection.cursor(name="bodies") as bodies, connection.cursor() as told:
        bodies.execute("SELECT e.record_id, b.body FROM evaluations e JOIN bodies b ON b.id = e.body")
        while rows := bodies.fetchmany(_AT_ONCE):
            told.executemany(
                "INSERT INTO told VALUES (%s, %s, %s)",
                [(record, *told_in(bytes(body))) for record, body in rows],
            )


def take_turns(connection: Connection[Any]) -> None:
    """Wait for whoever else writes; then others wait until the caller's transaction ends."""
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))


def write_evaluations(connection: Connection[Any], evaluations: Sequence[Evaluation]) -> None:
    """Insert Evaluations, or replace the rows of the same results; in the caller's transaction.

    Raises:
        InvalidRecord: If one of them cannot be stored.
        psycopg.Error: If the database refuses a value, or has failed.
    """
    bodies, firsts, scores, screened = [], [], [], []
    for evaluation in {one.record_id: one for one in evaluations}.values():
        first, rows, packed = rows_of(evaluation)
        bodies.append((first["record_id"], packed))
        firsts.append(first)
        scores.append(rows)
        screened += screened_rows(evaluation, first)
    if not bodies:
        return
    # Who follows what is written must not pass over a number.
    take_turns(connection)
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO bodies (record_id, body) VALUES (%s, %s) RETURNING id", bodies, returning=True
        )
        numbers = _returned(cursor)
        cursor.executemany(
            f"{_upsert('evaluations', 'record_id', firsts[0])} RETURNING turn",
            [{**first, "body": number} for first, number in zip(firsts, numbers, strict=True)],
            returning=True,
        )
        turns = _returned(cursor)
        all_scores = [
            {**row, "turn": turn, "body": number}
            for rows, turn, number in zip(scores, turns, numbers, strict=True)
            for row in rows
        ]
        if all_scores:
            cursor.executemany(_upsert("scores", "id", all_scores[0]), all_scores)
        if screened:
            cursor.executemany(_upsert("screened", "record_id, metric", screened[0]), screened)
        cursor.execute(
            "DELETE FROM bodies b WHERE record_id = ANY(%(records)s) AND NOT id = ANY(%(new)s) "
            "AND NOT EXISTS (SELECT 1 FROM scores s WHERE s.record_id = b.record_id AND s.body = b.id)",
            {"records": [record for record, _ in bodies], "new": numbers},
        )


def _returned(cursor: Cursor[Any]) -> list[int]:
    """What each of many statements returned."""
    found = []
    while True:
        found.append(cursor.fetchone()[0])  # type: ignore[index]
        if not cursor.nextset():
            return found


def evaluation_in(connection: Connection[Any], record_id: str) -> Evaluation | None:
    """One turn with all its scores; None where there is none of this id.

    Raises:
        InvalidRecord: If what is stored is not an Evaluation.
    """
    with connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(
            "SELECT *, metadata::text AS metadata, tags::text AS tags FROM evaluations WHERE record_id = %s",
            (record_id,),
        ).fetchone()
        if row is None:
            return None
        scores = cursor.execute(
            "SELECT * FROM scores WHERE record_id = %s ORDER BY position, id", (record_id,)
        ).fetchall()
        wanted = [row["body"], *(score["body"] for score in scores)]
        bodies = cursor.execute("SELECT id, body FROM bodies WHERE id = ANY(%s)", (wanted,)).fetchall()
    return evaluation_from_rows(row, scores, {one["id"]: one["body"] for one in bodies})


def _upsert(table: str, key: str, row: Mapping[str, Any]) -> str:
    changes = ", ".join(f"{name} = excluded.{name}" for name in row if name not in key.split(", "))
    values = ", ".join(f"%({name})s" for name in row)
    insert = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({values})"
    return f"{insert} ON CONFLICT ({key}) DO UPDATE SET {changes}"
