"""What is no evidence although a prompt or a retriever had it: what was let go of, tools, marks, nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from recording.asking import from_nowhere
from recording.test_evidence import HOURS, QUESTION, TICKETS, call, evidence
from steelyard.record import Context
from steelyard.recording.building import Step, Steps, asked_of, decide, sources_of
from steelyard.recording.provenance import guessed_passages


@pytest.mark.parametrize(("left", "found"), [([], []), ([HOURS], [HOURS])], ids=["nothing", "a-part"])
def test_what_the_state_let_go_of_is_no_evidence_of_an_answer_that_code_gave(
    left: list[str], found: list[str]
) -> None:
    look = Step(kind="retrieval", given=QUESTION, contexts=(Context(text=HOURS), Context(text=TICKETS)), at=1)
    kept = Step(kind="chain", returned={"notes": [HOURS, TICKETS]}, at=1, ended=2)
    graded = call(f"Is this relevant? Say yes or no.\n{HOURS}", "no", at=3)
    last = {"question": QUESTION, "notes": left, "answer": "Ask at the gate."}
    turn = Steps(
        given={"question": QUESTION}, returned=last, steps=(look, kept, graded), answer="Ask at the gate."
    )
    origin = decide(turn, sources_of(turn), answer=turn.answer, question=QUESTION)
    assert len(origin.contexts) == (2 if found else 0)
    assert len(origin.retrieved) == (0 if found else 2)


@pytest.mark.parametrize(
    ("returned", "is_evidence"),
    [
        ({"items": [], "total": 0, "message": "Sin que haya ninguno de ellos."}, False),
        ({"items": [], "closed": False, "message": HOURS}, True),
        ({"items": [TICKETS], "total": 0, "message": HOURS}, True),
    ],
    ids=["counted", "not-counted", "listed"],
)
def test_an_empty_list_with_a_count_of_none_tells_of_nothing(returned: Any, is_evidence: bool) -> None:
    text = json.dumps(returned)
    tool = Step(kind="tool", name="find", given={"q": QUESTION}, returned=text, at=1)
    assert bool(evidence(tool, call(f"{text}\n{QUESTION}", "From ten to five.", at=2))) is is_evidence


@dataclass
class Notice:
    """Data that an application keeps in an object."""

    description: str = HOURS


class Worker(Notice):
    """The same of an object that works for the application."""

    def invoke(self, given: str) -> str:
        return given


@pytest.mark.parametrize(("part", "found"), [(Notice(), [HOURS]), (Worker(), [])], ids=["data", "tool"])
def test_what_a_tool_says_of_itself_is_no_evidence(part: Notice, found: list[str]) -> None:
    filled = Step(kind="prompt", given={"parts": {"hours": part}, "question": QUESTION}, at=1)
    assert (
        evidence(filled, call(f"Use {{'hours': {part!r}}}\n{QUESTION}", "From ten to five.", at=2)) == found
    )


LABELLED = "Sufficient: True\n\nKey Strengths:\n- hours are given\n\nFeedback for the next writer:\n"
LEAD = "The draft that was written before this one did not pass, and somebody said why: "


@pytest.mark.parametrize("shown", [LABELLED, LEAD], ids=["labels", "a-lead"])
def test_what_a_model_said_is_its_own_behind_labels_that_code_puts_there(shown: str) -> None:
    form = {"sufficient": True, "strengths": ["hours are given"], "advice": "Tell them about the gate."}
    look = Step(kind="retrieval", given=QUESTION, contexts=(Context(text=HOURS),), at=1)
    judged = call(f"Judge what is known.\n{HOURS}", json.dumps(form), at=2)
    kept = Step(kind="chain", returned={"critique": f"{shown}Tell them about the gate."}, at=3)
    last = call(f"{shown}Tell them about the gate.\n\n{HOURS}\n{QUESTION}", "From ten to five.", at=4)
    assert evidence(look, judged, kept, last) == [HOURS]


def test_a_form_that_only_says_that_nothing_was_found_is_no_passage() -> None:
    told = json.dumps(
        {"error": "No documents found. Say so, and ask whether the hours of the zoo were meant."}
    )
    tool = Step(kind="tool", name="look_up", given={"q": "hours"}, returned=told, at=1)
    turn = Steps(given={"question": QUESTION}, steps=(tool, call(f"{QUESTION}\n{told}", "No idea.", at=2)))
    found = decide(turn, sources_of(turn), answer="No idea.", question=QUESTION)
    assert not found.contexts
    assert any("a few words stand where a look-up found nothing" in note for note in found.notes)


@pytest.mark.parametrize(
    ("brought", "is_doubtful"),
    [
        ((Context(text="Sem contexto para esta pergunta."),), True),
        ((Context(text="Ei tietoa aiheesta."),), True),
        ((Context(text="Open to all.", id="d1"),), False),
        ((Context(text="Open from 10 to 5."),), False),
        ((Context(text="Open to all."), Context(text=HOURS)), False),
    ],
    ids=["portuguese", "finnish", "from-a-store", "a-number", "two"],
)
def test_few_words_that_are_all_a_retriever_brought_may_say_that_it_found_nothing(
    brought: tuple[Context, ...], is_doubtful: bool
) -> None:
    look = Step(kind="retrieval", given=QUESTION, contexts=brought, at=1)
    shown = "\n".join(one.text for one in brought)
    turn = Steps(given={"question": QUESTION}, steps=(look, call(f"{shown}\n{QUESTION}", "Ask.", at=2)))
    found = decide(turn, sources_of(turn), answer="Ask.", question=QUESTION)
    assert len(found.contexts) == len(brought)
    assert any("all that a look-up brought" in note for note in found.notes) is is_doubtful


@pytest.mark.parametrize(
    ("form", "is_cut"),
    [
        ("<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n", True),
        ("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n{}<|im_end|>\n", True),
        ("[INST] {} [/INST]", True),
        ("{} What does <|im_end|> mean?", False),
    ],
    ids=["user", "system", "inst", "typed"],
)
def test_in_the_marks_of_a_chat_template_the_last_said_is_the_question(form: str, is_cut: bool) -> None:
    given = form.format(QUESTION)
    steps = (
        Step(kind="retrieval", given=given, contexts=(Context(text=HOURS),), at=1),
        call(given, "Ten.", at=2),
    )
    turn = Steps(given=given, steps=steps, answer="Ten.")
    asked = asked_of(turn, sources_of(turn))
    assert asked.question == (QUESTION if is_cut else given)
    assert ("question_guessed" in asked.notes) is is_cut


def test_a_sentence_that_tells_how_to_reply_is_not_guessed_to_be_a_passage() -> None:
    rules = "Rewrite what follows so that it needs no context.\n\nReply with only the question."
    assert guessed_passages(f"{rules}\n\nFollow-up: {QUESTION}\n\nStandalone:", QUESTION) == []


@pytest.mark.parametrize(("rows", "is_noted"), [((HOURS, TICKETS), True), ((HOURS, HOURS), False)])
def test_more_than_the_question_that_code_put_into_an_input_is_noted(
    rows: tuple[str, str], is_noted: bool
) -> None:
    look = Step(kind="retrieval", given="fares", contexts=(Context(text="Fares rise in May.", id="1"),), at=1)
    for row, question in zip(rows, ("What is the fare?", QUESTION), strict=True):
        own = f"You guide the guests of our town, and know these rows.\n{row}\n\nQuestion: {question}"
        turn = Steps(given=own, steps=(look, call(own, "From ten to five.", at=3)), answer="x")
        asked = asked_of(turn, sources_of(turn))
    assert asked.question == QUESTION
    assert asked.notes == ("question_guessed", "question_whole_prompt")[: 1 + is_noted]


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("<notes>\nBoth doors.\n</notes>\n<answer>\nFrom ten.\n</answer>", "From ten."),
        ("<Answer>From ten.</Answer>", "From ten."),
        ("<notes>\nBoth doors.\n</notes>\nFrom ten.", "<notes>\nBoth doors.\n</notes>\nFrom ten."),
        ("<answer>From ten.</answer>\nOr from eleven.", "<answer>From ten.</answer>\nOr from eleven."),
        ("<b>From ten.</b>", "<b>From ten.</b>"),
    ],
)
def test_a_form_in_tags_says_which_of_its_parts_is_the_answer(reply: str, answer: str) -> None:
    assert from_nowhere(QUESTION, f"Fill in the form.\n\n{QUESTION}", reply).answer == answer


@pytest.mark.parametrize("speaker", ["User", "Human", "Customer"])
def test_who_speaks_is_no_part_of_a_question_and_its_mark_is_noted(speaker: str) -> None:
    record = from_nowhere(f"{speaker}: {QUESTION}", f"Be brief.\n\n{speaker}: {QUESTION}", "From ten.")
    assert record.question == QUESTION
    assert any(note.startswith("question_guessed") for note in record.notes)
    typed = from_nowhere(f"Note: {QUESTION}", f"Be brief.\n\nNote: {QUESTION}", "From ten.")
    assert typed.question == f"Note: {QUESTION}"
