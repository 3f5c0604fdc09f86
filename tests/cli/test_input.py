"""What the reader takes, and what it says about what it does not take."""

from __future__ import annotations

import io
import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.backfill import Columns, Unread, read_record, read_records
from steelyard.backfill._rows import seeming
from steelyard.errors import InvalidRecord
from steelyard.record import Context, Record, clean, record_to_dict


def read(*lines: str | bytes) -> tuple[list[Record], list[tuple[int, str]]]:
    faults: list[tuple[int, str]] = []
    raw = b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines)
    records = list(read_records(io.BytesIO(raw), bad=lambda number, why: faults.append((number, why))))
    return records, faults


def test_own_names() -> None:
    line = {
        "id": "r1",
        "question": "Who?",
        "contexts": ["He.", {"text": "She.", "id": 7, "score": 0.5}],
        "answer": "He.",
        "reference": "Him.",
        "reference_contexts": ["He."],
    }
    records, faults = read(json.dumps(line))
    assert faults == []
    assert records == [
        Record(
            id="r1",
            question="Who?",
            contexts=(Context(text="He."), Context(text="She.", id="7", score=0.5)),
            answer="He.",
            reference="Him.",
            reference_contexts=(Context(text="He."),),
        )
    ]


@pytest.mark.parametrize(
    "line",
    [
        {"user_input": "Q", "retrieved_contexts": ["C"], "response": "A", "reference": "R"},
        {"user_input": "Q", "retrieved_contexts": ["C"], "response": "A", "ground_truth": "R"},
        {"question": "Q", "contexts": ["C"], "answer": "A", "ground_truth": "R"},
        {"question": "Q", "contexts": ["C"], "answer": "A", "ground_truths": ["R"]},
        {"question": "Q", "user_input": None, "contexts": ["C"], "answer": "A", "ground_truths": "R"},
        {"query": "Q", "documents": ["C"], "output": "A", "reference": "R"},
    ],
)
def test_names_of_ragas_and_of_files_written_by_hand(line: dict[str, Any]) -> None:
    record = read_record(line, number=3)
    assert record == Record(id="3", question="Q", contexts=(Context(text="C"),), answer="A", reference="R")


LOGGED: dict[str, Any] = {
    "trace_id": "tr_1",
    "user_query": "What does ERR-1 mean?",
    "filters": ["billing", "cards"],
    "source_files": ["a.pdf", "b.pdf"],
    "retrieved_chunks": [{"chunk_id": "B1", "score": 0.7, "chunk": "ERR-1 means that the card expired."}],
    "system_prompt": "You are an assistant.",
    "raw_output": "The card expired.",
}


def test_fields_under_names_of_ones_own_are_named_by_the_user() -> None:
    columns = Columns.parse("question=user_query,contexts=retrieved_chunks,answer=raw_output")
    lines = b"".join(json.dumps(one).encode() + b"\n" for one in (LOGGED, {"question": "Who?"}))
    faults: list[str] = []
    (record,) = read_records(io.BytesIO(lines), bad=lambda _, why: faults.append(why), columns=columns)
    assert (record.question, record.answer) == (LOGGED["user_query"], LOGGED["raw_output"])
    assert [(one.text, one.score) for one in record.contexts] == [("ERR-1 means that the card expired.", 0.7)]
    assert faults == ["it has no field 'user_query'; it has 'question'"]


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, {"question": "user_query", "answer": "raw_output", "contexts": "retrieved_chunks"}),
        ({"retrieved_chunks": '["The card expired last week."]'}, {"contexts": "retrieved_chunks"}),
        ({"retrieved_chunks": ["The card expired last week."]}, {"contexts": "retrieved_chunks"}),
        # What two columns may hold, or none does, is not said.
        ({"other_chunks": ["The card expired last week."]}, {"contexts": None}),
        ({"model_output": "The card is old."}, {"answer": None}),
        ({"retrieved_chunks": ["B1", "B2"]}, {"contexts": None}),
        ({"retrieved_chunks": "[1: the card expired"}, {"contexts": None}),
        ({"user_query": None, "text": "What does it mean?"}, {"question": None}),
    ],
)
def test_what_seems_to_be_there_is_said_and_never_taken(
    changes: dict[str, Any], found: dict[str, str | None]
) -> None:
    line = {name: value for name, value in (LOGGED | changes).items() if value is not None}
    seen = seeming(line, Record())
    assert {part: seen.get(part) for part in found} == found
    unread: Unread = Counter()
    lines = io.BytesIO(json.dumps(line | {"reference": "R"}).encode())
    assert list(read_records(lines, bad=lambda _, why: pytest.fail(why), unread=unread))
    assert dict(unread) == dict.fromkeys(seen.items(), 1)
    with pytest.raises(InvalidRecord) as error:
        read_record(line, number=1)
    assert all(f"{part}={name}" in str(error.value) for part, name in seen.items())


