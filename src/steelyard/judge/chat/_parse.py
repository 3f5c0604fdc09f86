"""Reading a chat model's reply: what is complete and unambiguous is taken, everything else is named.

A server that enforces the schema sends exactly one JSON object. Others put it into a code fence, or cut it
off in the middle. The rules that keep a hostile text, quoted by the model, from becoming a verdict: the reply
is the object, from its first character to its last (white space, one code fence around the whole and the
model's own thoughts before it aside), and never a text that an object stands in; a reply that was cut off
counts as far as its values are complete; a key that occurs twice has to agree with itself; keys end in a
nonce that the judged material does not hold, and those of a model that leaves it out count only if the
material has none of them; and a word or a number is an answer only if it is one of those that were offered.

The token that holds a verdict was drawn among alternatives; the mass on those that begin the other verdict is
the judge's own doubt. It is not calibrated. Where most of the mass is on something else altogether (a server
that reports what the model wanted to say before the schema stopped it), there is no probability. Only the
token that begins the value counts, so verdicts and levels whose texts begin alike (1 and 10) get none.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from steelyard._internal.typed import PiecewiseDecoder
from steelyard.judge.chat._kinds import KINDS, RepliedValue, malformed
from steelyard.judge.chat._obedience import shown
from steelyard.judge.chat._prompts import THOUGHTS
from steelyard.questions import Answer, Level, Rating, Request, Unanswered, YesNo

# Within a JSON string every quotation mark is escaped, so this matches a field and never a quoted one.
_FIELD = re.compile(r'"(?:verdict|level)"\s*:\s*')
_ENOUGH = 0.5  # where the verdict's own tokens have less, the model was about to write something else
_LEAST = -700.0
_WORDS = {True: ("true", "yes"), False: ("false", "no")}


def with_probabilities(
    answers: Mapping[str, Answer],
    request: Request,
    text: str,
    found: ParsedReply,
    logprobs: Mapping[str, Any],
) -> dict[str, Answer]:
    """The answers, with probabilities where the tokens give them."""
    tokens = _Tokens(text, logprobs)
    done: dict[str, Answer] = {}
    for key, answer in answers.items():
        place = found.places.get(key)
        masses = tokens.masses(place) if place and isinstance(answer, YesNo | Level) else {}
        done[key] = _weighed(answer, request, key, masses) if masses else answer
    return done


def _weighed(answer: Answer, request: Request, key: str, masses: Mapping[str, float]) -> Answer:
    match answer:
        case YesNo(value=value):
            weights = _shares({flag: _mass(masses, words) for flag, words in _WORDS.items()})
            return replace(answer, probability=weights[True]) if weights.get(value) else answer
        case Level(value=value):
            question = request.questions[key]
            assert isinstance(question, Rating)
            names = {level: f"{level:g}" for level, _ in question.levels}
            if len({name[0] for name in names.values()}) < len(names):
                return answer
            weights_by_level = _shares({level: _mass(masses, (name,)) for level, name in names.items()})
            return replace(answer, probabilities=weights_by_level) if weights_by_level.get(value) else answer
        case _:
            return answer


def _mass(masses: Mapping[str, float], words: tuple[str, ...]) -> float:
    """The mass on tokens that are one of the words, or begin one."""
    return sum(mass for token, mass in masses.items() if any(word.startswith(token) for word in words))


def _shares(masses: dict[Any, float]) -> dict[Any, float]:
    total = sum(masses.values())
    return {name: mass / total for name, mass in masses.items()} if total >= _ENOUGH else {}


class _Tokens:
    """The tokens of a reply and their alternatives, by place. It counts in bytes, as tokens split letters."""

    def __init__(self, text: str, logprobs: Mapping[str, Any]) -> None:
        content = logprobs.get("content")
        self._tokens = [t for t in content if isinstance(t, dict)] if isinstance(content, list) else []
        pieces = [_bytes(token) for token in self._tokens]
        self._text = text
        # Some servers send tokens of markup around the reply; tokens that do not spell it cannot be placed in
        # it.
        self._offset = b"".join(pieces).find(text.encode("utf-8", "replace"))
        self._starts = list(accumulate(map(len, pieces), initial=0))

    def masses(self, place: tuple[int, int]) -> dict[str, float]:
        """Probability of each alternative for the token that begins the verdict in this part of the reply."""
        if self._offset < 0:
            return {}
        begin, end = place
        fields = list(_FIELD.finditer(self._text, begin, end))
        at = self._offset + len(
            self._text[: fields[-1].end() if fields else begin].encode("utf-8", "replace")
        )
        number = bisect_right(self._starts, at) - 1
        if number >= len(self._tokens):
            return {}
        # A token may begin with what stands before the value (a blank, a colon): alternatives then do as
        # well.
        token = self._tokens[number]
        before = _bytes(token)[: at - self._starts[number]].decode("utf-8", "replace")
        masses: dict[str, float] = {}
        others = token.get("top_logprobs")
        for option in [token, *(others if isinstance(others, list) else [])]:
            if not isinstance(option, dict):
                continue
            name, value = str(option.get("token", "")), option.get("logprob")
            word = name.removeprefix(before).strip().strip('"').lower()
            if name.startswith(before) and word and isinstance(value, int | float) and value <= 0:
                masses[word] = max(masses.get(word, 0.0), math.exp(max(value, _LEAST)))
        return masses


def _bytes(token: Mapping[str, Any]) -> bytes:
    """What a token adds to the reply; its text may be half a letter, its bytes are exact."""
    given = token.get("bytes")
    try:
        return (
            bytes(given)
            if isinstance(given, list)
            else str(token.get("token", "")).encode("utf-8", "replace")
        )
    except (TypeError, ValueError):
        return b""


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
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise ValueError(f"key {key!r} twice")
        found[key] = value
    return found


_DECODER = PiecewiseDecoder(parse_constant=_no_constant, object_pairs_hook=_distinct)
