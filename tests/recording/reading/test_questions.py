"""The user's own words, out of inputs of any shape."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.recording.reading import asked_in, is_question

ASK = "How does a steelyard weigh things?"


@dataclass
class Message:
    content: str
    type: str = "human"


@dataclass
class Bundle:
    query_str: str


@pytest.mark.parametrize(
    "value",
    [
        ASK,
        {"question": ASK, "chat_history": []},
        {"input": {"question": ASK}},
        {"index": "VectorStoreIndex(documents=['a text'])", "query": ASK},
        {"kwargs": {"start_event": {"user_msg": ASK}}},
        {"task": ASK, "stream": False},
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": ASK}],
        [{"type": "human", "data": {"content": ASK}}],
        [  # what Instructor says in the user's place where a reply was not of the form asked for
            {"role": "user", "content": ASK},
            {"role": "assistant", "content": "{}"},
            {"role": "user", "content": "Correct your JSON ONLY RESPONSE, based on the following errors:\n1"},
        ],
        {"messages": [["system", "Be brief."], ["user", ASK]]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": ASK}, {"type": "image"}]}]},
        {"messages": [{"role": "user", "parts": [{"type": "text", "content": ASK}]}]},
        {"messages": [[{"lc": 1, "id": ["langchain", "HumanMessage"], "kwargs": {"content": ASK}}]]},
        {"messages": [{"role": "user", "blocks": [{"block_type": "text", "text": ASK}]}]},
        ("user", ASK),
        [Message("Be brief.", "system"), Message(ASK)],
        Bundle(ASK),
    ],
    ids=range(17),
)
def test_the_question_is_found_in_every_usual_input(value: object) -> None:
    assert asked_in(value) == ASK


@pytest.mark.parametrize(
    "typed",
    [
        f"Question: {ASK}",
        f"Context: a steelyard is a lever.\n\n{ASK}",
        f"<context>a lever</context> {ASK}",
        json.dumps({"question": ASK, "context": ["a lever"]}),
    ],
)
def test_what_the_user_typed_stays_as_it_was_typed(typed: str) -> None:
    assert asked_in(typed) == asked_in([{"role": "user", "content": typed}]) == typed


@pytest.mark.parametrize(
    "value",
    [
        "",
        None,
        3,
        {"documents": ["A steelyard is a balance."]},
        {"text": "A steelyard is a balance."},
        {"page_content": "A steelyard is a balance."},
        [{"role": "assistant", "content": "A balance."}],
    ],
    ids=range(7),
)
def test_documents_and_replies_are_not_questions(value: object) -> None:
    assert asked_in(value) == ""


@pytest.mark.parametrize("text", [ASK, '"Who?"', "**Who?**", "\u8c01\uff1f", "\u0645\u0646\u061f"])
def test_a_question_mark_of_any_script_ends_a_question(text: str) -> None:
    assert is_question(text)
    assert not is_question(f"{text} I ask.")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["input", "messages", "role", "content", "x", "lc", "id"]), inner)
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_input_is_read_without_raising(value: object) -> None:
    assert isinstance(asked_in(value), str)
