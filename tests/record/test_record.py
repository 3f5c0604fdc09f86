"""Making a Record as people write it."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard import Context, Monitor, Record
from steelyard.record import clean


@pytest.mark.parametrize(
    "contexts", [["Built in 1811."], ("Built in 1811.",), [Context(text="Built in 1811.")], "Built in 1811."]
)
def test_lists_and_strings_are_taken_for_contexts(contexts: Any) -> None:
    record = Record(question="When?", contexts=contexts, answer="In 1811.", tags=["a"])  # type: ignore[arg-type]
    assert record.contexts == (Context(text="Built in 1811."),)
    assert record.tags == ("a",)
    monitor = Monitor(metrics=[], sinks=[])
    monitor.submit(record)
    assert monitor.flush(60) == 0
    assert monitor.stats().evaluated == 1
    monitor.close()


class Found:
    """A document of a store."""

    page_content, id, score = "Built in 1811.", "d1", 0.5


class Closed:
    """An object that lets nobody look into it."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("closed")

    def __str__(self) -> str:
        raise RuntimeError("closed")


@pytest.mark.parametrize(
    ("given", "id", "score"),
    [
        ({"text": "Built in 1811.", "id": "d1", "score": 0.5}, "d1", 0.5),
        ({"content": "Built in 1811."}, None, None),
        (Found(), "d1", 0.5),
        ((Found(), 0.7), "d1", 0.7),
        (("Built in 1811.", 0.7), None, 0.7),
        (["Built in 1811."], None, None),
    ],
    ids=["mapping", "content", "document", "document and score", "text and score", "one list a query"],
)
def test_what_stores_return_is_taken_for_contexts(given: Any, id: str | None, score: float | None) -> None:
    record = Record(contexts=[given])  # type: ignore[arg-type]
    assert record.contexts == (Context(text="Built in 1811.", id=id, score=score),)


def test_what_has_no_text_costs_no_record() -> None:
    record = Record(question="q", contexts=[None, Closed(), 7], answer="a")  # type: ignore[arg-type]
    assert [one.text for one in record.contexts] == ["<Closed that cannot be shown>", "7"]


def test_no_contexts_are_no_contexts() -> None:
    assert Record(contexts=None).contexts == ()  # type: ignore[arg-type]


def test_what_json_has_no_form_for_is_written_out_within_its_list() -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd"

    found = clean(Record(question="q", metadata={"list": ["a", Odd(), {"b": [1.5, Odd()]}]})).metadata
    assert found == {"list": ["a", "odd", {"b": [1.5, "odd"]}]}


def _nested(depth: int) -> list[Any]:
    return [_nested(depth - 1)] if depth else []


@pytest.mark.parametrize(
    ("metadata", "is_cut"),
    [
        ({"a": [[1]]}, False),
        # Deeper than six, more than 200 entries, and brackets without anything between them.
        ({"a": _nested(10)}, True),
        ({"a": list(range(300))}, True),
        ({"a": [[[] for _ in range(150)] for _ in range(150)]}, True),
        ({"a": ["x" * 900] * 150}, True),
    ],
    ids=["whole", "deep", "many", "empty", "long"],
)
def test_metadata_that_does_not_come_whole_is_named(metadata: dict[str, Any], is_cut: bool) -> None:
    made = clean(Record(question="q", answer="a", metadata=metadata))
    assert ("metadata" in made.truncated) == is_cut
    # Two brackets, a comma and a blank count as one.
    assert len(str(made.metadata)) < 4 * 16_000
    assert clean(Record(timings="noon")).truncated == ("timings",)  # type: ignore[arg-type]
