"""Files and tables that other versions made: brought up to date, or refused and left alone."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from servers import PostgresServer
from sinks.making import make_evaluation, make_score
from steelyard.errors import ConfigurationError
from steelyard.record import Context, Record
from steelyard.report import TurnFilter, open_results
from steelyard.results import open_labels
from steelyard.results.labels import Label
from steelyard.results.queries import Scope
from steelyard.scores import Evaluation
from steelyard.sinks import PostgresSink, SQLiteSink, read_evaluations
from writing import write

OLDER = """DROP TABLE labels; DROP INDEX turn_keys_by_record; DELETE FROM turn_keys;
    CREATE TRIGGER turns_are_added AFTER INSERT ON evaluations BEGIN SELECT 1 / 0 FROM nowhere; END;
    CREATE TABLE labels (
        record_id TEXT NOT NULL, metric TEXT, claim INTEGER, value TEXT NOT NULL,
        note TEXT NOT NULL, who TEXT NOT NULL, labelled_at REAL NOT NULL, drawn REAL
    );
    CREATE UNIQUE INDEX labels_by_what_and_who
        ON labels (record_id, ifnull(metric, ''), ifnull(claim, -1), who);
    INSERT INTO labels VALUES ('r1', NULL, NULL, 'good', '', 'Ann', 1.0, 0.5);
    INSERT INTO turn_keys SELECT 'tag', 'demo', happened_at, record_id, turn FROM evaluations;
    PRAGMA user_version = 8;"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "steelyard.db"
    write(file, make_evaluation("r1"))
    return file


def execute(file: Path, script: str) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.executescript(script)


def test_a_file_of_the_schema_before_is_read_and_written_with_its_labels(path: Path) -> None:
    execute(path, OLDER)
    (first,) = read_evaluations(path)
    assert first == make_evaluation("r1")
    write(path, make_evaluation("r2"))
    labels = open_labels(path)
    labels.put([Label(record_id="r1", value="bad", who="Ann", labelled_at=2.0)])
    assert [(one.value, one.drawn) for one in labels] == [("bad", 0.5)]
    with closing(open_results(path)) as reader:
        assert [row.record_id for row in reader.turns(TurnFilter(tag="demo"))] == ["r2", "r1"]


SECOND = Path(__file__).with_name("schema2.sql")
FIRST = Path(__file__).with_name("postgres1.sql")
HAPPENED = {"r0": 1.6e9, "r1": 1.7e9 + 1, "r2": 1.7e9 + 2, "r3": 1.6e9 + 7200}
"""Nothing says when `r1` was, and the content of `r2` was not stored: they stay where they were judged."""


@pytest.fixture
def second(tmp_path: Path) -> Path:
    """A file of schema 2, as version 0.2.0.dev0 wrote it (`sqlite3 steelyard.db .dump`)."""
    path = tmp_path / "steelyard.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SECOND.read_text())
    return path


def times(path: Path) -> dict[str, float]:
    return {one.record_id: one.at for one in read_evaluations(path)}


