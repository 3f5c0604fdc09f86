"""Reading a chat model's reply: what is complete and unambiguous is taken, everything else is named.

A server that enforces the schema sends exactly one JSON object. Others put it into a code fence, or cut it
off in the middle. The rules that keep a hostile text, quoted by the model, from becoming a verdict: the reply
is the object, from its first character to its last (white space, one code fence around the whole and the
model's own thoughts before it aside), and never a text that an object stands in; a reply that was cut off
counts as far as its values are complete; a key that occurs twice has to agree with itself; keys end in a
nonce that the judged material does not hold, and those of a model that leaves it out count only if the
material has none of them; and a word or a number is an answer only if it is one of those that were offered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from steelyard._internal.json_pieces import PiecewiseDecoder
from steelyard.judge.chat._asked import shown
from steelyard.judge.chat._kinds import KINDS, RepliedValue, malformed
from steelyard.judge.chat._prompts import THOUGHTS
from steelyard.questions import Answer, Request, Unanswered

# Only at the very beginning: further on the tags may be quoted, and cutting there would splice two answers.
_THOUGHT = re.compile(r"\A\s*<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL)
_FENCE = re.compile(r"```[ \t]*(?:json|JSON)?[ \t]*\r?\n")
# What may stand behind the last complete value of a reply that was cut off: pieces of JSON, the last of which
# may be incomplete. Words of prose are none.
_REST = re.compile(
    r"(?:[ \t\r\n{}\[\]:,]|\"(?:[^\"\\]|\\.)*+\"|-?[0-9][0-9.eE+-]*+|true|false|null)*+"
    r"(?:\"(?:[^\"\\]|\\.)*+\\?|tr?u?|fa?l?s?|nu?l?|-)?",
    re.DOTALL,
)
_SPACE = " \t\r\n"
_MOST_TEXT = 200_000
"""Characters of a reply with the model's thoughts: 50,000 tokens. Other threads wait while one is read."""


class _Ambiguous:
    """Stands for a key that was answered twice, in different ways."""


_AMBIGUOUS = _Ambiguous()


@dataclass(frozen=True, slots=True, repr=False)
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
        if question is None and key == THOUGHTS:
            continue
        if question is None:
            answers[key] = malformed("nobody asked")
        elif isinstance(value, _Ambiguous):
            answers[key] = malformed("answered twice, in different ways")
        else:
            answers[key] = KINDS[type(question)].parse(question, RepliedValue(value, contexts))
    return answers


def answers_in(
    text: object, request: Request, *, nonce: str = ""
) -> tuple[dict[str, Answer], ParsedReply | None]:
    """The answers in a reply, and where they stand; on the wire, keys end in the nonce.

    Without any JSON that answers something, there is no ParsedReply, and every answer is `malformed_reply`.
    """
    found = find(text, request, nonce=nonce) if isinstance(text, str) and len(text) <= _MOST_TEXT else None
    if found is None:
        nonsense = Unanswered(cause="malformed_reply", detail="the reply has no JSON with answers in it")
        return dict.fromkeys(request.questions, nonsense), None
    return read(request, found), found


def find(text: str, request: Request, *, nonce: str = "") -> ParsedReply | None:
    """The keyed values of a reply; None where it is not a JSON object that answers something."""
    # Blanks in place of thoughts, so that places in the reply stay right for log probabilities.
    blank = _THOUGHT.sub(lambda match: " " * len(match[0]), text)
    wire = {f"{key}{nonce}": key for key in request.questions}
    found = _whole(blank, wire.keys() | request.questions.keys())
    if found is None:
        return None
    own = bool(nonce) and bool(found.keys & wire.keys())
    if not own and _may_be_quoted(found, request):
        return None
    values: dict[str, Any] = {}
    places: dict[str, tuple[int, int]] = {}
    for name, value, place in found.pairs:
        # Beside keys with the nonce, those without are nobody's.
        key = wire.get(name, f"{name} without nonce" if name in request.questions else name) if own else name
        # Equal values are one answer, however often they are given.
        values[key] = value if key not in values or _equal(values[key], value) else _AMBIGUOUS
        places[key] = place
    return ParsedReply(values, places)


def _whole(text: str, keys: Set[str]) -> _Object | None:
    """The object that a reply is, whole or cut off; None where it is anything else."""
    start = _skip(text, 0)
    fence = _FENCE.match(text, start)
    found = _scan(text, _skip(text, fence.end()) if fence else start)
    if found is None:
        return None
    rest = text[found.end :] if found.complete else ""
    if rest.strip(_SPACE).removeprefix("```" if fence else "").strip(_SPACE):
        return None
    # Behind the last complete value only pieces of JSON may stand; words there mean that it was quoted.
    if not found.complete and not _REST.fullmatch(text, found.end):
        return None
    if found.keys & keys:
        return found
    inner = _wrapped(text, found)
    return inner if inner is not None and inner.keys & keys else None


def _wrapped(text: str, found: _Object) -> _Object | None:
    """The object inside of one that has nothing else: `{"answers": {...}}`."""
    if not found.complete or len(found.pairs) != 1:
        return None
    ((_, value, (begin, _)),) = found.pairs
    return _scan(text, begin) if isinstance(value, dict) else None


def _may_be_quoted(found: _Object, request: Request) -> bool:
    """Whether a key of a reply stands in the judged material, from which it may then come."""
    # Not each key of the reply: thousands of others would each be looked for in a million characters.
    return any(key in text for key in found.keys & request.questions.keys() for text in shown(request))


def _equal(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


@dataclass(slots=True, repr=False)
class _Object:
    """One JSON object, as far as it is complete."""

    start: int
    end: int
    """One past its last character, or past its last complete value."""
    complete: bool = False
    pairs: list[tuple[str, Any, tuple[int, int]]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)


def _scan(text: str, start: int) -> _Object | None:
    """Read the object that opens at `start`; None where none does."""
    if text[start : start + 1] != "{":
        return None
    found = _Object(start, start + 1)
    at = _skip(text, start + 1)
    if text[at : at + 1] == "}":
        found.end, found.complete = at + 1, True
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
            found.end, found.complete = at + 1, text[at] == "}"
            if found.complete:
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


_DECODER = PiecewiseDecoder(parse_constant=_no_constant, object_pairs_hook=_distinct)