def test_lists_of_context_ids() -> None:
    line = {"retrieved_contexts": ["C", "D"], "retrieved_context_ids": [7, "d"], "reference_contexts": ["E"]}
    record = read_record({**line, "reference_context_ids": ["e", "f"]}, number=1)
    assert record.contexts == (Context(text="C", id="7"), Context(text="D", id="d"))
    assert record.reference_contexts == (Context(text="E"),)


def test_names_of_deepeval() -> None:
    line = {"input": "Q", "actual_output": "A", "expected_output": "R", "retrieval_context": ["C"]}
    assert read_record({**line, "context": ["E"]}, number=1) == Record(
        id="1",
        question="Q",
        contexts=(Context(text="C"),),
        answer="A",
        reference="R",
        reference_contexts=(Context(text="E"),),
    )
    # Elsewhere nobody knows what a `context` is.
    assert read_record({"question": "Q", "context": ["E"]}, number=1).reference_contexts == ()


def test_a_bad_line_is_named_and_the_rest_is_read() -> None:
    good = '{"question": "Q", "answer": "A"}'
    records, faults = read(good, "{oops", "", good, '{"question": 5}', b'{"question": "\xff"}', good)
    assert [record.id for record in records] == ["1", "4", "7"]
    assert [number for number, _ in faults] == [2, 5, 6]
    assert [why.split(",")[0].split(":")[0] for _, why in faults] == [
        "not JSON",
        "'question' must be a string",
        "not UTF-8",
    ]
    # Counted from 1, as editors do: the byte that a line names is the one to mend.
    assert "at byte 15" in faults[2][1] and b'{"question": "\xff"}'[14] == 0xFF


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (["x"], "a record is a JSON object, not a list"),
        (None, "a record is a JSON object, not null"),
        ({}, "none of question, contexts, answer, reference is given; found: nothing"),
        ({"wording": "Q"}, "none of question, contexts, answer, reference is given; found: wording"),
        ({"response": 1}, "'response' must be a string, not a number"),
        ({"answer": True}, "'answer' must be a string, not a boolean"),
        ({"retrieved_contexts": "text"}, "'retrieved_contexts' must be a list, not a string"),
        ({"contexts": [{"id": "1"}]}, "text"),
        ({"question": "Q", "id": [1]}, "'id' must be a string or a whole number, not a list"),
        ({"user_input": [{"role": "user"}]}, "'user_input' is a conversation"),
        ({"question": "Q", "schema": 99}, "newer"),
        ({"question": "Q", "status": "fine"}, "'status' must be 'ok'"),
    ],
)
def test_reasons(data: object, why: str) -> None:
    with pytest.raises(InvalidRecord) as caught:
        read_record(data, number=1)
    assert why in str(caught.value)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"\n \n"])
def test_a_list_of_records_is_read_as_well_as_lines(indent: int | None, before: bytes) -> None:
    listed = [{"question": "Q"}, 7, {"question": "R"}]
    records, faults = read(before + json.dumps(listed, indent=indent).encode())
    assert [(one.id, one.question) for one in records] == [("1", "Q"), ("3", "R")]
    assert faults == [(2, "a record is a JSON object, not a number")]


def test_a_list_that_was_cut_off_is_one_bad_line() -> None:
    records, faults = read("[", '{"question": "Q"},', '{"question": "R')
    assert records == []
    assert [(number, why.partition(":")[0]) for number, why in faults] == [(1, "not JSON")]


def test_byte_order_mark_and_windows_line_ends() -> None:
    records, faults = read(b'\xef\xbb\xbf{"question": "Q"}\r', b'{"question": "R"}\r', b"\r")
    assert ([record.question for record in records], faults) == (["Q", "R"], [])


def test_a_huge_line_ends_capped() -> None:
    texts = ["word " * 20_000] * 300
    records, faults = read(json.dumps({"question": "Q", "contexts": texts, "answer": "x" * 3_000_000}))
    assert faults == []
    assert records[0].truncated == ("answer", "contexts")


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_names = st.sampled_from(
    [
        *("id", "question", "contexts", "answer", "reference", "reference_contexts", "metadata", "status"),
        *("user_input", "retrieved_contexts", "response", "ground_truth", "ground_truths", "schema", "trace"),
        *(
            "input",
            "actual_output",
            "context",
            "retrieved_context_ids",
            "timings",
            "stages",
            "tags",
            "retrieved",
            "truncated",
            "notes",
            "standalone_question",
            "error",
        ),
    ]
)
_contexts = st.lists(
    st.text(max_size=5)
    | st.dictionaries(st.sampled_from(["text", "id", "score", "rank", "query", "hop"]), _json, max_size=4),
    max_size=3,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(_names, _json | _contexts, max_size=6))
def test_any_object_is_a_storable_record_or_says_why(data: dict[str, Any]) -> None:
    try:
        record = read_record(data, number=1)
    except InvalidRecord:
        return
    assert clean(record) == record
    json.dumps(record_to_dict(record)).encode()
