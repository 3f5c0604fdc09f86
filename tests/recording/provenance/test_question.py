"""What the user asked."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.recording.provenance import Asked, question_in, question_in_prompt, user_question

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
        f"New task:\n{ASK}",
        {"question": ASK, "chat_history": []},
        {"input": {"question": ASK}},
        {"index": "VectorStoreIndex(documents=['a text'])", "query": ASK},
        json.dumps({"index": {"docs": ["a text that is long"]}, "query": ASK}),
        {"kwargs": {"start_event": {"user_msg": ASK}}},
        {"task": ASK, "stream": False},
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": ASK}],
        {"messages": [["system", "Be brief."], ["user", ASK]]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": ASK}, {"type": "image"}]}]},
        {"messages": [{"role": "user", "parts": [{"type": "text", "content": ASK}]}]},
        {"messages": [[{"lc": 1, "id": ["langchain", "HumanMessage"], "kwargs": {"content": ASK}}]]},
        {"messages": [{"role": "user", "blocks": [{"block_type": "text", "text": ASK}]}]},
        ("user", ASK),
        [Message("Be brief.", "system"), Message(ASK)],
        Bundle(ASK),
        f"StartEvent(query={ASK!r}, index=VectorStoreIndex())",
        {"topic": ASK},
    ],
    ids=range(19),
)
def test_the_question_is_found_in_every_usual_input(value: object) -> None:
    assert question_in(value) == ASK


@pytest.mark.parametrize(
    "value",
    [
        "",
        None,
        3,
        "Answer from {context}.\nQuestion: {question}",
        "<generator object stream at 0x7f>",
        {"documents": ["A steelyard is a balance."]},
        {"text": "A steelyard is a balance."},
        [{"role": "assistant", "content": "A balance."}],
        "[" * 5000,
    ],
    ids=range(9),
)
def test_templates_documents_and_objects_are_not_questions(value: object) -> None:
    assert question_in(value) in ("", value if isinstance(value, str) and value.startswith("[") else "")


def test_a_text_that_a_model_wrote_is_not_the_question() -> None:
    asked = user_question(["What are its arms like?", {"input": ASK}], replies=["What are its arms like?"])
    assert asked.question == ASK


def test_the_last_words_of_a_conversation_count_and_its_query_stands_alone() -> None:
    talk = [("user", "What is a steelyard?"), ("assistant", "A balance."), ("user", "How does it weigh?")]
    assert user_question([{"messages": talk}], queries=[ASK]) == Asked(
        question="How does it weigh?", standalone=ASK
    )
    given = {"input": "How does it weigh?", "chat_history": talk[:2]}
    assert user_question([given], queries=[ASK]).standalone == ASK


def test_without_a_conversation_there_is_no_standalone_form() -> None:
    assert user_question([ASK], queries=["steelyard weighing"]).standalone is None
    assert user_question([{"input": ASK, "chat_history": []}], queries=["steelyard"]).standalone is None


def test_an_invented_passage_is_not_a_standalone_form() -> None:
    talk = [("user", "What is it?"), ("assistant", "A balance."), ("user", "How does it weigh?")]
    passage = "A steelyard weighs by means of a counterweight that slides along its arm. " * 6
    assert user_question([talk], queries=[passage]).standalone is None


def test_only_a_rewritten_form_is_no_question() -> None:
    assert user_question([], queries=[ASK], replies=[ASK]).notes == ("question_rewritten_only",)
    assert user_question([], queries=[ASK]) == Asked(question=ASK)
    assert user_question([]).notes == ("question_unknown",)


def test_a_prompt_names_its_question_on_the_last_such_line() -> None:
    prompt = f"Question: an example?\nAnswer: yes\n\nContext: a\nUser question: {ASK}\nAnswer:"
    assert question_in_prompt(prompt) == ASK
    assert question_in_prompt("Summarise this.") == ""


@pytest.mark.parametrize("lead", ["Here's a question", "Here is the user's question", "Answer this query"])
def test_a_line_that_presents_the_question_names_it(lead: str) -> None:
    prompt = f"You know scales.\n\n{lead}: {ASK}\n\nHere's some context:\n\nA question: of weight.\n\nAnswer:"
    assert question_in_prompt(prompt) == ASK
    assert question_in_prompt(f"{prompt}\nQuestion: {ASK[:-8]}?") == f"{ASK[:-8]}?"
    assert question_in_prompt("Here is how a question: mark looks.\nUse this context:\nScales.") == ""


@pytest.mark.parametrize("end", ["", "\nAssistant:", "\n\nAI: ", "\nHelpful Answer:"])
def test_what_a_person_says_last_is_the_question(end: str) -> None:
    assert question_in_prompt(f"Use this context.\nA scale.\n\nHuman: {ASK}{end}") == ASK


def test_what_a_person_said_earlier_is_not_the_question() -> None:
    assert question_in_prompt(f"Human: {ASK}\nAssistant: By weights.\nWrite what comes next.") == ""


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
    assert isinstance(user_question([value, json.dumps(value), repr(value)]).question, str)
