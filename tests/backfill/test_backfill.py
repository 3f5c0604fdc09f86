"""Stored turns are scored once, wherever they are stored and however often it is tried."""

from __future__ import annotations

import asyncio
import csv
import dataclasses
import gzip
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from calibration.pairs import labelled
from online.helpers import FAITHFUL, kind_judge, yes
from steelyard import Monitor
from steelyard.backfill import (
    Backfill,
    BackfillCounts,
    Columns,
    Source,
    StoredTurnFilter,
    TracesFound,
    open_sources,
)
from steelyard.calibration import Calibration, Fit, Key, fit
from steelyard.errors import ConfigurationError, SteelyardError
from steelyard.online import Price
from steelyard.questions import Question, Reply, Request, YesNo
from steelyard.record import Context, Record, Timings, TraceRef
from steelyard.scores import Evaluation, Usage
from steelyard.sinks import SQLiteSink, read_evaluations
from steelyard.testing import MemorySink, ScriptedJudge

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
pytest.importorskip("duckdb", reason="duckdb is not installed")

DAY = 86_400.0
NOON = 1_790_000_000.0
MAP = Columns({"question": "prompt", "contexts": "docs", "answer": "reply", "time": "at"})


def rows(count: int) -> list[dict[str, Any]]:
    return [
        {
            "prompt": f"Who found element {number}?",
            "docs": ["Marie Curie found polonium in 1898.", f"Element {number} is a metal."],
            "reply": f"Marie Curie found element {number}.",
            "at": NOON + number * DAY,
            "team": "search" if number % 2 else "shop",
        }
        for number in range(count)
    ]


class Paid(ScriptedJudge):
    """Uses up a thousand tokens with each request."""

    async def answer(self, request: Request) -> Reply:
        reply = await super().answer(request)
        return dataclasses.replace(reply, usage=Usage(requests=1, prompt_tokens=1000))


def parquet(path: Path, found: Sequence[dict[str, Any]]) -> Path:
    pq.write_table(pa.Table.from_pylist(list(found)), path, row_group_size=50)
    return path


def no_traces(lines: object) -> TracesFound:
    raise AssertionError("there are no traces here")


def sources(*paths: Path, columns: Columns = MAP) -> list[Source]:
    return open_sources([str(path) for path in paths], columns=columns, read_traces=no_traces)


def filled(
    found: Sequence[Source],
    db: Path,
    *,
    judge: ScriptedJudge | None = None,
    sinks: Sequence[Any] = (),
    **more: Any,
) -> tuple[BackfillCounts, ScriptedJudge, list[tuple[str, str]]]:
    """Run a backfill; what became of it, who was asked, and what was bad."""
    judge = judge or kind_judge()
    bad: list[tuple[str, str]] = []
    made = Monitor(metrics=FAITHFUL, judge=judge, sinks=[SQLiteSink(db), *sinks]).options
    work = Backfill(found, options=made, results=db, bad=lambda where, why: bad.append((where, why)), **more)
    return asyncio.run(work.run()), judge, bad


def test_turns_that_failed_are_left_out_by_name(tmp_path: Path) -> None:
    said = ("ok", "error", "truncated", "cancelled")
    found = [{**row, "status": status} for row, status in zip(rows(4), said, strict=True)]
    counts, _, bad = filled(sources(parquet(tmp_path / "turns.parquet", found)), tmp_path / "s.db")
    assert (counts.judged, counts.left_out, bad) == (2, {"status_error": 1, "status_cancelled": 1}, [])


def test_the_same_turns_in_parquet_csv_and_lines_are_judged_once(tmp_path: Path) -> None:
    one = parquet(tmp_path / "turns.parquet", rows(10))
    two = tmp_path / "turns.csv"
    with two.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows(1)[0]))
        writer.writeheader()
        writer.writerows({**row, "docs": json.dumps(row["docs"])} for row in rows(10))
    three = tmp_path / "TURNS.JSONL.GZ"
    three.write_bytes(gzip.compress("".join(f"{json.dumps(row)}\n" for row in rows(11)).encode()))
    counts, judge, bad = filled(sources(one, two, three), tmp_path / "s.db")
    assert (counts.read, counts.judged, counts.left_out, bad) == (31, 11, {"duplicate": 20}, [])
    again, asked, _ = filled(sources(three), tmp_path / "s.db")
    assert (again.known, again.judged, len(asked.requests)) == (11, 0, 0)
    first = next(read_evaluations(tmp_path / "s.db")).record
    assert first is not None
    assert [context.text for context in first.contexts] == rows(1)[0]["docs"]
    assert first.metadata == {"team": "shop"}


