"""Which model calls made the answer."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.recording.provenance import AnswerCalls, ModelCall, calls_behind, json_strings

ANSWER = "A steelyard weighs with a counterweight that slides along its longer arm."
GRADE = ModelCall(
    prompts=("You are a grader. Is the document relevant? Tides follow the moon.",),
    reply='{"binary_score": "yes"}',
    started=2,
)
REWRITE = ModelCall(
    prompts=("Rewrite the question: and how?",), reply="How does a steelyard weigh things?", started=1
)
WRITE = ModelCall(
    prompts=("Context: a steelyard.", "How does a steelyard weigh things?"), reply=ANSWER, started=3
)


def made(calls: list[ModelCall], answer: str, **options: list[str]) -> tuple[int, ...]:
    return calls_behind(calls, answer, **options).made


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
def test_graders_and_rewriters_never_count(order: list[int]) -> None:
    calls = [[GRADE, REWRITE, WRITE][at] for at in order]
    assert calls_behind(calls, ANSWER).all == (order.index(2),)


def test_a_list_of_sub_questions_feeds_nothing() -> None:
    parts = ["How many orders has each region?", "Which products sell best?"]
    split = ModelCall(prompts=("Split it. Tables: orders, products.",), reply=json.dumps(parts))
    join = ModelCall(prompts=(f"1. {parts[0]}\n412\n2. {parts[1]}\nOak desk",), reply=ANSWER, started=1)
    assert calls_behind([split, join], ANSWER).all == (1,)
    assert calls_behind([split], parts[0]).made == (0,)


@pytest.mark.parametrize(
    "reply",
    [
        "yes",
        "No.",
        '{"score": 3}',
        "[2] > [1] > [3]",
        "Doc: 2, Relevance: 7\nDoc: 1, Relevance: 3",
        "websearch",
        '{"datasource": "vectorstore"}',
        '```json\n{"queries": ["a", "b"]}\n```',
    ],
)
def test_helpers_after_the_answer_change_nothing(reply: str) -> None:
    later = ModelCall(prompts=(ANSWER,), reply=reply, started=9)
    assert calls_behind([WRITE, later], ANSWER).all == (0,)
    assert calls_behind([later], ANSWER).all == ()


@pytest.mark.parametrize(
    "call",
    [
        ModelCall(reply=f"Thought: I know.\nFinal Answer: {ANSWER}"),
        ModelCall(reply=f"<think>hm</think>{ANSWER.upper()}"),
        ModelCall(arguments=(json.dumps({"answer": ANSWER, "sources": [1, 2]}),)),
        ModelCall(structured=json.dumps({"result": {"answer": ANSWER, "confidence": 0.9}})),
        ModelCall(reply=f'```json\n{{"answer": "{ANSWER}"}}\n```'),
    ],
)
def test_the_answer_may_be_a_part_of_the_reply(call: ModelCall) -> None:
    assert made([GRADE, call], ANSWER) == (1,)


@pytest.mark.parametrize(
    "answer",
    [
        f"  {ANSWER}\n",
        f"**{ANSWER}**",
        f"Sure! Here you go: {ANSWER} Sources: a.md, b.md",
        json.dumps({"answer": ANSWER, "sources": ["a.md"]}),
        ANSWER[:50],
    ],
)
def test_the_reply_may_be_a_part_of_the_answer(answer: str) -> None:
    assert made([REWRITE, GRADE, WRITE], answer) == (2,)


def test_of_equal_replies_the_last_made_the_answer() -> None:
    again = ModelCall(prompts=("Better context",), reply=ANSWER, started=7)
    assert made([again, WRITE], ANSWER) == (0,)


def test_a_short_answer_is_found_whole_only() -> None:
    yes = ModelCall(prompts=("Is Rome in Italy?",), reply="Yes", started=4)
    assert made([GRADE, yes], "Yes.") == (1,)
    other = ModelCall(prompts=("Capital?",), reply="Oslo", started=5)
    assert made([other, yes], "Oslo") == (0,)


def test_what_fed_the_answer_is_followed_back() -> None:
    parts = [
        ModelCall(prompts=(f"Summarise document {n}",), reply=text, started=1)
        for n, text in enumerate(
            [
                "The counterweight slides along the longer arm of the beam.",
                "The beam lies level when it is right.",
            ]
        )
    ]
    last = ModelCall(prompts=("\n".join(part.reply for part in parts),), reply=ANSWER, started=2)
    found = calls_behind([*parts, last], ANSWER)
    assert (found.made, found.fed) == ((2,), (0, 1))


def test_what_repeats_the_answer_fed_it_although_it_asks() -> None:
    hello = "Hello! What shall I look up?"
    parts = [ModelCall(prompts=(f"Document {n}",), reply=hello, started=1 + n) for n in range(2)]
    last = ModelCall(prompts=(f"{hello}\n\n{hello}\n\nQuery: Hi",), reply=hello, started=3)
    assert calls_behind([*parts, last], hello).all == (0, 1, 2)


def test_a_refined_answer_leads_back_to_its_draft() -> None:
    draft = ModelCall(
        prompts=("First document",), reply="It weighs with a weight that hangs on one arm.", started=1
    )
    last = ModelCall(prompts=(f"Existing answer: {draft.reply} More context: ...",), reply=ANSWER, started=2)
    assert calls_behind([draft, last], ANSWER).all == (0, 1)


def test_a_refinement_that_changes_nothing_is_part_of_the_answer() -> None:
    first = ModelCall(prompts=("Rome has seven hills. How many?",), reply="There are seven of them.")
    more = [
        ModelCall(
            prompts=(f"Existing answer: There are seven of them. New context: {text}",),
            reply="There are seven of them.",
            started=at,
        )
        for at, text in enumerate(("Paris has one river.", "Bern is on the Aare."), 1)
    ]
    assert calls_behind([first, *more], "There are seven of them.").all == (0, 1, 2)


def test_an_answer_put_together_from_replies_names_them_all() -> None:
    first = ModelCall(reply="Steelyards were in use in Rome long before our time.", started=1)
    other = ModelCall(reply="Nobody here needs this text about tides and harbours.", started=2)
    found = calls_behind([first, WRITE, other], f"{first.reply}\n\n{ANSWER}")
    assert found.made == (0, 1)


def test_an_invented_passage_that_was_searched_with_does_not_count() -> None:
    invented = ModelCall(prompts=("Write a passage",), reply=ANSWER + " It is very old indeed.", started=1)
    last = ModelCall(
        prompts=(f"Passage: {invented.reply}",), reply="It slides along the arm, it seems.", started=2
    )
    assert calls_behind([invented, last], last.reply, queries=[invented.reply]).all == (1,)


def test_without_a_match_nothing_is_taken() -> None:
    found = calls_behind([GRADE, REWRITE, WRITE], "Something that nobody said at all in this turn.")
    assert found == AnswerCalls(notes=("answer_call_unknown",))
    assert not found.known
    assert calls_behind([], ANSWER) == AnswerCalls()


def test_a_single_call_whose_reply_was_not_seen_is_assumed() -> None:
    found = calls_behind([ModelCall(prompts=("Context",))], ANSWER)
    assert (found.made, found.notes) == ((0,), ("answer_call_assumed",))


def test_a_short_answer_is_found_as_a_line_of_a_reply_in_marks() -> None:
    marked = ModelCall(
        prompts=("[[ ## question ## ]]\nHow many?",), reply="[[ ## answer ## ]]\nSeven.\n\n[[ ## done ## ]]"
    )
    assert made([marked], "Seven.") == (0,)
    assert made([marked], "Six.") == ()


@given(st.lists(st.text(), max_size=5), st.text())
def test_any_replies_are_taken_without_raising(replies: list[str], answer: str) -> None:
    found = calls_behind([ModelCall(prompts=(answer,), reply=reply) for reply in replies], answer)
    assert set(found.all) <= set(range(len(replies)))


def test_deeply_nested_replies_are_taken_as_text() -> None:
    assert made([ModelCall(reply="[" * 100_000), WRITE], ANSWER) == (1,)


def test_a_draft_that_shares_words_with_the_reply_in_the_answer_did_not_make_it() -> None:
    shared = "Ask the office at the harbour if your scale is older than that."
    draft = ModelCall(prompts=("Context: tides.",), reply=f"Nothing is known of it. {shared}", started=1)
    last = ModelCall(prompts=("Context: a steelyard.",), reply=f"{ANSWER} {shared}", started=2)
    assert made([draft, last], f"{last.reply}\n\nLog: written twice") == (1,)
    assert made([draft, last], f"{draft.reply}\n\n{last.reply}") == (0, 1)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(" ab1", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=12,
)


def leaves(value: object) -> Iterator[str]:
    if isinstance(value, (list, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from leaves(one)
    elif value is not None and not isinstance(value, bool) and str(value).strip():
        yield str(value)


@given(st.lists(JSON, max_size=3) | st.dictionaries(st.text("ab", max_size=2), JSON, max_size=3))
def test_texts_and_numbers_of_a_form_are_read_in_their_order(value: object) -> None:
    for reply in (json.dumps(value), f"```json\n{json.dumps(value, indent=1)}\n```\n"):
        assert list(json_strings(reply)) == [reply, *leaves(value)]
