"""The kinds of question that are made, the requests for them, and what needs no model to be checked."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from steelyard._internal.text import instead_of
from steelyard.errors import ConfigurationError
from steelyard.golden._set import Message
from steelyard.golden.making._passages import Passage
from steelyard.judge.chat import Written
from steelyard.scores import Usage

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


def _object(**properties: Any) -> dict[str, Any]:
    closed = {"required": list(properties), "additionalProperties": False}
    return {"type": "object", "properties": properties, **closed}


_MESSAGE = _object(role={"type": "string", "enum": ["user", "assistant"]}, text=_TEXT)
_CASE = _object(
    question=_TEXT,
    reference=_TEXT,
    sentences={"type": "array", "items": _TEXT},
    history={"type": "array", "items": _MESSAGE},
)
_VERDICT = _object(**dict.fromkeys(("answerable", "right", "alone"), {"type": "boolean"}))
_KNOWN = _object(known={"type": "boolean"}, answer=_TEXT)


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
Request = tuple[str, Blocks, Mapping[str, Any]]
"""Instruction, texts with their headings, and the schema of the reply."""


def keys(count: int) -> list[str]:
    """`c1`, `c2`, ..."""
    return [f"c{number}" for number in range(1, count + 1)]


def schema(shape: Mapping[str, Any], count: int) -> dict[str, Any]:
    """An object with one value of this shape to a key."""
    # Once, however many keys there are: the schema is part of what is paid for.
    return {**_object(**dict.fromkeys(keys(count), {"$ref": "#/$defs/one"})), "$defs": {"one": dict(shape)}}


def writing(jobs: Sequence[Job]) -> Request:
    """The request for a batch of cases."""
    wanted, blocks = [], list[tuple[str, str]]()
    for key, job in zip(keys(len(jobs)), jobs, strict=True):
        again = f" (its passages were asked about {job.attempt} times before: ask about something else)"
        wanted.append(f"{key}: {KINDS[job.kind].wanted}{again if job.attempt else ''}")
        blocks += [(f"{key} passage {at}", one.text) for at, one in enumerate(job.passages, start=1)]
    return WRITE.format(wanted="; ".join(wanted)), blocks, schema(_CASE, len(jobs))


def criticising(candidates: Sequence[Candidate], shown: Sequence[Sequence[str]]) -> Request:
    """The request of the critic: each case with what it may be answered from."""
    blocks: Blocks = []
    for key, candidate, texts in zip(keys(len(candidates)), candidates, shown, strict=True):
        blocks += _asked(key, candidate)
        blocks.append((f"{key} reference", candidate.reference))
        blocks += [(f"{key} sentence {number}", text) for number, text in enumerate(texts, start=1)]
    return CRITICISE, blocks, schema(_VERDICT, len(candidates))


def closed_book(candidates: Sequence[Candidate]) -> Request:
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


_WORD = re.compile(r"\w+")
_LONGEST_QUESTION = 600
_SAME = 0.6
"""An answer from general knowledge with this share of the reference's own words is the same answer."""


def candidate_from(data: object, job: Job) -> Candidate | str:
    """A case out of what a model wrote, or what is wrong with it.

    Sentences have to stand in the passages word for word (white space aside); the passage's own characters
    are kept, not the model's.
    """
    row = mapping(data)
    question, reference = _text(row.get("question")), _text(row.get("reference"))
    if not question or not reference or len(question) > _LONGEST_QUESTION:
        return "not written"
    sentences = _quoted(row.get("sentences"), job)
    if isinstance(sentences, str):
        return sentences
    history = _history(row.get("history")) if job.kind == "follow_up" else ()
    if job.kind == "follow_up" and not (history and history[-1].role == "assistant"):
        return "conversation missing"
    return Candidate(job=job, question=question, reference=reference, sentences=sentences, history=history)


def _quoted(given: object, job: Job) -> tuple[str, ...] | str:
    """The quoted sentences as they stand in the passages, or what is wrong with them."""
    if not isinstance(given, list):
        return "not written"
    places = [_place(text, job) for text in given if _text(text)]
    found = [place for place in places if place is not None]
    if not found or len(found) < len(places):
        return "quotation not word for word"
    wanted = KINDS[job.kind].passages
    if wanted > 1 and len({index for index, _ in found}) < wanted:
        return "rests on one passage only"
    return tuple(dict.fromkeys(text for _, text in found))


def mapping(data: object) -> Mapping[str, Any]:
    """An object of a reply; an empty one where there is none."""
    return data if isinstance(data, Mapping) else {}


def _text(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _place(quoted: object, job: Job) -> tuple[int, str] | None:
    """The index of the passage that holds a sentence, and the sentence as it stands there."""
    words = _text(quoted).split()
    pattern = re.compile(r"\s+".join(map(re.escape, words)))
    for index, passage in enumerate(job.passages):
        if (found := pattern.search(passage.text)) is not None:
            return index, found.group()
    return None


def _history(given: object) -> tuple[Message, ...]:
    messages = []
    for row in given if isinstance(given, list) else ():
        role = row.get("role") if isinstance(row, Mapping) else None
        if role in ("user", "assistant") and (text := _text(row.get("text"))):
            messages.append(Message(role=role, text=text))
    return tuple(messages)


def gives_itself_away(candidate: Candidate, answer: str) -> bool:
    """Whether an answer from general knowledge says what the reference says.

    Compared are the words of the reference that are not in the question: those carry the answer.
    """
    asked = set(_words(candidate.question))
    own = [
        word
        for word in _words(candidate.reference)
        if word not in asked and (len(word) > 3 or word.isdigit())
    ]
    given = set(_words(answer))
    return bool(own) and sum(word in given for word in own) >= _SAME * len(own)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


class Writer(Protocol):
    """A model that writes JSON after a schema; `steelyard.judge.chat.ChatWriter` is one."""

    @property
    def name(self) -> str:
        """Its name, with the model."""

    async def write(self, instruction: str, blocks: Blocks, schema: Mapping[str, Any]) -> Written:
        """Write an object."""


class Journal:
    """Replies by request, one a line, in a file that only its owner can read.

    The same request is not sent again: work that was interrupted goes on, and the same seed and documents
    make the same set. The file holds what the model wrote about the documents; delete it to have it written
    anew.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: dict[str, Mapping[str, Any]] = {}
        self.hits = 0
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                try:
                    row = json.loads(line)
                    self._known[row["key"]] = row["data"]
                except (ValueError, KeyError, TypeError):
                    continue  # the half line of a process that was killed

    async def write(self, writer: Writer, request: Request) -> Written:
        """The known reply, or a new one, which is kept."""
        parts = json.dumps([writer.name, *request])
        key = hashlib.sha256(parts.encode("utf-8", "replace")).hexdigest()[:32]
        if key in self._known:
            self.hits += 1
            return Written(data=self._known[key], usage=Usage())
        written = await writer.write(*request)
        self._known[key] = written.data
        if self._path is not None:
            self._path.touch(mode=0o600)
            with self._path.open("a", encoding="utf-8") as file:
                # On a line of its own, whatever a process that was killed left at the end.
                file.write("\n" + json.dumps({"key": key, "data": written.data}, ensure_ascii=False) + "\n")
        return written
