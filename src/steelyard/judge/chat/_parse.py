"""Reading a chat model's reply: what is complete and unambiguous is taken, everything else is named.

A server that enforces the schema sends exactly one JSON object. The others send it with prose around it, in a
code fence, twice, or cut off in the middle. The rules that keep a hostile text, quoted by the model, from
becoming a verdict: only JSON counts, never prose; a truncated value is no value; objects or keys that occur
more than once have to agree; and a word or a number is an answer only if it is one of those that were
offered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from steelyard.judge.chat._schema import points
from steelyard.questions import (
    Answer,
    Choose,
    ChosenOption,
    GeneratedQuestions,
    Level,
    Question,
    Rating,
    Request,
    Texts,
    Unanswered,
    YesNo,
)
from steelyard.scores import Evidence

_WORDS = {"true": True, "yes": True, "false": False, "no": False}
# Only at the very beginning: further on the tags may be quoted, and cutting there would splice two answers.
_THOUGHT = re.compile(r"\A\s*<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL)
_SPACE = " \t\r\n"
_MISSING = object()
_ATTEMPTS = 200


class _Ambiguous:
    """Stands for a key that was answered twice, in different ways."""


_AMBIGUOUS = _Ambiguous()


@dataclass(frozen=True, slots=True)
class Found:
    """The keyed values of a reply."""

    values: Mapping[str, Any] = field(default_factory=dict)
    """By key; complete JSON values, or a mark for a key with several answers."""
    places: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Where each value stands in the reply."""


def read(request: Request, found: Found) -> dict[str, Answer]:
    """The answers to the questions of a request, and `Unanswered` for the keys nobody asked for.

    Keys without a value are left out: the batcher counts them as missing.
    """
    contexts = len(request.view.contexts or ())
    answers: dict[str, Answer] = {}
    for key, value in found.values.items():
        question = request.questions.get(key)
        if question is None:
            answers[key] = Unanswered(cause="malformed_answer", detail="nobody asked")
        elif isinstance(value, _Ambiguous):
            answers[key] = _malformed("answered twice, in different ways")
        else:
            answers[key] = _answer(question, value, contexts)
    return answers


def _malformed(detail: str) -> Unanswered:
    return Unanswered(cause="malformed_answer", detail=detail)


def _answer(question: Question, value: Any, contexts: int) -> Answer:
    body = value if isinstance(value, dict) else {}
    reason = body.get("reason")
    reason = reason.strip() if isinstance(reason, str) else ""
    match question:
        case Rating(levels=levels):
            return _level(_pick(value, "level"), [level for level, _ in levels], reason)
        case Choose(options=options):
            option = _pick(value, "option")
            if not isinstance(option, str) or option not in options:
                return _malformed("no option that was offered")
            return ChosenOption(value=option, reason=reason)
        case _ if question.form is Texts:
            return _texts(question, value)
        case _:
            verdict = _yes_no(_pick(value, "verdict"))
            if verdict is None:
                return _malformed("a verdict that is neither true nor false")
            return _verdict(question, verdict, reason, body.get("context"), contexts)


def _pick(value: Any, name: str) -> Any:
    """A named field of an answer, or the answer itself where the model left the object out."""
    return value.get(name, _MISSING) if isinstance(value, dict) else value


def _yes_no(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    return _WORDS.get(value.strip().lower()) if isinstance(value, str) else None


def _level(value: Any, scale: list[float], reason: str) -> Answer:
    if isinstance(value, bool) or not isinstance(value, int | float) or value not in scale:
        return _malformed("a level that is not on the scale")
    return Level(value=float(value), reason=reason)


def _texts(question: Question, value: Any) -> Answer:
    items = value
    if isinstance(value, dict):
        lists = [entry for entry in value.values() if isinstance(entry, list)]
        items = lists[0] if len(lists) == 1 else None
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        return _malformed("not a list of texts")
    kept = [item.strip() for item in items if item.strip()]
    return Texts(items=tuple(kept[: question.count] if isinstance(question, GeneratedQuestions) else kept))


def _verdict(question: Question, verdict: bool, reason: str, context: Any, contexts: int) -> Answer:
    """A verdict with the context it points at. A yes resting on a context that is not there is no answer."""
    if not points(question) or isinstance(context, bool) or not isinstance(context, int) or context == 0:
        return YesNo(value=verdict, reason=reason)
    if 1 <= context <= contexts:
        return YesNo(value=verdict, reason=reason, evidence=(Evidence(context=context - 1),))
    if verdict:
        return _malformed(f"it rests on context {context}, and there are {contexts}")
    return YesNo(value=verdict, reason=reason)


def find(text: str, request: Request) -> Found | None:
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
    return Found({key: values[key] for key in values if key in everywhere}, places)


def _quotable(request: Request) -> str:
    """The judged texts that a reply could quote an answer from, without blanks; mostly empty."""
    view = request.view
    contexts = [context.text for context in (*(view.contexts or ()), *(view.reference_contexts or ()))]
    said = [
        getattr(question, "claim", "") or getattr(question, "text", "")
        for question in request.questions.values()
    ]
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
    raise ValueError(f"{name} is no JSON")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object in which every key has one value."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise ValueError(f"key {key!r} twice")
        found[key] = value
    return found


_DECODER = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_distinct)
