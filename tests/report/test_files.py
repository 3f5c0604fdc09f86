"""Files that are damaged, locked, old, or no results files at all."""

from __future__ import annotations

import io
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from report.parts import results, turn
from steelyard import Context, Monitor, Record
from steelyard.errors import ConfigurationError
from steelyard.record import Timings
from steelyard.report import render_html, report
from steelyard.report.terminal import print_figures
from steelyard.results import open_labels
from steelyard.results.labels import Label
from steelyard.sinks import SQLiteSink


def test_a_file_that_is_not_a_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    path.write_bytes(b"SQLite format 3\x00 and then something else" * 100)
    with pytest.raises(ConfigurationError, match=r"s\.db"):
        report(path)
    empty = tmp_path / "empty.db"
    empty.touch()
    with pytest.raises(ConfigurationError, match=r"empty\.db' is empty"):
        report(empty)


def test_a_corrupt_row_is_left_out(tmp_path: Path) -> None:
    path = results(tmp_path / "s.db", [turn(n, n / 10, question=f"Question {n}?") for n in range(3)])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE bodies SET body = x'00' WHERE record_id = 'r0'")
        connection.execute("UPDATE evaluations SET tags = 'x', metadata = '{half' WHERE record_id = 'r0'")
        connection.commit()
    made = report(path, by="version", tag=None)
    assert [one.record_id for one in made.figures.worst[0].turns] == ["r1", "r2"]
    tagged = report(path, tag="web").figures
    assert [one.record_id for one in tagged.worst[0].turns] == ["r1", "r2"]


@pytest.mark.parametrize("at", [1.8e12, -1.0, 1e300])
def test_a_turn_at_a_time_of_no_calendar_spoils_no_report_and_is_not_put_there(
    tmp_path: Path, at: float
) -> None:
    """Such as milliseconds that are taken for seconds."""
    path = tmp_path / "s.db"
    monitor = Monitor(metrics=["faithfulness"], sinks=[SQLiteSink(path)])
    passage = Context(text="It was finished in 1889.")
    monitor.submit(
        Record(question="When?", contexts=(passage,), answer="In 1889.", timings=Timings(started_at=at))
    )
    assert monitor.flush(30) == 0
    monitor.close()
    first = report(path).figures.totals.first
    assert first is not None and abs(first - time.time()) < 600
    with closing(sqlite3.connect(path)) as connection, connection:  # as earlier versions stored it
        connection.execute("UPDATE evaluations SET happened_at = ?", (at,))
        connection.execute("UPDATE scores SET happened_at = ?", (at,))
    made = report(path)
    assert "faithfulness" in render_html(made.figures)
    print_figures(Console(file=io.StringIO()), made.figures)


def test_whichever_page_of_a_file_is_damaged_it_is_named(tmp_path: Path) -> None:
    path = results(tmp_path / "s.db", [turn(n, 0.5) for n in range(50)])
    whole, read = path.read_bytes(), 0
    for start in range(4096, len(whole), 4096):
        path.write_bytes(whole[:start] + b"\xff" * 4096 + whole[start + 4096 :])
        try:
            report(path)
            read += 1
        except ConfigurationError as error:
            assert "cannot be read" in str(error)
    assert 0 < read < len(whole) // 8192


def test_a_locked_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = results(tmp_path / "s.db", [turn(1, 0.5)])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("BEGIN EXCLUSIVE")
        real = sqlite3.connect
        monkeypatch.setattr(
            sqlite3, "connect", lambda *args, **more: real(*args, **{**more, "timeout": 0.05})
        )
        with pytest.raises(ConfigurationError, match="locked by another program"):
            report(path)


@pytest.mark.parametrize("read", [report, lambda path: open_labels(path).of("r1")])
def test_a_file_that_is_locked_while_it_is_read_is_named(
    read: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = results(tmp_path / "s.db", [turn(1, 0.5)])
    open_labels(path).put([Label(record_id="r1", value="good", who="me", labelled_at=1.0)])
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = DELETE")

        class LockedFromNowOn(sqlite3.Connection):
            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                found = super().execute(sql, *values)
                if sql.endswith("LIMIT 0"):  # the last look before a file counts as one of results
                    found.close()
                    other.execute("BEGIN EXCLUSIVE")
                return found

        real = sqlite3.connect
        monkeypatch.setattr(
            sqlite3,
            "connect",
            lambda *args, **more: real(*args, **{**more, "timeout": 0.05, "factory": LockedFromNowOn}),
        )
        with pytest.raises(ConfigurationError, match="cannot be read"):
            read(path)


def test_a_file_of_version_0_1_0_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    dump = Path(__file__).parent.parent / "sinks" / "schema1.sql"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(dump.read_text())
    made = report(path)
    assert made.figures.totals.turns == 3
    (gone,) = made.figures.missing
    assert (gone.metric, gone.cause, gone.count) == ("answer_relevancy", "timeout", 2)
    assert gone.explanation == "the judge did not answer in time"
    assert "the judge did not answer in time" in render_html(made.figures)
