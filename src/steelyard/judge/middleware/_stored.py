"""Requests as keys and answers as JSON, for the cache."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from steelyard.questions import (
    Answer,
    ChosenOption,
    Judge,
    Level,
    Question,
    Request,
    Texts,
    View,
    YesNo,
    check,
)
from steelyard.scores import Evidence

_KEYS = 2
"""Version of the keys; what was stored under another one is not found again."""


def key_of(judge: Judge, request: Request) -> bytes:
    """A hash of everything that decides the answers: judge, wording, what is in view, and the questions."""
    parts = [
        _KEYS,
        judge.name,
        judge.prompt_version,
        _view(request.view),
        [[key, question.kind, _fields(question)] for key, question in request.questions.items()],
        # A second try is asked for because the first came to nothing; it must not be given the first again.
        *([request.attempt] if request.attempt > 1 else []),
        # What one tenant's turn cost is not to be seen from another's.
        *([["tenant", request.tenant]] if request.tenant is not None else []),
    ]
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=20).digest()


def _view(view: View) -> list[Any]:
    passages = [
        None if contexts is None else [context.text for context in contexts]
        for contexts in (view.contexts, view.reference_contexts)
    ]
    return [view.question, view.answer, view.reference, *passages]


def _fields(question: Question) -> list[Any]:
    values = (getattr(question, field.name) for field in fields(question))
    return [sorted(value) if isinstance(value, frozenset) else value for value in values]


def whole(request: Request, answers: Mapping[str, Answer]) -> bool:
    """Whether every question was answered, and well: nothing else is worth keeping."""
    return all(
        isinstance(check(question, answers.get(key)), _STORABLE)
        for key, question in request.questions.items()
    )


_STORABLE = (YesNo, Level, ChosenOption, Texts)


def dump(answers: Mapping[str, Answer]) -> str:
    """Answers as JSON."""
    kept = {key: [type(answer).__name__, _plain(answer)] for key, answer in answers.items()}
    return json.dumps(kept, default=float)  # numbers of other kinds, such as numpy's


def _plain(answer: Answer) -> dict[str, Any]:
    plain = asdict(answer)
    if "probabilities" in plain:
        # JSON has no numbers as keys.
        plain["probabilities"] = list(plain["probabilities"].items())
    return plain


def load(text: str) -> dict[str, Answer]:
    """Answers from their JSON.

    Raises:
        ValueError: If it is not theirs.
    """
    try:
        return {key: _answer(form, plain) for key, (form, plain) in json.loads(text).items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("not the JSON of answers") from error


def _answer(form: str, plain: dict[str, Any]) -> Answer:
    match form:
        case "YesNo":
            return YesNo(**{**plain, "evidence": tuple(Evidence(**piece) for piece in plain["evidence"])})
        case "Level":
            return Level(**{**plain, "probabilities": dict(map(tuple, plain["probabilities"]))})
        case "ChosenOption":
            return ChosenOption(**{**plain, "probabilities": dict(map(tuple, plain["probabilities"]))})
        case "Texts":
            return Texts(items=tuple(plain["items"]))
        case _:
            raise ValueError(f"no answer {form!r}")