def test_scores_carry_calibrated_values_as_a_monitor_gives_them(tmp_path: Path) -> None:
    made = fit(labelled(150, shift=2.5))
    assert isinstance(made, Fit)
    given = Calibration.of({Key("faithfulness", "scripted", "test"): made})
    sink = SQLiteSink(tmp_path / "s.db")
    options = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[sink], calibration=given).options
    found = sources(parquet(tmp_path / "t.parquet", rows(2)))
    asyncio.run(Backfill(found, options=options, results=tmp_path / "s.db").run())
    stored = list(read_evaluations(tmp_path / "s.db"))
    assert [evaluation["faithfulness"].calibration for evaluation in stored] == [given.version] * 2


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    found = sources(parquet(tmp_path / "t.parquet", rows(300)))

    class Stops(SQLiteSink):
        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            if self.counts.written >= 128:
                raise KeyboardInterrupt
            await super().write(evaluations)

    judge = kind_judge()
    made = Monitor(metrics=FAITHFUL, judge=judge, sinks=[Stops(tmp_path / "s.db")]).options
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(Backfill(found, options=made, results=tmp_path / "s.db").run())
    counts, asked, _ = filled(found, tmp_path / "s.db")
    assert (counts.known, counts.judged) == (128, 172)
    assert len(asked.requests) == 172
    assert len(list(read_evaluations(tmp_path / "s.db"))) == 300


def test_turns_that_were_scored_live_are_not_paid_for_again(tmp_path: Path) -> None:
    db = tmp_path / "s.db"
    path = tmp_path / "t.jsonl"
    records = [{"id": f"turn-{row['at']:.0f}", **row} for row in rows(6)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in records))
    monitor = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[SQLiteSink(db)])
    for row in records[:4]:
        monitor.submit(
            Record(id=row["id"], question=row["prompt"], answer=row["reply"], contexts=row["docs"])
        )
    assert monitor.flush(60) == 0
    monitor.close()
    counts, judge, _ = filled(sources(path), db)
    assert (counts.known, counts.judged, len(judge.requests)) == (4, 2, 2)


def test_a_failure_is_tried_again_by_the_next_run_and_what_does_not_apply_is_not(tmp_path: Path) -> None:
    path = parquet(tmp_path / "t.parquet", [*rows(3), {**rows(4)[3], "reply": "What?"}])

    def half(question: Question, request: Request) -> YesNo | None:
        return None if "element 1" in str(asdict(question)) else YesNo(value=True, probability=0.9)

    counts, _, _ = filled(sources(path), tmp_path / "s.db", judge=ScriptedJudge(half))
    assert (counts.judged, counts.failed) == (4, 1)
    counts, judge, _ = filled(sources(path), tmp_path / "s.db")
    assert (counts.known, counts.judged, counts.failed, len(judge.requests)) == (3, 1, 0, 1)


def test_period_conditions_and_sample_choose_turns(tmp_path: Path) -> None:
    path = parquet(tmp_path / "t.parquet", rows(100))
    meant = StoredTurnFilter(since=NOON + 10 * DAY, until=NOON + 30 * DAY, where=(("team", "shop"),))
    counts, _, _ = filled(sources(path), tmp_path / "a.db", meant=meant)
    assert (counts.judged, counts.left_out) == (10, {"other_time": 80, "other_value": 10})
    counts, _, _ = filled(sources(path), tmp_path / "b.db", sample=0.3)
    assert 15 <= counts.judged <= 45
    assert counts.judged + counts.left_out["sampled_out"] == 100
    scores = [score for found in read_evaluations(tmp_path / "b.db") for score in found.scores]
    assert {score.inclusion_probability for score in scores} == {0.3}
    wider, _, _ = filled(sources(path), tmp_path / "b.db", sample=0.6)
    assert wider.known == counts.judged


@pytest.mark.parametrize(
    "condition", ["tag=web", "id=own 1", "status=ok", "trace_id=t1", "team=search", "number=1", "tag=a=b"]
)
def test_a_condition_finds_the_turns_of_its_field_and_no_other(condition: str) -> None:
    turn = Record(
        id="own 1",
        question="Who?",
        answer="Ann.",
        tags=("web", "a=b"),
        trace=TraceRef(trace_id="t1"),
        metadata={"team": "search", "number": 1},
    )
    other = Record(id="own 2", question="Who?", answer="Ann.", status="cancelled")
    where = StoredTurnFilter.parse([f" {condition.partition('=')[0]} = {condition.partition('=')[2]}"])
    meant = StoredTurnFilter(where=where)
    assert (meant.leaves_out(turn), meant.leaves_out(other)) == (None, "other_value")
    assert meant.leaves_out(turn.replace(trace=None, tags=(), metadata={}, status="error", id="")) is not None
    # When a turn happened is not known, so that nobody can say whether it is meant.
    assert StoredTurnFilter(until=NOON, where=where).leaves_out(turn) == "no_time"


