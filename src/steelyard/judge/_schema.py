"""The JSON schema of a reply: one required property per question, each with a shared definition.

Strict schemas make a model answer every key, in order, and nothing else. The definitions are shared by
reference, because a schema counts as prompt tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steelyard.judge._judge import Request
from steelyard.judge._questions import (
    Claims,
    Contradicted,
    Entities,
    Pick,
    Question,
    Questions,
    Rating,
    Supported,
)

__all__ = ["points", "schema"]

_BOOLEAN: Mapping[str, Any] = {"type": "boolean"}
_STRING: Mapping[str, Any] = {"type": "string"}
_INTEGER: Mapping[str, Any] = {"type": "integer"}
_TEXTS: Mapping[str, Any] = {"type": "array", "items": _STRING}
_EXTRACTED: Mapping[type[Question], str] = {Claims: "claims", Entities: "entities", Questions: "questions"}


def points(question: Question) -> bool:
    """Whether the answer also names the context that decides."""
    match question:
        case Supported(by="contexts", passage=None) | Contradicted(by="contexts"):
            return True
        case _:
            return False


def schema(request: Request, *, reasons: bool = True) -> dict[str, Any]:
    """The schema that a reply to this request has to fit.

    Args:
        request: The keyed questions.
        reasons: Whether a reason goes before each verdict.
    """
    definitions: dict[str, dict[str, Any]] = {}
    names: dict[str, str] = {}
    properties: dict[str, Any] = {}
    for key, question in request.questions.items():
        shape = _shape(question, reasons=reasons)
        name = names.setdefault(repr(shape), f"a{len(names) + 1}")
        definitions[name] = _closed(shape)
        properties[key] = {"$ref": f"#/$defs/{name}"}
    return {**_closed(properties), "$defs": definitions}


def _closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _shape(question: Question, *, reasons: bool) -> dict[str, Any]:
    """The fields of one answer: the reason goes first, so that the verdict follows from it."""
    if extracted := _EXTRACTED.get(type(question)):
        return {extracted: _TEXTS}
    before: dict[str, Any] = {"reason": _STRING} if reasons else {}
    match question:
        case Rating(levels=levels):
            values = [int(value) if value == int(value) else value for value, _ in levels]
            whole = all(isinstance(value, int) for value in values)
            return {**before, "level": {"type": "integer" if whole else "number", "enum": values}}
        case Pick(options=options):
            return {**before, "option": {"type": "string", "enum": list(options)}}
        case _ if points(question):
            return {**before, "context": _INTEGER, "verdict": _BOOLEAN}
        case _:
            return {**before, "verdict": _BOOLEAN}
