"""The kinds of question that are made, in what shares, and in what words they are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from steelyard._internal.text import instead_of
from steelyard.errors import ConfigurationError
from steelyard.golden._set import Message
from steelyard.golden.making._passages import Passage

CaseKind = Literal[
    "single_passage", "multi_passage", "comparison", "follow_up", "unanswerable", "false_premise"
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """How a kind of question is made."""

    share: float
    """Its share of the cases, where nothing else is wanted."""
    passages: int
    wanted: str
    answerable: bool = True


KINDS: Mapping[CaseKind, Kind] = {
    "single_passage": Kind(
        share=0.4, passages=1, wanted="a question that one or two sentences of its passage answer"
    ),
    "multi_passage": Kind(
        share=0.2, passages=2, wanted="a question whose answer needs a sentence of each of its two passages"
    ),
    "comparison": Kind(
        share=0.1, passages=2, wanted="a question that compares something its two passages both tell of"
    ),
    "follow_up": Kind(
        share=0.1,
        passages=1,
        wanted="a short conversation (history: the user's first question and its answer), and then a "
        "follow-up question that is understood only with it and that the passage answers",
    ),
    "unanswerable": Kind(
        share=0.1,
        passages=1,
        wanted="a question about the passage's subject that the passage does not answer; sentences: the one "
        "that comes nearest; reference: that this cannot be known from it",
        answerable=False,
    ),
    "false_premise": Kind(
        share=0.1,
        passages=1,
        wanted="a question that takes for granted something the passage says is wrong; sentences: the ones "
        "that say so; reference: the correction",
    ),
}


def quotas(n: int, shares: Mapping[CaseKind, float] | None = None) -> dict[CaseKind, int]:
    """How many cases of each kind make n, by largest remainders."""
    wanted = {kind: KINDS[kind].share for kind in KINDS} if shares is None else dict(shares)
    unknown = [kind for kind in wanted if kind not in KINDS]
    if unknown:
        raise ConfigurationError(
            f"no kind of question is called {unknown[0]!r}; {instead_of(unknown[0], KINDS)}"
        )
    total = sum(wanted.values())
    if any(share < 0 for share in wanted.values()) or not total > 0:
        raise ConfigurationError(f"shares must not be negative, and not all 0: {wanted!r}")
    exact = {kind: n * share / total for kind, share in wanted.items()}
    found = {kind: int(count) for kind, count in exact.items()}
    for kind in sorted(exact, key=lambda kind: found[kind] - exact[kind])[: n - sum(found.values())]:
        found[kind] += 1
    return found


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
    passages: tuple[Passage, ...]
    attempt: int = 0
    """How often these passages were asked about in this way before."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A case as it was written, its quotations found in the passages."""

    job: Job
    question: str = field(repr=False)
    reference: str = field(repr=False)
    sentences: tuple[str, ...] = field(repr=False)
    """What it rests on, as it stands in the passages."""
    history: tuple[Message, ...] = field(repr=False)


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
