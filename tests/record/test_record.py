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


def test_no_contexts_are_no_contexts() -> None:
    assert Record(contexts=None).contexts == ()  # type: ignore[arg-type]


def test_what_json_has_no_form_for_is_written_out_within_its_list() -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd"

    found = clean(Record(question="q", metadata={"list": ["a", Odd(), {"b": [1.5, Odd()]}]})).metadata
    assert found == {"list": ["a", "odd", {"b": [1.5, "odd"]}]}
