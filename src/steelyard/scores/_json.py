"""The JSON form of an Evaluation, with a schema version: strict about shape, lenient about extras."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from steelyard._internal.json_pieces import json_pieces
from steelyard._internal.typed import adapter, loads, read
from steelyard.errors import InvalidRecord
from steelyard.record import (
    Record,
    TraceRef,
    check_schema,
    clean,
    record_from_dict,
    record_to_dict,
    text_of,
)
from steelyard.scores._clean import clean_score, clean_usage, number
from steelyard.scores._diagnosis import CAUSES, Diagnosis
from steelyard.scores._scores import Evaluation, Score, Usage

EVALUATION_SCHEMA = 2
"""Version of the JSON form; a reader refuses a newer one. Version 1 called `options` of a Score `reading`."""

_OWN = ("record_id", "session", "user", "tenant", "happened_at", "evidence", "evaluated_at", "duration")


def score_to_dict(score: Score) -> dict[str, Any]:
    """A Score as plain JSON values, cleaned first: fields that say nothing are left out, not its value."""
    score = clean_score(score)
    data = _dumped(score)
    verdicts = data.get("verdicts", ())
    return {
        **data,
        # Also where they are defaults: readers in other languages look for these.
        "value": score.value,
        "direction": score.direction,
        "inclusion_probability": score.inclusion_probability,
        "verdicts": [
            {**written, "value": verdict.value}
            for written, verdict in zip(verdicts, score.verdicts, strict=True)
        ],
    }


def _dumped(value: Any) -> dict[str, Any]:
    """The fields of a clean value that are not at their defaults."""
    data: dict[str, Any] = adapter(type(value)).dump_python(  # type: ignore[arg-type]  # a class is hashable
        value, mode="json", exclude_defaults=True
    )
    return data


def evaluation_to_dict(evaluation: Evaluation) -> dict[str, Any]:
    """An Evaluation as plain JSON values."""
    data: dict[str, Any] = {
        "schema": EVALUATION_SCHEMA,
        "record_id": text_of(evaluation.record_id),
        "scores": [score_to_dict(score) for score in evaluation.scores],
        **({"screen": [score_to_dict(score) for score in evaluation.screen]} if evaluation.screen else {}),
        "usage": _dumped(clean_usage(evaluation.usage)),
        "evaluated_at": number(evaluation.evaluated_at) or 0.0,
        "duration": number(evaluation.duration) or 0.0,
    }
    data |= _of_turn(evaluation)
    if evaluation.diagnosis:
        data["diagnosis"] = _dumped(evaluation.diagnosis)
    if evaluation.trace:
        data["trace"] = _dumped(evaluation.trace)
    if evaluation.record:
        data["record"] = record_to_dict(evaluation.record)
    return data


def _of_turn(evaluation: Evaluation) -> dict[str, Any]:
    """What is known of the turn whether its content is stored or not."""
    ids = clean(Record(session=evaluation.session, user=evaluation.user, tenant=evaluation.tenant))
    found = {
        "session": ids.session,
        "user": ids.user,
        "tenant": ids.tenant,
        "happened_at": number(evaluation.happened_at),
        "evidence": evaluation.evidence,
    }
    return {name: value for name, value in found.items() if value is not None}


def evaluation_to_json(evaluation: Evaluation) -> str:
    """An Evaluation as one line of JSON."""
    return "".join(json_pieces(evaluation_to_dict(evaluation)))


def evaluation_from_json(line: str | bytes) -> Evaluation:
    """Read one line of JSON.

    Raises:
        InvalidRecord: If it is not JSON or not an Evaluation.
    """
    return evaluation_from_dict(loads(line))


def evaluation_from_dict(data: object) -> Evaluation:
    """Read the JSON form; fields that it does not know are passed over.

    Raises:
        InvalidRecord: If a field has the wrong shape, or the schema is newer than this reader.
    """
    if not isinstance(data, Mapping):
        raise InvalidRecord(f"an evaluation is a JSON object, not {type(data).__name__}")
    check_schema(data, EVALUATION_SCHEMA)
    scores = data.get("scores")
    own = {name: data[name] for name in _OWN if data.get(name) is not None}
    evaluation = read(Evaluation, {**own, "scores": ()}, what="evaluation")
    return replace(
        evaluation,
        scores=_scores(scores, "scores"),
        screen=_scores(data.get("screen") or (), "screen"),
        usage=read(Usage, data.get("usage") or {}, where="usage"),
        record=record_from_dict(data["record"]) if data.get("record") else None,
        diagnosis=_diagnosis(data.get("diagnosis")),
        trace=read(TraceRef, data["trace"], where="trace") if data.get("trace") else None,
    )


def _diagnosis(data: object) -> Diagnosis | None:
    """What a newer version named a cause of its own is unknown to this one."""
    if not isinstance(data, Mapping):
        return None
    if data.get("cause") is not None and data["cause"] not in CAUSES:
        data = {**data, "cause": "unknown"}
    return read(Diagnosis, data, where="diagnosis")


def score_from_dict(data: Mapping[str, Any]) -> Score:
    """Read the JSON form of a Score, of this schema version or of an older one.

    Raises:
        InvalidRecord: If a field has the wrong shape.
    """
    return _score(data, "")


def _scores(given: object, name: str) -> tuple[Score, ...]:
    if not isinstance(given, list | tuple):
        raise InvalidRecord(f"{name!r} must be a list")
    return tuple(_score(score, f"{name}.{place}") for place, score in enumerate(given))


def _score(data: object, where: str) -> Score:
    # The name that `options` had in earlier versions.
    if isinstance(data, Mapping) and "reading" in data:
        data = {"options": data["reading"], **data}
    return read(Score, data, where=where, what="score")
