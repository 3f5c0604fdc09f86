"""The user's own words, out of inputs of any shape."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.prompts import PromptTemplate

from steelyard.recording.reading import asked_in, is_question, messages_in, searched_by_provider, strings_in

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
        {"args": ["user-7"], "kwargs": {"message": ASK}},
        {"args": [ASK], "kwargs": {"k": 4}},
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
    ids=range(19),
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


def test_what_a_template_is_bound_to_is_not_read() -> None:
    template = PromptTemplate.from_template("{role}\n{context}").partial(role="Answer for the front desk.")
    given = {"prompt": template, "context": "Boats moor at the breakwater."}
    assert [text for _, text in strings_in(given)] == ["Boats moor at the breakwater."]


FOUND = [
    {"file_id": "f1", "filename": "ferry.md", "score": 0.9, "text": "The ferry leaves at 7:15."},
    {"file_id": "f2", "filename": "fares.md", "score": 0.5, "text": "Dogs pay three euros."},
]
CALL: dict[str, Any] = {"type": "file_search_call", "id": "fs_1", "queries": ["ferry"], "results": FOUND}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "At 7:15."}]}


@pytest.mark.parametrize(
    "reply", [{"output": [CALL, SAID]}, {"role": "assistant", "content": [CALL, SAID]}, [CALL, SAID]]
)
def test_results_of_a_hosted_search_are_a_tools(reply: Any) -> None:
    (message,) = searched_by_provider(reply)
    assert (message.role, message.tool, message.result) == ("tool", "file_search_call", FOUND)
    assert message.text == "The ferry leaves at 7:15.\n\nDogs pay three euros."


@pytest.mark.parametrize(
    "reply",
    [
        {
            "output": [
                {"type": "web_search_call", "action": {"sources": [{"url": "https://a.example"}]}},
                SAID,
            ]
        },
        {"output": [{**CALL, "results": None}, SAID]},
        {"content": "file_search_call"},
        "At 7:15.",
        None,
    ],
)
def test_a_reply_without_texts_of_a_search_has_none(reply: Any) -> None:
    assert searched_by_provider(reply) == ()


@pytest.mark.parametrize("named", ["in_message", "in_call"])
@pytest.mark.parametrize("made", [dict, SimpleNamespace])
def test_a_tools_message_has_its_name_be_it_a_mapping_or_an_object(made: Any, named: str) -> None:
    call = made(role="assistant", content="", tool_calls=[{"name": "fares", "args": {}, "id": "c1"}])
    own = {"name": "fares"} if named == "in_message" else {"tool_call_id": "c1"}
    *_, told = messages_in([call, made(role="tool", content="Dogs pay three euros.", **own)])
    assert (told.role, told.tool, told.text) == ("tool", "fares", "Dogs pay three euros.")


def test_documents_among_the_parts_of_a_message_are_no_words_of_the_user() -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "The ferry leaves at 7:15."}
    document = {"type": "document", "source": source, "title": "Timetable"}
    asked = {"role": "user", "content": [document, {"type": "text", "text": "When does it leave?"}]}
    (message,) = messages_in([asked])
    assert (message.documents, message.words) == (("The ferry leaves at 7:15.",), "When does it leave?")
    assert asked_in([asked]) == "When does it leave?"
