"""Reading a chat model's reply: what is complete and unambiguous is taken, everything else is named.

A server that enforces the schema sends exactly one JSON object. The others send it with prose around it, in a
code fence, twice, or cut off in the middle. The rules that keep a hostile text, quoted by the model, from
becoming a verdict: only JSON counts, never prose, and no value that is cut off; objects or keys that occur
more than once have to agree; and a word or a number is an answer only if it is one of those that were
offered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from steelyard.judge.chat._kinds import KINDS, Given, malformed
from steelyard.questions import Answer, Question, Request, Unanswered

# Only at the very beginning: further on the tags may be quoted, and cutting there would splice two answers.
_THOUGHT = re.compile(r"\A\s*<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL)
_SPACE = " \t\r\n"
_ATTEMPTS = 200


class _Ambiguous:
    """Stands for a key that was answered twice, in different ways."""


_AMBIGUOUS = _Ambiguous()


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """The keyed values of a reply."""

    values: Mapping[str, Any] = field(default_factory=dict)
    """By key; complete JSON values, or a mark for a key with several answers."""
    places: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Where each value stands in the reply."""


def read(request: Request, found: ParsedReply) -> dict[str, Answer]:
    """The answers to the questions of a request, and `Unanswered` for the keys nobody asked for.

    Keys without a value are left out: the batcher counts them as missing.
    """
    contexts = len(request.view.contexts or ())
    answers: dict[str, Answer] = {}
    for key, value in found.values.items():
        question = request.questions.get(key)
        if question is None:
            answers[key] = malformed("nobody asked")
        elif isinstance(value, _Ambiguous):
            answers[key] = malformed("answered twice, in different ways")
        else:
            answers[key] = KINDS[type(question)].parse(question, Given(value, contexts))
    return answers


def answers_in(text: object, request: Request) -> tuple[dict[str, Answer], ParsedReply | None]:
    """The answers in a reply, and where they stand.

    Without any JSON that answers something, there is no ParsedReply, and every answer is `malformed_reply`.
    """
    found = find(text, request) if isinstance(text, str) else None
    if found is None:
        nonsense = Unanswered(cause="malformed_reply", detail="the reply has no JSON with answers in it")
        return dict.fromkeys(request.questions, nonsense), None
    return read(request, found), found


def find(text: str, request: Request) -> ParsedReply | None:
    """The keyed values in a reply; None where it holds no JSON object that answers anything.

    An object that stands in the judged material word for word is a quotation and does not count. Of several
    others (a draft and its correction), only what stands in all of them does.

    Args:
        text: The model's reply.
        request: The questions; keys of theirs tell an answer from other JSON.
    """
    blank = _THOUGHT.sub(lambda match: " " * len(match[0]), text)
    quotable = _quotable(request)
    objects = [
        found
        for found in _objects(blank, request.questions)
        if not (quotable and _squeezed(blank[found.start : found.end]) in quotable)
    ]
    if not objects:
        return None
    values: dict[str, Any] = {}
    places: dict[str, tuple[int, int]] = {}
    for key, value, place in (pair for found in objects for pair in found.pairs):
        values[key] = value if key not in values or _equal(values[key], value) else _AMBIGUOUS
        places[key] = place
    everywhere = set(values).intersection(*({key for key, _, _ in found.pairs} for found in objects))
    return ParsedReply({key: values[key] for key in values if key in everywhere}, places)


def _quotable(request: Request) -> str:
    """The judged texts that a reply could quote an answer from, without blanks; mostly empty."""
    view = request.view
    contexts = [context.text for context in (*(view.contexts or ()), *(view.reference_contexts or ()))]
    said = [question.quoted for question in request.questions.values()]
    together = "\n".join(filter(None, (view.question, view.answer, view.reference, *contexts, *said)))
    return _squeezed(together) if any(f'"{key}"' in together for key in request.questions) else ""


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _equal(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


@dataclass(slots=True)
class _Object:
    """One outermost JSON object, as far as it is complete."""

    start: int
    end: int
    pairs: list[tuple[str, Any, tuple[int, int]]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)


def _objects(text: str, questions: Mapping[str, Question]) -> Iterator[_Object]:
    """The objects in a text that answer, or begin to answer, one of the questions."""
    at = text.find("{")
    for _ in range(_ATTEMPTS):
        if at < 0:
            return
        found = _scan(text, at)
        if found.keys & questions.keys():
            yield found
            at = text.find("{", found.end)
        else:
            at = text.find("{", at + 1)


def _scan(text: str, start: int) -> _Object:
    """Read the object that opens at `start`. What is cut off within it is not looked at for objects again."""
    found = _Object(start, len(text))
    at = _skip(text, start + 1)
    try:
        while text[at : at + 1] == '"':
            key, at = _DECODER.raw_decode(text, at)
            found.keys.add(key)
            at = _skip(text, at)
            if text[at : at + 1] != ":":
                return found
            begin = _skip(text, at + 1)
            value, end = _DECODER.raw_decode(text, begin)
            at = _skip(text, end)
            if text[at : at + 1] not in (",", "}"):
                return found
            found.pairs.append((key, value, (begin, end)))
            if text[at] == "}":
                found.end = at + 1
                return found
            at = _skip(text, at + 1)
    except (ValueError, RecursionError):
        pass
    return found


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object in which every key has one value."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise ValueError(f"key {key!r} twice")
        found[key] = value
    return found


_DECODER = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_distinct)
