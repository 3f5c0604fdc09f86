"""What needs no model: quotations that stand in the passages, answers that give themselves away, copies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from steelyard.golden._set import Message
from steelyard.golden.making._requests import KINDS, Candidate, Job

Problem = Literal[
    "not written",
    "quotation not word for word",
    "rests on one passage only",
    "conversation missing",
]

_WORD = re.compile(r"\w+")
_LONGEST_QUESTION = 600
_SAME = 0.6
"""An answer from general knowledge with this share of the reference's own words is the same answer."""


def candidate_from(data: object, job: Job) -> Candidate | Problem:
    """A case out of what a model wrote, or what is wrong with it.

    Sentences have to stand in the passages word for word (white space aside); the passage's own characters
    are kept, not the model's.
    """
    row: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
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


def _quoted(given: object, job: Job) -> tuple[str, ...] | Problem:
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
    if not own:
        return False
    given = set(_words(answer))
    return sum(word in given for word in own) / len(own) >= _SAME


def is_copy(question: str, others: Sequence[str]) -> bool:
    """Whether a question has the same words as one that is there already, in any order."""
    words = sorted(_words(question))
    return any(words == sorted(_words(other)) for other in others)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
