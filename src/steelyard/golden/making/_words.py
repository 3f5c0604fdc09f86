"""The requests of making: what is asked for, in what schema, from what material."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steelyard.golden._case import Message
from steelyard.golden.making._kinds import KINDS, CaseKind
from steelyard.golden.making._passages import Passage

BATCH = 5
"""Cases to a request: more save little, and the model writes worse."""

WRITE = (
    "Write test cases for a system that answers questions from documents. For each key: {wanted}. Ask as a "
    "user would who has not seen the passage: name what you ask about, never mention a passage or text. "
    "reference: the answer, in a sentence. sentences: copied word for word from the key's own passages, the "
    "fewest that the answer rests on. history: empty unless asked for."
)
CRITICISE = (
    "Check test cases. For each key, by its sentences alone: answerable: whether they answer the question; "
    "right: whether the reference follows from them; alone: whether somebody who has seen only the question, "
    "and its history where it has one, knows what is asked about."
)
CLOSED = (
    "Answer each key's question from general knowledge, in a few words. known: whether you are sure of it; "
    "where you are not, leave answer empty."
)

_TEXT = {"type": "string"}
_CASE = {
    "type": "object",
    "properties": {
        "question": _TEXT,
        "reference": _TEXT,
        "sentences": {"type": "array", "items": _TEXT},
        "history": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"role": {"type": "string", "enum": ["user", "assistant"]}, "text": _TEXT},
                "required": ["role", "text"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["question", "reference", "sentences", "history"],
    "additionalProperties": False,
}
_VERDICT = {
    "type": "object",
    "properties": dict.fromkeys(("answerable", "right", "alone"), {"type": "boolean"}),
    "required": ["answerable", "right", "alone"],
    "additionalProperties": False,
}
_KNOWN = {
    "type": "object",
    "properties": {"known": {"type": "boolean"}, "answer": _TEXT},
    "required": ["known", "answer"],
    "additionalProperties": False,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One case to be written."""

    kind: CaseKind
    """What sort of question."""
    passages: tuple[Passage, ...]
    """What it is to be made from."""
    attempt: int = 0
    """How often these passages were asked about in this way before."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A case as it was written, its quotations found in the passages."""

    job: Job
    """What it was written for."""
    question: str = field(repr=False)
    """The question."""
    reference: str = field(repr=False)
    """The answer."""
    sentences: tuple[str, ...] = field(repr=False)
    """What it rests on, as it stands in the passages."""
    history: tuple[Message, ...] = field(repr=False)
    """What was said before."""


Blocks = list[tuple[str, str]]


def keys(count: int) -> list[str]:
    """`c1`, `c2`, ..."""
    return [f"c{number}" for number in range(1, count + 1)]


def schema(shape: Mapping[str, Any], count: int) -> dict[str, Any]:
    """An object with one value of this shape to a key."""
    names = keys(count)
    return {
        "type": "object",
        "properties": {name: {"$ref": "#/$defs/one"} for name in names},
        "required": names,
        "additionalProperties": False,
        # Once, however many keys there are: the schema is part of what is paid for.
        "$defs": {"one": dict(shape)},
    }


def writing(jobs: Sequence[Job]) -> tuple[str, Blocks, dict[str, Any]]:
    """The request for a batch of cases."""
    wanted = "; ".join(f"{key}: {_wanted(job)}" for key, job in zip(keys(len(jobs)), jobs, strict=True))
    blocks = [
        (f"{key} passage {number}", passage.text)
        for key, job in zip(keys(len(jobs)), jobs, strict=True)
        for number, passage in enumerate(job.passages, start=1)
    ]
    return WRITE.format(wanted=wanted), blocks, schema(_CASE, len(jobs))


def _wanted(job: Job) -> str:
    again = f" (its passages were asked about {job.attempt} times before: ask about something else)"
    return KINDS[job.kind].wanted + (again if job.attempt else "")


def criticising(
    candidates: Sequence[Candidate], shown: Sequence[Sequence[str]]
) -> tuple[str, Blocks, dict[str, Any]]:
    """The request of the critic: each case with what it may be answered from."""
    blocks: Blocks = []
    for key, candidate, texts in zip(keys(len(candidates)), candidates, shown, strict=True):
        blocks += _asked(key, candidate)
        blocks.append((f"{key} reference", candidate.reference))
        blocks += [(f"{key} sentence {number}", text) for number, text in enumerate(texts, start=1)]
    return CRITICISE, blocks, schema(_VERDICT, len(candidates))


def closed_book(candidates: Sequence[Candidate]) -> tuple[str, Blocks, dict[str, Any]]:
    """The request to answer without the documents."""
    blocks = [
        block
        for key, candidate in zip(keys(len(candidates)), candidates, strict=True)
        for block in _asked(key, candidate)
    ]
    return CLOSED, blocks, schema(_KNOWN, len(candidates))


def _asked(key: str, candidate: Candidate) -> Blocks:
    told = [(f"{key} history, {message.role}", message.text) for message in candidate.history]
    return [*told, (f"{key} question", candidate.question)]
