"""Whatever goes in, only outcomes that have a name come out: records, configuration, rows of our files."""

from __future__ import annotations

import json
import math
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import chdir, closing
from pathlib import Path
from typing import Any, get_args
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from online.helpers import FAITHFUL, check_law, finish, kind_judge, turn
from steelyard.errors import SkipReason, SteelyardError
from steelyard.online import Monitor, Settings, Spool, load_settings
from steelyard.online.queue._turns import Leased, Selected
from steelyard.record import Context, Record, Stage, TraceRef
from steelyard.scores import Evaluation, Score
from steelyard.sinks import read_evaluations
from steelyard.testing import MemorySink
from writing import write

pytestmark = pytest.mark.faults
relaxed = settings(suppress_health_check=list(HealthCheck), deadline=None)


class Hostile:
    """An object whose every method raises, but for the one with which a failing example is shown."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("no")

    def __repr__(self) -> str:
        return "Hostile()"

    def __str__(self) -> str:
        raise RuntimeError("no")

    __hash__ = object.__hash__


texts = st.text() | st.sampled_from(["\ud800", "\x00", "\u202e", "[" * 500, "x" * 20_000, "<context>" * 50])
numbers = st.floats() | st.integers() | st.sampled_from([2**70, -(2**70), math.nan, math.inf])
plain = texts | numbers | st.none() | st.booleans() | st.binary(max_size=20)
anything = st.recursive(
    plain | st.builds(Hostile) | st.just(object()) | st.builds(lambda: iter([1, 2])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(texts, inner, max_size=3)
        | st.tuples(inner)
        | st.builds(Context, text=inner, id=inner, score=inner, rank=inner, query=inner)
        | st.builds(Stage, name=inner, query=inner, contexts=inner)
        | st.builds(TraceRef, trace_id=inner, span_id=inner, run_id=inner, sampled=inner)
    ),
    max_leaves=6,
)
records = st.dictionaries(
    st.sampled_from([name for name in Record.__dataclass_fields__ if name != "id"]), anything, max_size=4
)


@pytest.fixture(scope="module")
def monitors() -> Iterator[list[tuple[Monitor, MemorySink]]]:
    """One in memory and one with a spool; starting one for each example would take most of the time."""
    with tempfile.TemporaryDirectory() as folder:
        made = []
        for spool in (None, Path(folder) / "s.db"):
            sink = MemorySink()
            made.append((Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[sink], spool=spool), sink))
        yield made
        for monitor, _ in made:
            monitor.close(0)


@settings(relaxed, max_examples=60)
@given(changes=records)
def test_any_record_gets_a_named_outcome(
    monitors: list[tuple[Monitor, MemorySink]], changes: dict[str, Any]
) -> None:
    """And the next one is judged as if nothing had been."""
    try:
        record: Any = turn(**changes)
    except (SteelyardError, TypeError, ValueError, RuntimeError):
        record = changes  # not even a Record: submit must take that too
    for monitor, sink in monitors:
        before = monitor.stats()
        sink.evaluations.clear()
        finish(monitor, [record, after := turn()])
        stats = monitor.stats()
        check_law(stats)
        assert stats.seen == before.seen + 2
        assert set(stats.skipped) <= set(get_args(SkipReason))
        assert all(cause.isidentifier() for cause in stats.dead)
        assert stats.restarts == 0
        judged = {evaluation.record_id: evaluation for evaluation in sink.evaluations}
        assert judged[after.id]["faithfulness"].hard_value == 1.0
        for evaluation in judged.values():
            score = evaluation["faithfulness"]
            assert (score.status == "scored") == (score.value is not None)
            assert score.status == "scored" or score.cause


names = st.sampled_from([*Settings.__dataclass_fields__, "rule", "SPOOL", ""])
words = st.sampled_from(
    ["0.5", "-1", "true", "[]", "{}", "[[[[", '"text"', "faithfulness", "openai:", "1e999", "nan", "inf"]
    + ["sqlite:", "\x00", "2020-01-01", "{ rate = 2 }", '[{ tags = "x" }]', "{ path = 7 }", "[" * 3000]
)
entries = st.sampled_from(["", "__PATH", "__RATE", "__COST_PER_DAY", "__PRICE", "____", "__X__Y"])
tables = st.dictionaries(names, words | st.text(max_size=20), max_size=3)


@settings(relaxed, max_examples=60)
@given(table=tables, extra=st.text(max_size=10), variables=st.dictionaries(st.tuples(names, entries), words))
def test_any_configuration_is_taken_or_refused_by_name(
    table: dict[str, str], extra: str, variables: dict[tuple[str, str], str]
) -> None:
    """By `ConfigurationError`, or `MissingDependency` where it asks for what is not installed."""
    lines = [f"{name} = {value}" for name, value in table.items()]
    environ = {
        f"STEELYARD_{name}{entry}".upper(): value.replace("\x00", "")
        for (name, entry), value in variables.items()
    }
    with tempfile.TemporaryDirectory() as folder, chdir(folder), patch.dict(os.environ, environ):
        file = Path(folder) / "steelyard.toml"
        file.write_bytes("\n".join([*lines, extra]).encode("utf-8", "surrogatepass"))
        with patch.dict(os.environ, {"STEELYARD_CONFIG": str(file)}):
            try:
                load_settings()
                Monitor().close(0)
            except SteelyardError as error:
                assert str(error)


columns = st.fixed_dictionaries(
    {},
    optional={
        "state": st.sampled_from(["waiting", "leased", "evaluated", "dead", "odd", ""]),
        "body": st.none() | st.text(max_size=50) | st.sampled_from(["{}", "[]", "null", "[" * 5000, "1"]),
        "size": st.integers(-10, 2**40),
        "attempts": st.integers(-5, 9),
        "postponed": st.integers(-5, 99),
        "not_before": st.floats(allow_nan=False),
        "lease": st.none() | st.text(max_size=5),
        "lease_until": st.none() | st.floats(allow_nan=False),
    },
)


@settings(relaxed, max_examples=30)
@given(row=columns, result=st.text(max_size=50) | st.sampled_from(["{}", "[" * 5000, "null"]))
def test_any_row_of_a_spool_ends_alone(row: dict[str, Any], result: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.db"
        spool = Spool(path)
        spool.put([Selected(turn("odd"), 0.0, 1.0), Selected(turn("fine"), 0.0, 1.0)])
        spool.close()
        with closing(sqlite3.connect(path, isolation_level=None)) as file:
            for name, value in row.items():
                file.execute(f"UPDATE turns SET {name} = ? WHERE record_id = 'odd'", (_storable(value),))
            file.execute("INSERT INTO results VALUES (77, ?)", (_storable(result),))
            file.execute("INSERT INTO parked VALUES ('', 77, NULL, 0)")
        spool = Spool(path)
        found = []
        for _ in range(8):
            for leased in spool.lease(10):
                if isinstance(leased, Leased):
                    found.append(leased.turn.record.id)
                    spool.finish(leased, Evaluation(record_id=leased.turn.record.id, scores=()))
        assert found.count("fine") == 1
        assert spool.counts().evaluated >= 1
        spool.close()


@settings(relaxed, max_examples=30)
@given(
    row=st.dictionaries(
        st.sampled_from(["question", "metadata", "tags", "trace_id", "cost", "body", "duration"]),
        st.text(max_size=30) | st.integers(-(2**60), 2**60) | st.binary(max_size=30),
        max_size=3,
    ),
    score=st.dictionaries(
        st.sampled_from(["value", "passed", "status", "direction", "metric", "calibrated", "body"]),
        st.text(max_size=30) | st.integers(-(2**60), 2**60) | st.binary(max_size=30),
        max_size=3,
    ),
)
def test_any_row_of_the_results_spoils_only_itself(row: dict[str, Any], score: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.db"
        made = [
            Evaluation(
                record_id=name, scores=(Score(metric="m", status="scored", value=0.5),), record=turn(name)
            )
            for name in ("odd", "fine")
        ]
        write(path, *made)
        with closing(sqlite3.connect(path, isolation_level=None)) as file:
            for table, changes in (("evaluations", row), ("scores", score)):
                for name, value in changes.items():
                    sql = f"UPDATE {table} SET {name} = ? WHERE record_id = 'odd'"
                    file.execute(sql, (_storable(value),))
        read = list(read_evaluations(path))
        assert [one["m"].value for one in read if one.record_id == "fine"] == [0.5]
        assert len(read) <= 2


def _storable(value: Any) -> Any:
    return json.loads(json.dumps(value).replace("\\ud", "?")) if isinstance(value, str) else value