@pytest.mark.parametrize("condition", ["tag", "=web", " = "])
def test_a_condition_without_a_field_is_refused(condition: str) -> None:
    with pytest.raises(ConfigurationError, match="FIELD=VALUE"):
        StoredTurnFilter.parse([condition])


WRITTEN: dict[str, Any] = {
    "lists": [{"text": "Ann lit it.", "id": "p1", "score": 0.5}, "A lamp."],
    "text of a list": '[{"page_content": "Ann lit it.", "id": "p1", "score": 0.5, "rank": null}, "A lamp."]',
}


@pytest.mark.parametrize("name", ["t.jsonl", "t.json", "t.jsonl.gz"])
@pytest.mark.parametrize("contexts", WRITTEN.values(), ids=WRITTEN)
@pytest.mark.parametrize("at", [NOON, NOON * 1000, "2026-09-21T14:13:20", "2026-09-21T16:13:20+02:00"])
def test_however_a_turn_is_written_it_is_the_same(
    name: str, contexts: object, at: object, tmp_path: Path
) -> None:
    row = {
        "question": "Who?",
        "answer": "Ann.",
        "contexts": contexts,
        "time": at,
        "trace_id": 7,
        "metadata": '{"team": {"size": [2, 3]}, "kind": "its own"}',
        **{"more": {"a": [1, None]}, "kind": "a column"},
    }
    written = json.dumps([row]) if name == "t.json" else f"{json.dumps(row)}\n"
    path = tmp_path / name
    path.write_bytes(gzip.compress(written.encode()) if name.endswith("gz") else written.encode())
    [source] = sources(path, columns=Columns())
    [turn] = source.records(lambda where, why: pytest.fail(why))
    assert [(one.text, one.id, one.score) for one in turn.contexts] == [
        ("Ann lit it.", "p1", 0.5),
        ("A lamp.", None, None),
    ]
    assert turn.timings is not None and turn.timings.started_at == NOON
    assert turn.trace == TraceRef(trace_id="7", framework="backfill")
    assert turn.metadata == {"more": {"a": [1, None]}, "team": {"size": [2, 3]}, "kind": "its own"}


def stored(*found: Record) -> list[Source]:
    return [Source("own", lambda source, bad: iter(found))]


def asked_by_ann(number: int = 0) -> Record:
    context = Context(text="Marie Curie found polonium in 1898.")
    answer = "Marie Curie found polonium."
    return Record(id=f"own {number}", question="Who?", answer=answer, contexts=(context,), user="ann")


def masked(record: Record) -> Record:
    return Record(question="Who?", answer=record.answer, contexts=record.contexts, user=record.user)


@pytest.mark.parametrize("mask", [None, masked])
def test_a_run_hashes_users_and_keeps_ids_and_no_content(mask: Any, tmp_path: Path) -> None:
    sink, db = SQLiteSink(tmp_path / "s.db"), tmp_path / "s.db"
    made = Monitor(
        metrics=FAITHFUL, judge=kind_judge(), sinks=[sink], mask=mask, user_key="k" * 16, store_content=False
    ).options
    at = Timings(started_at=NOON)
    asyncio.run(Backfill(stored(asked_by_ann().replace(timings=at)), options=made, results=db).run())
    (found,) = read_evaluations(db)
    assert found.at == NOON
    assert (found.record_id, found.record) == ("own 0", None)
    assert found.user is not None and found.user.startswith("user-")
    assert not any(verdict.about for score in found.scores for verdict in score.verdicts)


def test_a_run_draws_its_sample_with_the_key_of_the_application(tmp_path: Path) -> None:
    turns = [asked_by_ann(number) for number in range(60)]
    made = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[], sample_key="s" * 16).options
    work = Backfill(stored(*turns), options=made, results=None, sample=0.5)
    picked = {task.record.id for task in work.tasks()}
    sink = MemorySink()
    monitor = Monitor(
        metrics=FAITHFUL, judge=kind_judge(), sinks=[sink], sample_rate=0.5, sample_key="s" * 16
    )
    for turn in turns:
        monitor.submit(turn)
    assert monitor.close(60) == 0
    assert picked == set(sink.by_record)


def test_a_budget_ends_the_run_before_it_is_exceeded(tmp_path: Path) -> None:
    path = parquet(tmp_path / "t.parquet", rows(200))
    judge = Paid(yes)
    counts, _, _ = filled(
        sources(path), tmp_path / "s.db", judge=judge, budget=0.0505, price=Price(input=1.0, output=1.0)
    )
    assert counts.judged == counts.usage.requests == 50  # a tenth of a cent each
    assert "budget" in counts.stopped


