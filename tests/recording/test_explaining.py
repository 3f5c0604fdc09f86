"""What was taken for what: the words for it, and the option for each doubt."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from steelyard.record import Context, Record, TraceRef, clean, record_from_dict, record_to_dict
from steelyard.recording import changed
from steelyard.recording.building import Step, Steps
from steelyard.recording.explaining import explain, option_for, origins_of
from steelyard.recording.provenance import Note, Origin, calls_behind, sentence

FRAMEWORKS = ("langchain", "llamaindex", "opentelemetry", "my own", None)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_note_has_an_option_under_every_framework(framework: str | None) -> None:
    assert all(option_for(sentence(note), framework) for note in get_args(Note))


def test_the_options_of_langchain_and_llamaindex_are_there() -> None:
    """An option that is named in the table can be given."""
    from steelyard_langchain import CallbackHandler
    from steelyard_langchain._options import Options as LangChain
    from steelyard_llamaindex._build import Options as LlamaIndex

    for framework, options in (("langchain", LangChain), ("llamaindex", LlamaIndex)):
        for note in (
            *map(sentence, get_args(Note)),
            "question: not found",
            "answer: not found",
            "tool_results",
        ):
            named = re.match(r"(\w+)=", option_for(note, framework))
            assert named is None or hasattr(options(), named[1]), (framework, named)
    assert CallbackHandler.__doc__


def test_a_doubt_that_says_it_itself_has_no_option() -> None:
    (doubt,) = explain(Record(notes=("3 retrieved nodes have no text",))).doubts
    assert doubt.option == ""


def test_passages_are_told_by_the_step_that_brought_them_and_not_by_one_that_passed_them_on() -> None:
    one, two, three = (Context(text=f"The lighthouse number {n} was built in 181{n}.") for n in range(3))
    turn = Steps(
        given={"question": "Which lighthouses are there?"},
        returned={"answer": "Three."},
        steps=[
            Step(kind="retrieval", name="faiss", contexts=(one,), at=1),
            Step(kind="rerank", name="engine", contexts=(one,), at=2),
            Step(kind="chain", returned={"notes": f"{two.text}"}, at=3),
            Step(kind="prompt", given={"context": three.text}, at=4),
        ],
    )
    contexts = (one, two, three, Context(text="Nobody knows where from."))
    origin = Origin(
        contexts=contexts, retrieved=(), contexts_source="in_prompt", calls=calls_behind((), ""), notes=()
    )
    found = origins_of(turn, "Which lighthouses are there?", origin, "Three.")
    assert found == {
        "question": ("input, question",),
        "contexts": ("retriever faiss", "a step, notes", "a template, context", ""),
        "answer": ("result, answer",),
    }


def test_origins_are_kept_bounded_and_read_again() -> None:
    record = Record(contexts=(Context(text="A."),), origins={"contexts": ("x" * 5000,), "else": ("y",)})
    kept = clean(record)
    assert kept.origins == {"contexts": ("x" * 1000,)} and "origins" in kept.truncated
    assert clean(kept) is kept
    assert record_from_dict(record_to_dict(kept)).origins == kept.origins


def test_what_on_record_changes_is_told_to_come_from_there() -> None:
    record = Record(question="Why?", answer="So.", origins={"question": ("input",), "answer": ("result",)})
    found = changed(record, lambda one: one.replace(answer="Because."))
    assert found.origins == {"question": ("input",), "answer": ("on_record",)}
    assert explain(found.replace(trace=TraceRef(framework="x"))).answer.how == "known, from on_record"


def test_the_docs_name_every_note() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "recording.md").read_text()
    assert all(f"| `{note}` |" in page for note in get_args(Note))
