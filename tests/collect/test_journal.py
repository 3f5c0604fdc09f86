"""What leaves the journal, and when: nothing that is not stored."""

from __future__ import annotations

import contextlib
import json
import logging
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan

from collect.parts import ANSWER, QUESTION, plain_spans, protobuf, trace_of, turn_spans
from collect.running import Running
from steelyard import Context, Monitor, Record
from steelyard.collect import Collector, SpanJournal
from steelyard.errors import ConfigurationError
from steelyard.online import SpoolSettings
from steelyard_opentelemetry.received import ReceivedSpans
from waiting import until

SHOWN = f"Here you are: {ANSWER}"


def spooling(folder: Path, *, max_bytes: int) -> Running:
    """A collector whose turns go into a spool file of a size, and no further."""
    running = Running(folder)
    running.monitor.close(0)
    settings = SpoolSettings(path=folder / "small", evaluate=False, max_bytes=max_bytes)
    running.monitor = Monitor(metrics=[], sinks=[], spool=settings)
    running.collector = Collector(
        journal=running.journal, reader=ReceivedSpans(quiet=0.05, ttl=5.0), monitor=running.monitor
    )
    return running


def test_a_spool_that_is_nearly_full_leaves_spans_in_the_journal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    running = spooling(tmp_path, max_bytes=6_000)
    monitor = running.monitor
    running.collector.start()
    try:
        with caplog.at_level(logging.WARNING, "steelyard.collect"):
            for number in range(40):
                assert running.ask(protobuf(turn_spans(question=f"Question {number}?"))).status_code == 200
            until(lambda: "full" in caplog.text)
        assert 0 < monitor.stats().spooled < 40
        until(lambda: len(running.journal) == 40 - monitor.stats().spooled)
    finally:
        running.close()


