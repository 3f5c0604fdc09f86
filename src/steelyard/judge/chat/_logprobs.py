"""From the log probabilities of a reply's tokens to the probabilities of its answers.

The token that holds a verdict was drawn among alternatives; the mass on those that begin the other verdict is
the judge's own doubt. It is not calibrated. Where most of the mass is on something else altogether (a server
that reports what the model wanted to say before the schema stopped it), there is no probability. Only the
token that begins the value counts, so verdicts and levels whose texts begin alike (1 and 10) get no
probabilities.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Any

from steelyard.judge.chat._parse import ParsedReply
from steelyard.questions import Answer, Level, Rating, Request, YesNo

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
