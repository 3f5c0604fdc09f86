"""Worked examples: what a careful reader says about a claim and a passage.

The first passages are the examples of the field's literature and documentation (Ragas, DeepEval), the rest
were written for the table (`local_worked.json`): paraphrases that keep the meaning, and sentences in which
one thing was changed.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, NamedTuple

from steelyard.judge import LocalJudge
from steelyard.questions import Answer, Question, Request, Supported, View, YesNo
from steelyard.record import Context

JUDGE = LocalJudge()


def ask(
    question: Question, /, *, judge: LocalJudge = JUDGE, contexts: tuple[str, ...] = (), **parts: Any
) -> Answer:
    """The judge's answer to one question about some material."""
    view = View(contexts=tuple(Context(text=text) for text in contexts) or None, **parts)
    reply = asyncio.run(judge.answer(Request(view=view, questions={"q1": question})))
    return reply.answers["q1"]


def supported(claim: str, *contexts: str) -> YesNo:
    """Its verdict on one claim."""
    answer = ask(Supported(claim=claim), contexts=contexts)
    assert isinstance(answer, YesNo)
    return answer


def check_twins(true: str, false: str, text: str) -> None:
    """A claim that follows from a text is supported, its twin with one thing changed is not."""
    for claim, follows in ((true, True), (false, False)):
        answer = supported(claim, text)
        assert answer.probability is not None
        assert answer.value == (answer.probability >= 0.5) == follows, (claim, answer)


class Worked(NamedTuple):
    """A claim about a passage."""

    passage: str
    """The text of the passage."""
    claim: str
    """A sentence that was made of the answer."""
    follows: bool
    """Whether the passage supports it."""
    said: str
    """Words of its sentence of the answer."""
    decided: str
    """Words of the sentence of the passage that is about it; empty where none is."""


_READ = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
PASSAGES: dict[str, str] = {row["name"]: row["text"] for row in _READ}
EINSTEIN, FRANCE = PASSAGES["EINSTEIN"], PASSAGES["FRANCE"]
ANSWERS: dict[str, str] = {row["text"]: row["answer"] for row in _READ}
"""By the passage: an answer with all claims that were made about it."""
WORKED = [
    Worked(row["text"], claim, follows, said, decided)
    for row in _READ
    for follows, claim, said, decided in row["claims"]
]
SUPPORTED = [(one.passage, one.claim) for one in WORKED if one.follows]
UNSUPPORTED = [(one.passage, one.claim) for one in WORKED if not one.follows]
