"""The results file over months: its size, its age, its owner, its older versions, odd values in it."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from sinks.making import failed, make_evaluation, make_score
from steelyard import Context, Record, evaluate
from steelyard.cli import demo
from steelyard.cli._app import build
from steelyard.errors import ConfigurationError
from steelyard.results import open_labels
from steelyard.results._table_sink import oldest_beyond
from steelyard.results.counts import ScoreCounts
from steelyard.results.labels import Label
from steelyard.scores import Evaluation, Usage
from steelyard.sinks import JSONLSink, Retention, SQLiteSink, prune, read_evaluations, read_jsonl
from steelyard.text import sentences
from writing import write

FIRST = Path(__file__).with_name("schema1.sql")
EVERYTHING = [
    make_evaluation("a"),
    make_evaluation(
        "b", failed(id="b-1"), make_score("m", id="b-2", label=None), evaluated_at=1_700_000_001.0
    ),
    make_evaluation("c", make_score(id=""), record=None, trace=None, evaluated_at=1_700_000_002.0),
]


def database_of_schema_1(path: Path) -> Path:
    """As version 0.1.0 wrote it (`sqlite3 steelyard.db .dump`)."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(FIRST.read_text())
    return path


def many(count: int, *, days: float = 1.0) -> list[Evaluation]:
    now = 1_800_000_000.0
    return [
        make_evaluation(f"r{n}", make_score(id=f"r{n}"), evaluated_at=now - (count - 1 - n) * 86_400 * days)
        for n in range(count)
    ]


def ids(path: Path) -> list[str]:
    return [one.record_id for one in read_evaluations(path)]


