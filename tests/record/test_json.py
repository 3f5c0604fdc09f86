"""The JSON form of Records: round trips of whatever comes in, and refusals with a reason."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept import check
from steelyard.errors import InvalidRecord
from steelyard.record import (
    Context,
    Limits,
    Record,
    Stage,
    Timings,
    TraceRef,
    clean,
    record_from_json,
    record_to_json,
)
from variants import full

SMALL = Limits(text=40, context=20, contexts=3, total=50, metadata=60, items=4)

texts = st.text(st.characters(exclude_categories=[]), max_size=60)  # lone surrogates and NUL included
maybe = st.none() | texts
scores = st.none() | st.floats(allow_nan=True, allow_infinity=True)
contexts = st.lists(
    st.builds(
        Context,
        text=texts,
        id=maybe,
        score=scores,
        rank=st.none() | st.integers(0, 9),
        query=maybe,
        hop=st.integers(0, 3),
        seen=st.none() | st.floats(0, 1),
    ),
    max_size=5,
).map(tuple)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(texts, inner, max_size=6),
    max_leaves=12,
)
records = st.builds(
    Record,
    id=texts,
    question=texts,
    standalone_question=maybe,
    contexts=contexts,
    retrieved=contexts,
    stages=st.lists(st.builds(Stage, name=texts, query=texts, contexts=contexts), max_size=2).map(tuple),
    answer=texts,
    reference=maybe,
    reference_contexts=contexts,
    status=st.sampled_from(["ok", "error", "cancelled", "truncated", "interrupted"]),
    error=maybe,
    trace=st.none() | st.builds(TraceRef, trace_id=st.just("0" * 31 + "1"), run_id=st.just("r")),
    timings=st.none() | st.builds(Timings, total=st.floats(0, 10)),
    tags=st.lists(texts, max_size=6).map(tuple),
    metadata=st.dictionaries(texts, values, max_size=6),
    notes=st.lists(texts, max_size=2).map(tuple),
)


@given(record=records)
def test_a_cleaned_record_survives_json_whole(record: Record) -> None:
    line = record_to_json(record, limits=SMALL)
    line.encode("utf-8")  # no lone surrogate is left
    assert "\\u0000" not in line
    again = record_from_json(line)
    assert record_to_json(again, limits=SMALL) == line
    cleaned = clean(record, limits=SMALL)
    assert (again.question, again.answer, again.contexts) == (
        cleaned.question,
        cleaned.answer,
        cleaned.contexts,
    )
    assert (again.status, again.truncated) == (cleaned.status, cleaned.truncated)


@given(record=records)
def test_cleaning_twice_changes_nothing(record: Record) -> None:
    once = clean(record, limits=SMALL)
    assert clean(once, limits=SMALL) == once
    assert len(once.contexts) <= SMALL.contexts
    assert sum(len(context.text) for context in once.contexts) <= SMALL.total
    assert len(once.answer) <= SMALL.text


def test_giants_are_capped_and_say_so() -> None:
    giant = Record(
        question="q",
        answer="x" * 50_000_000,
        contexts=tuple(Context(text=f"passage {number}") for number in range(100_000)),
        metadata={"blob": "y" * 1_000_000},
    )
    record = clean(giant)
    assert set(record.truncated) == {"answer", "contexts", "metadata"}
    assert record.question == "q"
    assert len(record_to_json(giant)) < 2_000_000
    long = clean(Record(contexts=tuple(Context(text="x" * 49_999) for _ in range(50))))
    assert sum(len(context.text) for context in long.contexts) == 1_000_000
    assert long.truncated == ("contexts",)


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __str__


class Endless(Mapping[str, object]):
    def __getitem__(self, key: str) -> object:
        raise RuntimeError("no")

    def __iter__(self) -> object:  # type: ignore[override]
        raise RuntimeError("no")

    def __len__(self) -> int:
        raise RuntimeError("no")


def test_hostile_objects_become_notes() -> None:
    cycle: dict[str, object] = {}
    cycle["self"] = cycle
    record = clean(
        Record(
            question=b"caf\xc3\xa9 \xff",  # type: ignore[arg-type]
            answer=Hostile(),  # type: ignore[arg-type]
            metadata={
                "cycle": cycle,
                "hostile": Hostile(),
                "endless": Endless(),
                "nan": float("nan"),
                "big": 10**400,
                "more than SQLite has": [2**63, 2**63 - 1, -(2**63)],
            },
        )
    )
    assert record.question == "café \N{REPLACEMENT CHARACTER}"
    assert record.answer == "<Hostile that cannot be shown>"
    assert record.metadata["nan"] == "nan"
    assert record.metadata["big"] == "an integer of more than 64 bits"
    assert record.metadata["more than SQLite has"][1:] == [2**63 - 1, -(2**63)]
    assert isinstance(record.metadata["more than SQLite has"][0], str)
    assert json.loads(record_to_json(record))["metadata"]["hostile"] == "<Hostile that cannot be shown>"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("nonsense", "not JSON"),
        ("[1]", "a record is a JSON object, not list"),
        ('{"contexts": "one"}', "'contexts' must be a valid tuple"),
        ('{"contexts": [{"id": "a"}]}', "'contexts.0.text': field required"),
        ('{"contexts": [{"text": 7}]}', "'contexts.0.text' must be a valid string"),
        ('{"question": ["q"]}', "'question' must be a valid string"),
        ('{"status": "fine"}', "'status' must be 'ok', 'error'"),
        ('{"schema": 99}', "schema 99 is newer than 2"),
        ('{"metadata": []}', "'metadata' must be a valid"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_record_is_refused_with_the_reason(line: str, reason: str) -> None:
    with pytest.raises(InvalidRecord, match=reason):
        record_from_json(line)


def test_plain_strings_and_unknown_fields_are_fine() -> None:
    record = record_from_json('{"question": "q", "contexts": ["a", {"text": "b", "id": "2"}], "later": 1}')
    assert [context.text for context in record.contexts] == ["a", "b"]
    assert record.contexts[1].id == "2"


@pytest.mark.parametrize(
    ("odd", "texts"),
    [
        (["One.", "Two."], ["One.", "Two."]),
        ("One.", ["One."]),
        ((b"One.", 2), ["One.", "2"]),
        (None, []),
        (Context(text="One."), ["One."]),
    ],
)
def test_contexts_that_are_none_become_some(odd: Any, texts: list[str]) -> None:
    assert [context.text for context in clean(Record(contexts=odd)).contexts] == texts


@pytest.mark.parametrize("score", [10**400, "high", float("inf"), object(), 1j])
def test_a_score_that_is_no_number_is_none(score: Any) -> None:
    (context,) = clean(Record(contexts=(Context(text="One.", score=score),))).contexts
    assert context.score is None


def test_a_trace_is_storable_too() -> None:
    record = clean(Record(trace=TraceRef(run_id="a\ud800", framework="f" * 2000)))
    record_to_json(record).encode()
    assert record.trace is not None
    assert (record.trace.run_id, record.truncated) == ("a\ufffd", ("trace",))


def test_an_id_that_was_cut_is_named() -> None:
    record = clean(Record(id="i" * 1001))
    assert (len(record.id), record.truncated) == (1000, ("id",))


def test_entries_too_many_are_named() -> None:
    record = Record(tags=("t",) * 201, stages=(Stage(name="s", query="q"),) * 201)
    assert set(clean(record).truncated) == {"tags", "stages"}


def test_every_field_is_repaired_whatever_it_holds() -> None:
    odd: Any = object()
    record = clean(
        Record(
            contexts=(Context(text="One.", rank=2**70, hop=odd, seen=7.0, score=1),),
            contexts_source="\ud800",  # type: ignore[arg-type]
            status=odd,
            timings=Timings(total="1\ud800"),  # type: ignore[arg-type]
            trace=TraceRef(sampled="\ud800"),  # type: ignore[arg-type]
            tags=odd,
            stages=(odd, Stage(name="s", query="q")),
        )
    )
    assert record.contexts == (Context(text="One.", score=1.0),)
    assert (record.contexts_source, record.status) == ("retrieved", "error")
    assert (record.timings, record.tags) == (Timings(), ())
    assert record.trace is not None
    assert record.trace.sampled is True
    assert [stage.name for stage in record.stages] == ["s"]
    record_to_json(record).encode()


def test_an_endless_collection_is_cut() -> None:
    record = clean(Record(tags=itertools.repeat("t"), notes=itertools.count()))  # type: ignore[arg-type]
    assert len(record.tags) == 200
    assert set(record.truncated) == {"tags", "notes"}


def test_records_of_schema_1_are_read() -> None:
    first, second = '{"text": "a", "in_prompt": true}', '{"text": "b", "in_prompt": false}'
    line = f'{{"schema": 1, "contexts": [{first}, {second}, "c"]}}'
    assert [context.seen for context in record_from_json(line).contexts] == [1.0, 0.0, None]


ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        -1,
        7,
        0.5,
        2**70,
        math.nan,
        b"bytes",
        object,
        "",
        " ",
        "\ud800\x00",
        {"a": "b"},
        ["z"],
        (),
        {1},
    ),
    *("x" * length for length in (9, 10, 11, 199, 200, 201, 1000, 1001)),
    *(("y",) * length for length in (2, 3, 4)),
    *([Context(text="z" * length)] * 2 for length in (5, 6, 7)),
    *({"k" * length: ["v"] * length, "l": {"m": "n"}} for length in (2, 3, 9)),
)
TINY = Limits(text=10, context=6, contexts=3, total=12, metadata=24, items=3)


def odd(value: Any, draw: Random) -> Any:
    """The value with some of its fields, however deep, set to anything."""
    changes = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    for name, old in changes.items():
        if draw.random() < 0.15:
            changes[name] = draw.choice(ODD)
        elif isinstance(old, tuple) and old and is_dataclass(old[0]):
            changes[name] = tuple(odd(one, draw) for one in old * draw.randint(1, 3))
        elif is_dataclass(old):
            changes[name] = odd(old, draw)
    return replace(value, **changes)


def test_what_is_left_of_any_record_is_what_was_left() -> None:
    base = full(Record, user="ann", origins={"answer": ("span",), "none": ("span",)})
    told = []
    for seed in range(40):
        record = clean(odd(base, draw := Random(seed)), limits=draw.choice([TINY, Limits()]))
        told.append(record_to_json(record.replace(id=record.id or "made")))
    check("any_records", re.sub(r"(\w)\1{8,}", lambda found: f"{found[1]}*{len(found[0])}", "\n".join(told)))
