"""The JSON schema of a reply: one required property per question, each with a shared definition.

Strict schemas make a model answer every key, in order, and nothing else. What several questions share is
defined once and referred to, because a schema counts as prompt tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from steelyard.questions import (
    Choose,
    Claims,
    Contradicted,
    Entities,
    GeneratedQuestions,
    Question,
    Rating,
    Request,
    Supported,
)

_BOOLEAN: Mapping[str, Any] = {"type": "boolean"}
_STRING: Mapping[str, Any] = {"type": "string"}
_INTEGER: Mapping[str, Any] = {"type": "integer"}
_TEXTS: Mapping[str, Any] = {"type": "array", "items": _STRING}
_EXTRACTED: Mapping[type[Question], str] = {
    Claims: "claims",
    Entities: "entities",
    GeneratedQuestions: "questions",
}


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
    shapes = {key: _closed(_shape(question, reasons=reasons)) for key, question in request.questions.items()}
    counts = Counter(map(repr, shapes.values()))
    names = {text: f"a{at}" for at, text in enumerate((t for t, n in counts.items() if n > 1), start=1)}
    definitions = {names[repr(shape)]: shape for shape in shapes.values() if repr(shape) in names}
    properties = {
        key: {"$ref": f"#/$defs/{names[repr(shape)]}"} if repr(shape) in names else shape
        for key, shape in shapes.items()
    }
    return {**_closed(properties), **({"$defs": definitions} if definitions else {})}


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
        case Choose(options=options):
            return {**before, "option": {"type": "string", "enum": list(options)}}
        case _ if points(question):
            return {**before, "context": _INTEGER, "verdict": _BOOLEAN}
        case _:
            return {**before, "verdict": _BOOLEAN}