def test_a_mask_that_gives_no_record_leaves_its_turn_out(tmp_path: Path) -> None:
    judge, sink = kind_judge(), SQLiteSink(tmp_path / "s.db")
    mask: Any = dataclasses.asdict
    options = Monitor(metrics=FAITHFUL, judge=judge, sinks=[sink], mask=mask).options
    found = sources(parquet(tmp_path / "t.parquet", rows(3)))
    counts = asyncio.run(Backfill(found, options=options, results=tmp_path / "s.db").run())
    assert (counts.left_out, counts.judged, judge.requests) == ({"mask_failed": 3}, 0, [])


@pytest.mark.parametrize("good", [0, 1])
def test_a_judge_that_answers_nothing_from_the_first_on_ends_the_run(tmp_path: Path, good: int) -> None:
    path = parquet(tmp_path / "t.parquet", rows(100))
    left = [YesNo(value=True, probability=0.9)] * good
    judge = ScriptedJudge(lambda *_: left.pop() if left else None)
    counts, _, _ = filled(sources(path), tmp_path / "s.db", judge=judge)
    if good:
        assert (counts.judged, counts.stopped) == (100, "")
    else:
        assert counts.judged < 60 and "answered nothing" in counts.stopped


def test_a_sink_that_fails_ends_the_run_and_its_turns_are_not_taken_for_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steelyard.backfill._run._PAUSE", 0.001)
    found = sources(parquet(tmp_path / "t.parquet", rows(70)))

    class Vendor:
        name = "vendor"
        fails = 99
        taken = closed = 0

        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            if self.fails and self.taken:
                self.fails -= 1
                raise OSError("no")
            self.taken += len(evaluations)

        async def aclose(self) -> None:
            self.closed += 1

    vendor = Vendor()
    with pytest.raises(SteelyardError, match="'vendor' does not take results"):
        filled(found, tmp_path / "s.db", sinks=[vendor])
    assert (len(list(read_evaluations(tmp_path / "s.db"))), vendor.taken, vendor.closed) == (64, 64, 1)
    vendor.fails = 2  # which the third try gets over
    counts, _, _ = filled(found, tmp_path / "s.db", sinks=[vendor])
    assert (counts.known, counts.judged, vendor.taken, vendor.fails) == (64, 6, 70, 0)


def test_bad_tables_are_refused_by_name(tmp_path: Path) -> None:
    path = parquet(tmp_path / "t.parquet", rows(400))
    with pytest.raises(ConfigurationError, match="no column 'question'.*it has 'prompt', 'docs'"):
        sources(path, columns=Columns())
    with pytest.raises(ConfigurationError, match="no column 'text'"):
        sources(path, columns=Columns({"question": "text"}))
    with pytest.raises(ConfigurationError, match="'qestion' is not a part of a turn"):
        Columns.parse("qestion=prompt")
    whole = path.read_bytes()
    for name, body in {"cut": whole[:-20], "empty": b"", "noise": b"PAR1" + b"\0" * 99 + b"PAR1"}.items():
        (tmp_path / f"{name}.parquet").write_bytes(body)
        with pytest.raises(ConfigurationError, match=f"{name}.parquet' cannot be read"):
            sources(tmp_path / f"{name}.parquet")
    damaged = bytearray(whole)
    damaged[200:900] = b"\xff" * 700
    (tmp_path / "damaged.parquet").write_bytes(damaged)
    with pytest.raises(ConfigurationError, match="damaged.parquet' cannot be read"):
        filled(sources(tmp_path / "damaged.parquet"), tmp_path / "s.db")
    with pytest.raises(ConfigurationError, match="there is no file"):
        sources(tmp_path / "nowhere.parquet")


def test_bad_rows_and_lines_are_named_and_cost_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    good = [json.dumps(row) for row in rows(3)]
    bad_lines = ["{", "[1]", '{"prompt": "no answer"}', '{"prompt": "q", "reply": "a", "at": "yesterday"}']
    deep = '{"prompt": ' + "[" * 100_000 + "]" * 100_000 + "}"
    path.write_text("\n".join([good[0], *bad_lines, good[1], deep, good[2]]))
    counts, _, bad = filled(sources(path), tmp_path / "s.db")
    assert (counts.judged, counts.bad) == (3, 5)
    assert {where.rpartition("t.jsonl ")[2] for where, _ in bad} >= {"line 2", "line 3", "line 7"}
    table = tmp_path / "t.csv"
    table.write_text('prompt,docs,reply,at\nq,"[""cut",a,\nq2,"[""whole""]",a2,\n')
    counts, _, bad = filled(sources(table), tmp_path / "s2.db")
    assert (counts.judged, counts.bad) == (1, 1)
    assert bad == [(f"{table} row 1", "a list is cut short or not JSON")]