def test_turns_of_an_old_file_get_the_time_at_which_they_happened(
    second: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="steelyard.sinks"):
        asyncio.run(SQLiteSink(second).write([make_evaluation("new")]))
    assert times(second) == {**HAPPENED, "new": 1.7e9}
    assert list(times(second)) == ["r0", "r3", "new", "r1", "r2"]
    assert "migrated 4 turns to schema 9; 2 do not say when they happened" in caplog.text
    with closing(sqlite3.connect(second)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (9,)
        scores = connection.execute(
            "SELECT e.record_id, s.metric, s.happened_at = e.happened_at FROM scores s "
            "JOIN evaluations e ON e.turn = s.turn WHERE s.record_id = 'r3' ORDER BY s.metric"
        ).fetchall()
        assert scores == [("r3", "context_relevancy", 1), ("r3", "faithfulness", 1)]
        sessions = "SELECT count(*) FROM evaluations WHERE session IS NOT NULL OR tenant IS NOT NULL"
        assert connection.execute(sessions).fetchone() == (0,)
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        assert not {name for name in tables if name.startswith("earlier_")}


EVIDENCE = {"r0": "known", "r1": "known", "r2": None, "r3": "known"}
"""`r2` was stored without its content, so that nothing says how its passages were known."""
LATER = {"cut": "guessed", "told": "told", "nothing": "none"}
"""Written by schema 3, or before it: passages that were cut out of a prompt had a note alone."""


def test_turns_of_an_old_file_say_how_their_passages_are_known_as_far_as_they_tell(second: Path) -> None:
    asyncio.run(SQLiteSink(second).write(list(map(of_kind, LATER))))
    with closing(sqlite3.connect(second)) as connection:
        connection.executescript(
            """DROP TABLE screened;
            DROP INDEX evaluations_by_diagnosis; ALTER TABLE evaluations DROP COLUMN diagnosis;
            DROP INDEX evaluations_by_time; ALTER TABLE evaluations DROP COLUMN evidence;
            CREATE INDEX evaluations_by_time ON evaluations (happened_at, record_id);
            PRAGMA user_version = 3;"""
        )
    with closing(open_results(second)) as reader:
        assert reader.totals(Scope()).evidence == {
            "known": 3,
            "told": 1,
            "guessed": 1,
            "none": 1,
            "unknown": 1,
        }
        assert [one.record_id for one in reader.turns(TurnFilter(evidence="unknown"))] == ["r2"]
    with closing(sqlite3.connect(second)) as connection:
        found = connection.execute("SELECT record_id, evidence FROM evaluations").fetchall()
    assert dict(found) == EVIDENCE | LATER


def of_kind(record_id: str) -> Evaluation:
    source = {"cut": "in_prompt", "told": "told", "nothing": "retrieved"}[record_id]
    record = Record(
        id=record_id,
        contexts=() if record_id == "nothing" else (Context(text="A passage."),),
        contexts_source=source,  # type: ignore[arg-type]
        notes=("contexts_from_prompt: passages were cut out of the prompt",) if record_id == "cut" else (),
    )
    return make_evaluation(record_id, make_score(id=record_id), record=record)


def test_reading_an_old_file_brings_it_up_to_date_with_its_labels(second: Path) -> None:
    (first, *_) = read_evaluations(second)
    assert (first.record_id, first.happened_at, first.evaluated_at) == ("r0", 1.6e9, 1.7e9)
    assert first.record is not None and first.record.question == "Question 0?"
    assert first["faithfulness"].value == 0.5 and first["faithfulness"].explanation == "said"
    assert [label.record_id for label in open_labels(second)] == ["r0"]
    with closing(open_results(second)) as reader:
        scores = reader.scores(Scope(), turns=4)
        assert {name: (one.times // 86_400).tolist() for name, one in scores.items()} == {
            "context_relevancy": [18518],
            "faithfulness": [18518, 18518, 19675, 19675],
        }


def test_a_file_of_a_newer_schema_is_refused_and_left_alone(path: Path) -> None:
    said = "newer than 9; update steelyard"
    execute(path, "PRAGMA user_version = 99; PRAGMA journal_mode = DELETE")
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(ConfigurationError, match=said):
        write(path, make_evaluation("r2"))
    with pytest.raises(ConfigurationError, match=said):
        list(read_evaluations(path))
    with pytest.raises(ConfigurationError, match=said):
        open_labels(path).put([Label(record_id="r1", value="good", who="Ann", labelled_at=1.0)])
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_an_old_file_that_cannot_be_written_is_refused_with_the_way_out(path: Path) -> None:
    execute(path, OLDER)
    path.chmod(0o400)
    path.parent.chmod(0o500)
    with pytest.raises(ConfigurationError, match="earlier version .* copy it to where it can be written"):
        list(read_evaluations(path))


def test_turns_of_an_old_postgres_get_the_time_at_which_they_happened(
    postgres: PostgresServer, second: Path
) -> None:
    url = postgres.new_database()
    with psycopg.connect(url) as connection, closing(sqlite3.connect(second)) as old:
        connection.execute("CREATE SCHEMA steelyard")
        connection.execute("SET search_path = steelyard")
        connection.execute("CREATE TABLE schema_version (version integer NOT NULL)")
        connection.execute("INSERT INTO schema_version VALUES (1)")
        connection.execute(FIRST.read_text())
        for table in ("bodies", "evaluations", "scores"):
            rows = old.execute(f"SELECT * FROM {table}")
            names = [name for name, *_ in rows.description]
            values = ", ".join(["%s"] * len(names))
            for row in rows:
                connection.execute(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({values})", row)
        connection.execute("SELECT setval('bodies_id_seq', 100)")
    PostgresSink(url).open()
    with closing(open_results(url)) as reader:
        assert {name: one.at for name in HAPPENED if (one := reader.evaluation(name))} == HAPPENED
        assert reader.totals(Scope()).evidence == {"known": 3, "unknown": 1}
    asyncio.run(PostgresSink(url).write([make_evaluation("new")]))
    with psycopg.connect(url) as connection:
        query = "SELECT count(*) FROM steelyard.scores s JOIN steelyard.evaluations e ON e.turn = s.turn"
        assert connection.execute(query).fetchone() == (7,)
        # From the version before, whose other tables were there already.
        connection.execute("DROP TABLE steelyard.screened")
        connection.execute("ALTER TABLE steelyard.evaluations DROP COLUMN diagnosis")
        connection.execute("ALTER TABLE steelyard.evaluations DROP COLUMN evidence")
        connection.execute(
            "CREATE INDEX evaluations_by_time ON steelyard.evaluations (happened_at, record_id)"
        )
        connection.execute("DELETE FROM steelyard.schema_version WHERE version >= 4")
    PostgresSink(url).open()
    with closing(open_results(url)) as reader:
        assert reader.totals(Scope()).evidence == {"known": 4, "unknown": 1}