def test_a_turn_that_would_fit_waits_in_the_journal_while_the_spool_is_nearly_full(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    running = spooling(tmp_path, max_bytes=100_000)
    monitor = running.monitor
    monitor.submit(Record(question="Who?", contexts=(Context(text="Ann did."),), answer="Ann " * 23_000))
    assert monitor.flush(60) == 0
    running.collector.start()
    try:
        with caplog.at_level(logging.WARNING, "steelyard.collect"):
            assert running.ask(protobuf(turn_spans(question="Which one?"))).status_code == 200
            until(lambda: "nearly full" in caplog.text or monitor.stats().spooled > 1)
        assert monitor.stats().spooled == 1
        assert len(running.journal) == 1
    finally:
        running.close()


@pytest.mark.parametrize(
    ("reason", "left"), [("queue_full", 1), ("queue_unavailable", 1), ("spool_full", 1), ("sampled_out", 0)]
)
def test_a_turn_for_which_there_was_no_room_stays_in_the_journal(
    running: Running, monkeypatch: pytest.MonkeyPatch, reason: str, left: int
) -> None:
    listens: list[Any] = []
    told: list[None] = []
    monkeypatch.setattr(running.monitor, "on_decision", listens.append)
    monkeypatch.setattr(
        running.monitor, "submit", lambda record: told.append(listens[0](record.trace, reason))
    )
    running.collector.start()
    assert running.ask(protobuf(turn_spans())).status_code == 200
    until(lambda: told)
    assert running.close() == left


@pytest.mark.parametrize("left", [0, 1])
def test_a_turn_leaves_the_journal_when_the_collector_closes_once_it_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    monkeypatch.setattr("steelyard.collect._collector._TO_STORE", 0.1 if left else 60)
    running = Running(tmp_path)
    running.collector.start()
    until(lambda: running.monitor.stats().spool is not None)
    found: list[int] = []
    closing = threading.Thread(target=lambda: found.append(running.close()))
    with contextlib.closing(sqlite3.connect(tmp_path / "spool", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # so that nothing can be stored yet
        assert running.ask(protobuf(turn_spans())).status_code == 200
        until(lambda: running.monitor.stats().pending == 1)
        closing.start()
        if left:
            closing.join(60)
        other.execute("ROLLBACK")
    closing.join(60)
    assert found == [left]


def test_spans_without_model_work_leave_nothing_in_the_journal(running: Running) -> None:
    assert running.ask(protobuf(plain_spans(200))).status_code == 200
    running.collector.start()
    until(lambda: running.collector.counts.assembled.get("no_llm_spans") == 200)
    until(lambda: running.journal.bytes == 0)


def test_pieces_of_a_settled_trace_that_came_later_stay_in_the_journal(tmp_path: Path) -> None:
    journal = SpanJournal(tmp_path / "spans")
    journal.add([{"a": b"first", "b": b"other"}, {"a": b"second"}])
    (upto, _, _), *_ = journal.after(0)
    journal.forget(["a"], upto=upto)
    assert [(trace, body) for _, trace, body in journal.after(0)] == [("b", b"other"), ("a", b"second")]
    assert journal.bytes == len(b"othersecond")
    journal.close()


def test_a_piece_that_is_read_while_its_trace_is_settled_stays_in_the_journal(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its turn is not stored yet: a crash would lose it."""
    held: set[str] = set()
    journal, after = running.journal, running.journal.after
    monkeypatch.setattr(running.collector.reader, "take", lambda body, now: held.update(body.decode()))
    monkeypatch.setattr(running.collector.reader, "holds", held.__contains__)

    def with_one_that_comes_later(seq: int) -> list[tuple[int, str, bytes]]:
        if seq and len(journal) < 3 and not held:
            journal.add([{"a": b"a"}])
        return after(seq)

    monkeypatch.setattr(journal, "after", with_one_that_comes_later)
    journal.add([{"a": b"", "b": b""}])
    running.collector.start()
    until(lambda: len(journal) == 1 and held == {"a"})
    assert [(trace, body) for _, trace, body in after(0)] == [("a", b"a")]


def test_a_turn_that_was_lost_in_the_reader_stays_in_the_journal(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready, lost = running.collector.reader.ready, list[Record]()

    def fails_once(now: float) -> list[Record]:
        found = ready(now)
        if found and not lost:
            lost.extend(found)
            raise ZeroDivisionError
        return found

    monkeypatch.setattr(running.collector.reader, "ready", fails_once)
    running.collector.start()
    for spans in (first := turn_spans()), turn_spans():
        assert running.ask(protobuf(spans)).status_code == 200
        until(lambda: lost)
    until(lambda: running.monitor.stats().spooled == 1)
    until(lambda: [trace for _, trace, _ in running.journal.after(0)] == [trace_of(first)])
    assert running.close() == 1


def test_what_is_held_has_a_bound_beyond_which_the_journal_fills_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steelyard.collect._collector._MOST_HELD", 2)
    running = Running(tmp_path)
    whole = turn_spans(shown=SHOWN)
    running.collector.start()
    try:
        for spans in whole[:-1], turn_spans():
            assert running.ask(protobuf(spans)).status_code == 200
            until(lambda: running.collector.counts.held_spans == len(whole) - 1)
        # What has its root comes after what has none, for which the reader waits until it gives up.
        until(lambda: running.monitor.stats().spooled == 2)
        with contextlib.closing(sqlite3.connect(tmp_path / "spool")) as spool:
            names = [name for (name,) in spool.execute("SELECT record_id FROM turns ORDER BY seq")]
        assert names[0].startswith(trace_of(whole))
    finally:
        running.close()


def test_nothing_of_settled_spans_stays_in_the_journal(tmp_path: Path) -> None:
    """Whether they are short or lie in pages of their own."""
    journal = SpanJournal(tmp_path / "spans")
    journal.add([{"a": b"polonium", "b": b"polonium " * 5000}])
    journal.forget(["a", "b"], upto=2)
    journal.close()
    assert b"polonium" not in journal.path.read_bytes()


def test_a_journal_that_is_open_already_is_refused(running: Running) -> None:
    with pytest.raises(ConfigurationError, match="another process has it open"):
        SpanJournal(running.journal.path)


def test_a_file_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "notes"
    other.write_text("my notes, which are no database and long enough to be looked at")
    with pytest.raises(ConfigurationError, match="not a journal"):
        SpanJournal(other)
    assert other.read_text().startswith("my notes")


def take(reader: ReceivedSpans, spans: Sequence[ReadableSpan], now: float) -> None:
    for piece in reader.read(protobuf(spans), is_json=False).pieces.values():
        reader.take(piece, now)


def test_a_parent_that_has_not_come_is_waited_for() -> None:
    reader, spans = ReceivedSpans(quiet=1.0, ttl=60.0), turn_spans(shown=SHOWN)
    take(reader, spans[:-1], now=100.0)
    assert reader.ready(110.0) == [] and reader.holds(trace_of(spans))
    take(reader, spans[-1:], now=130.0)
    (record,) = reader.ready(132.0)
    assert (record.question, record.answer, len(record.contexts)) == (QUESTION, SHOWN, 2)
    assert reader.ready(1000.0) == []


def test_a_parent_that_never_comes_is_not_waited_for_for_ever() -> None:
    reader, spans = ReceivedSpans(quiet=1.0, ttl=60.0), turn_spans(shown=SHOWN)
    take(reader, spans[:-1], now=100.0)
    assert reader.ready(150.0) == []
    (record,) = reader.ready(400.0)
    assert (record.question, record.answer, len(record.contexts)) == (QUESTION, ANSWER, 2)
    assert not reader.holds(trace_of(spans))


def orphan(number: int) -> bytes:
    """A request with a span of a service whose parents never come."""
    attributes = [{"key": "openinference.span.kind", "value": {"stringValue": "RETRIEVER"}}]
    times = {"startTimeUnixNano": str(10**18 + number), "endTimeUnixNano": str(10**18 + number + 1)}
    ids = {"traceId": f"{number:032x}", "spanId": f"{number:016x}", "parentSpanId": "f" * 16}
    spans = [{**ids, **times, "name": "retriever", "attributes": attributes}]
    scopes = [{"scope": {"name": "openinference.instrumentation.langchain"}, "spans": spans}]
    service = [{"key": "service.name", "value": {"stringValue": "noise"}}]
    return json.dumps(
        {"resourceSpans": [{"resource": {"attributes": service}, "scopeSpans": scopes}]}
    ).encode()


def test_a_service_whose_parents_never_come_is_not_waited_for_once_it_holds_very_many() -> None:
    reader, spans = ReceivedSpans(quiet=1.0, ttl=60.0, most_of_sender=100), turn_spans(shown=SHOWN)
    take(reader, spans[:-1], now=100.0)
    for number in range(1, 401):
        (piece,) = reader.read(orphan(number), is_json=True).pieces.values()
        reader.take(piece, 100.0 + number / 1000)
    reader.ready(100.5)
    assert reader.spans == len(spans) - 1 + 400
    for now in (101.0, 102.0, 103.0):
        reader.ready(now)
    # What is within the bound waits as ever, and so does the other service.
    assert len(spans) - 1 < reader.spans <= len(spans) - 1 + 100
    take(reader, spans[-1:], now=130.0)
    (record,) = reader.ready(132.0)
    assert (record.question, record.answer) == (QUESTION, SHOWN)
    reader.ready(200.0)
    assert reader.spans == 0


def test_what_an_earlier_process_left_in_a_journal_counts_against_its_bound(tmp_path: Path) -> None:
    first = SpanJournal(tmp_path / "j", max_bytes=100)
    first.add([{"trace": b"x" * 90}])
    first.close()
    again = SpanJournal(tmp_path / "j", max_bytes=100)
    assert (again.bytes, again.room_for(10), again.room_for(11)) == (90, True, False)
    again.close()