def test_a_file_of_schema_1_is_migrated_whole(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What cannot be read is counted."""
    path = database_of_schema_1(tmp_path / "x.db")
    path.chmod(0o644)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            """CREATE TEMP TABLE bad AS SELECT * FROM evaluations WHERE record_id = 'c';
            UPDATE bad SET record_id = 'bad', json = '{'; INSERT INTO evaluations SELECT * FROM bad;"""
        )
    write(SQLiteSink(path), make_evaluation("new", make_score(id="new"), evaluated_at=1.8e9))
    *old, new = read_evaluations(path)
    assert [one.replace(scores=()) for one in old] == [one.replace(scores=()) for one in EVERYTHING]
    assert [one.scores for one in old] == [one.scores for one in EVERYTHING]
    assert new.record_id == "new"
    assert "migrated 3 evaluations to schema 9; 1 could not be read" in caplog.text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with closing(sqlite3.connect(path)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")}
        assert tables >= {"bodies", "evaluations", "ledger", "scores"} and "old" not in "".join(tables)
        assert connection.execute("PRAGMA user_version").fetchone() == (9,)


def test_a_file_of_schema_1_is_read_by_bringing_it_up_to_date(tmp_path: Path) -> None:
    path = database_of_schema_1(tmp_path / "x.db")
    assert list(read_evaluations(path)) == EVERYTHING
    assert [len(one.scores) for one in read_evaluations(path, metric="m")] == [1]


def typical_records() -> list[Record]:
    """Five passages of some 900 characters each, and an answer of six of their sentences."""
    text = (Path(demo.__file__).parent / "weighing.txt").read_text(encoding="utf-8")
    words = text.split()
    passages = [" ".join(words[start : start + 150]) for start in range(0, len(words) - 150, 150)]
    records = []
    for number in range(0, len(passages) - 4, 5):
        contexts = passages[number : number + 5]
        found = [one for one in sentences(" ".join(contexts)) if 30 < len(one.text) < 400]
        answer = " ".join(one.text for one in found[:12:2])
        records.append(
            Record(
                question=f"What does the application do about {found[0].text[:60]}?",
                contexts=tuple(Context(text=one) for one in contexts),
                answer=answer,
            )
        )
    return records


def test_a_typical_turn_takes_at_most_8_kib(tmp_path: Path) -> None:
    evaluations = evaluate(typical_records(), judge="local", progress=False).evaluations
    turns = [
        one.replace(
            record_id=f"{copy}-{one.record_id}",
            scores=tuple(replace(score, id=f"{copy}-{score.id}"[:32]) for score in one.scores),
        )
        for copy in range(90)
        for one in evaluations
    ]
    write(SQLiteSink(tmp_path / "x.db"), *turns)
    assert (tmp_path / "x.db").stat().st_size / len(turns) <= 8 * 1024
    first = next(iter(read_evaluations(tmp_path / "x.db", limit=1)))
    [written] = [one for one in turns if one.record_id == first.record_id]
    for score, stored in zip(written.scores, first.scores, strict=True):
        probabilities = [verdict.probability for verdict in score.verdicts]
        assert [verdict.probability for verdict in stored.verdicts] == pytest.approx(probabilities, abs=1e-6)


@given(turns=st.integers(1, 190), used=st.integers(1, 10**7), share=st.floats(0.01, 1.5))
def test_a_file_that_is_too_large_loses_as_many_turns_as_it_must(turns: int, used: int, share: float) -> None:
    keep = max(1, int(used * share))
    rows = [(f"r{number:03}", float(number)) for number in range(turns)]
    found: Any = SimpleNamespace(fetchall=lambda: rows)
    gone = oldest_beyond(lambda *_: found, Retention(bytes=keep), now=0.0, turns=turns, used=used)
    # If turns are equally large, what is left fits, and with one turn more it would not.
    left = turns - len(gone)
    assert gone == [record for record, _ in rows[: len(gone)]]
    assert left * used <= keep * turns or not left
    assert not gone or (left + 1) * used > keep * turns


@pytest.mark.parametrize(
    ("keep", "left"),
    [("7.5d", 8), (Retention(turns=5), 5), (5, 5), ("300d, 12 turns", 12), ("180h", 8), ("1w,50", 8)],
)
def test_the_oldest_beyond_a_limit_are_deleted(tmp_path: Path, keep: Any, left: int) -> None:
    path = tmp_path / "x.db"
    turns = (turn.replace(screen=(make_score(id=f"cheap {turn.record_id}"),)) for turn in many(20))
    write(SQLiteSink(path), *turns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.time", lambda: 1_800_000_000.0)
        done = prune(path, keep=keep)
    assert (done.turns, done.left) == (20 - left, left)
    assert ids(path) == [f"r{n}" for n in range(20 - left, 20)]
    with closing(sqlite3.connect(path)) as connection:
        for table in ("scores", "screened", "bodies"):
            assert connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone() == (left,)


def test_labels_stay_when_their_turns_are_deleted(tmp_path: Path) -> None:
    path = str(tmp_path / "x.db")
    write(SQLiteSink(path), *many(5))
    open_labels(path).put([Label(record_id="r0", value="bad", who="Ann", labelled_at=5.0, note="")])
    assert prune(path, keep=1).left == 1
    assert [label.record_id for label in open_labels(path)] == ["r0"]


def test_space_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    write(SQLiteSink(path), *many(600))
    size = path.stat().st_size
    done = prune(path, keep=f"{size // 2000}kb")
    assert done.bytes_after <= size / 2
    assert path.stat().st_size <= size / 2
    assert ids(path)[-1] == "r599"


async def test_a_sink_keeps_to_its_limits_while_it_writes(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    sink = SQLiteSink(path, keep=50)
    turns = many(400)

    for start in range(0, 400, 40):
        sink._next_look = 0.0  # a minute has passed
        await sink.write(turns[start : start + 40])
    await sink.aclose()
    assert ids(path) == [f"r{n}" for n in range(350, 400)]


def test_a_clock_that_jumps_ahead_deletes_nothing_for_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, day, began = tmp_path / "x.db", 86_400.0, time.time()
    now = {"ahead": 0.0, "on": 0.0}
    monkeypatch.setattr(time, "time", lambda: began + sum(now.values()))
    monkeypatch.setattr(time, "CLOCK_BOOTTIME", 7, raising=False)
    monkeypatch.setattr(time, "clock_gettime", lambda clock: now["on"], raising=False)
    sink = SQLiteSink(path, keep="30d")
    turns = [make_evaluation(f"r{n}", evaluated_at=began - n * day) for n in range(40)]
    left = []
    for now["ahead"], now["on"] in ((0.0, 0.0), (4000 * day, 600.0), (4000 * day, 1.1 * day)):
        sink._next_look = 0.0  # a minute has passed
        write(sink, *turns[:30])
        left.append(len(ids(path)))
    assert left == [30, 30, 0]


@pytest.mark.parametrize("keep", ["", "x30d", "30y", 0, -1, True, "0d", "1d,2d", 1.5])
def test_limits_that_mean_nothing_are_refused(keep: Any) -> None:
    with pytest.raises(ConfigurationError, match="keep"):
        SQLiteSink(keep=keep)


def test_the_command(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    write(SQLiteSink(path), *many(20))
    result = CliRunner().invoke(build(), ["prune", str(path), "--keep", "5"])
    assert "deleted 15 turns, 5 are left" in result.output
    missing = CliRunner().invoke(build(), ["prune", str(tmp_path / "no.db"), "--keep", "5"])
    assert "there is no results file" in str(missing.exception or missing.output)
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'scores'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    broken = CliRunner().invoke(build(), ["prune", str(path), "--keep", "1"])
    assert "cannot be pruned" in str(broken.exception or broken.output)


@pytest.mark.skipif(sys.platform == "win32", reason="needs file modes")
def test_new_files_are_private(tmp_path: Path) -> None:
    os.umask(os.umask(0o022))
    sink = SQLiteSink(tmp_path / "x.db")
    asyncio.run(sink.write([make_evaluation("a")]))
    write(JSONLSink(tmp_path / "x.jsonl"), make_evaluation("a"))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert set(modes) == {"x.db", "x.db-wal", "x.db-shm", "x.jsonl"}
    assert set(modes.values()) == {0o600}
    asyncio.run(sink.aclose())


def foreign_application_id(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA application_id = 77")


def foreign_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 7")


def foreign_tables_with_our_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE evaluations (record_id TEXT); PRAGMA user_version = 1")


def foreign_tables(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE users (name TEXT)")


def text_file(path: Path) -> None:
    path.write_text("notes")


def long_text_file(path: Path) -> None:
    path.write_text("my notes, " * 100)


FOREIGN = (
    *(foreign_application_id, foreign_version, foreign_tables_with_our_version, foreign_tables),
    *(text_file, long_text_file),
)


@pytest.mark.parametrize("make", FOREIGN)
def test_what_is_not_ours_is_refused_and_not_changed(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "app.db"
    make(path)
    before, mode = path.read_bytes(), path.stat().st_mode
    for use in (SQLiteSink(path).open, lambda: prune(path, keep=1), lambda: next(read_evaluations(path))):
        with pytest.raises(ConfigurationError, match="left alone"):
            use()
    assert (path.read_bytes(), path.stat().st_mode) == (before, mode)
    assert [file.name for file in tmp_path.iterdir()] == ["app.db"]


def test_a_dangling_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "x.db").symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(ConfigurationError, match="link to a file that does not exist"):
        SQLiteSink(tmp_path / "x.db").open()
    assert not (tmp_path / "elsewhere.db").exists()


def test_the_path_is_fixed_when_the_sink_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    database, lines = SQLiteSink("x.db"), JSONLSink("x.jsonl")
    monkeypatch.chdir(tmp_path / "other")
    write(database, make_evaluation("a"))
    write(lines, make_evaluation("a"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "x.db", "x.jsonl"]


class Unshowable:
    def __str__(self) -> str:
        raise RuntimeError("no")


ODD: dict[str, Evaluation] = {
    "numpy": make_evaluation(
        "odd",
        make_score("m", np.float32(0.5), id="o", passed=np.bool_(True), threshold=np.int64(0)),  # type: ignore[arg-type]
    ),
    "large": make_evaluation("odd", make_score("m", id="o"), usage=Usage(prompt_tokens=2**70)),
    "none": make_evaluation("odd", make_score("m", id="o", explanation=None)),
    "list": make_evaluation("odd", make_score("m", id="o", label=["a"])),
    "surrogates": make_evaluation("odd\ud800", make_score("m\udfff", id="o\ud800", label="\ud800")),
    "unshowable": make_evaluation("odd", make_score("m", id="o", label=Unshowable())),
    "verdicts": make_evaluation("odd", make_score("m", id="o", verdicts=3)),
    "clock": make_evaluation("odd", make_score("m", id="o"), evaluated_at=float("inf")),
}
REFUSED: dict[str, Evaluation] = {
    "nan": make_evaluation("odd", make_score("m", float("nan"), id="o")),
    "infinite": make_evaluation("odd", make_score("m", id="o", standard_error=float("inf"))),
    "text": make_evaluation("odd", make_score("m", "much", id="o")),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_odd_values_are_stored_as_what_they_mean(tmp_path: Path, odd: Evaluation) -> None:
    sink = SQLiteSink(tmp_path / "x.db")
    write(sink, make_evaluation("a"), odd, make_evaluation("b"))
    assert len(list(read_evaluations(tmp_path / "x.db"))) == 3
    assert sink.counts == ScoreCounts(written=5)
    lines = JSONLSink(tmp_path / "x.jsonl")
    write(lines, make_evaluation("a"), odd, make_evaluation("b"))
    assert len(list(read_jsonl(tmp_path / "x.jsonl"))) == 3


@pytest.mark.parametrize("odd", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_stored_is_refused_alone_and_counted(
    tmp_path: Path, odd: Evaluation, caplog: pytest.LogCaptureFixture
) -> None:
    sink = SQLiteSink(tmp_path / "x.db")
    write(sink, make_evaluation("a"), odd, make_evaluation("b"))
    assert ids(tmp_path / "x.db") == ["a", "b"]
    assert sink.counts == ScoreCounts(written=4, refused={"unstorable": 1})
    assert "cannot be stored" in caplog.text
    assert "much" not in caplog.text


def test_a_row_that_cannot_be_read_spoils_only_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "x.db"
    write(SQLiteSink(path), *many(4))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE bodies SET body = x'00' WHERE record_id = 'r1'")
        connection.execute("DELETE FROM bodies WHERE record_id = 'r2'")
    assert ids(path) == ["r0", "r3"]
    assert "2 evaluations cannot be read" in caplog.text
