"""The JSON form of an Evaluation, with a schema version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from steelyard.errors import InvalidRecord
from steelyard.record import (
    TraceRef,
    check_schema,
    record_from_dict,
    record_to_dict,
    text_of,
    to_json_value,
    without_defaults,
)
from steelyard.scores._scores import Evaluation, Evidence, Provenance, Score, Usage, Verdict

EVALUATION_SCHEMA = 2
"""Version of the JSON form; a reader refuses a newer one. Version 1 called `options` of a Score `reading`."""

_Part = TypeVar("_Part")


def score_to_dict(score: Score) -> dict[str, Any]:
    """A Score as plain JSON values: fields that say nothing are left out, a missing value is null."""
    data = {
        **without_defaults(score),
        "value": score.value,
        "direction": score.direction,
        "inclusion_probability": score.inclusion_probability,
        "verdicts": [_verdict(verdict) for verdict in score.verdicts],
    }
    return {**data, "provenance": without_defaults(score.provenance)} if score.provenance else data


def _verdict(verdict: Verdict) -> dict[str, Any]:
    data = {**without_defaults(verdict), "value": verdict.value}
    if verdict.evidence:
        data["evidence"] = [
            {**without_defaults(piece), "notes": to_json_value(dict(piece.notes))}
            for piece in verdict.evidence
        ]
    return data


def evaluation_to_dict(evaluation: Evaluation) -> dict[str, Any]:
    """An Evaluation as plain JSON values."""
    data: dict[str, Any] = {
        "schema": EVALUATION_SCHEMA,
        "record_id": evaluation.record_id,
        "scores": [score_to_dict(score) for score in evaluation.scores],
        "usage": without_defaults(evaluation.usage),
        "evaluated_at": evaluation.evaluated_at,
        "duration": evaluation.duration,
    }
    if evaluation.trace:
        data["trace"] = without_defaults(evaluation.trace)
    if evaluation.record:
        data["record"] = record_to_dict(evaluation.record)
    return data


def evaluation_to_json(evaluation: Evaluation) -> str:
    """An Evaluation as one line of JSON, without the lone surrogates that a judge may have sent."""
    return text_of(json.dumps(evaluation_to_dict(evaluation), ensure_ascii=False, separators=(",", ":")))


def evaluation_from_json(line: str | bytes) -> Evaluation:
    """Read one line of JSON.

    Raises:
        InvalidRecord: If it is not JSON or not an Evaluation.
    """
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidRecord(f"not JSON: {error}") from None
    return evaluation_from_dict(data)


def evaluation_from_dict(data: object) -> Evaluation:
    """Read the JSON form.

    Raises:
        InvalidRecord: If a field has the wrong shape, or the schema is newer than this reader.
    """
    if not isinstance(data, Mapping):
        raise InvalidRecord(f"an evaluation is a JSON object, not {type(data).__name__}")
    check_schema(data, EVALUATION_SCHEMA)
    try:
        return Evaluation(
            record_id=data["record_id"],
            scores=tuple(score_from_dict(score) for score in data["scores"]),
            usage=_part(Usage, data.get("usage", {})),
            record=record_from_dict(data["record"]) if data.get("record") else None,
            trace=_part(TraceRef, data["trace"]) if data.get("trace") else None,
            evaluated_at=data.get("evaluated_at", 0.0),
            duration=data.get("duration", 0.0),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidRecord(f"not an evaluation: {error!r}") from None


def score_from_dict(data: Mapping[str, Any]) -> Score:
    """Read the JSON form of a Score, of this schema version or of an older one."""
    if "reading" in data:
        data = {"options": data["reading"], **data}
    made = data.get("provenance")
    verdicts = tuple(_read_verdict(verdict) for verdict in data.get("verdicts", ()))
    return _part(
        Score, {**data, "verdicts": verdicts, "provenance": _part(Provenance, made) if made else None}
    )


def _read_verdict(data: Mapping[str, Any]) -> Verdict:
    return _part(
        Verdict, {**data, "evidence": tuple(_part(Evidence, piece) for piece in data.get("evidence", ()))}
    )


def _part(kind: type[_Part], data: Mapping[str, Any]) -> _Part:
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: item for name, item in data.items() if name in names})
