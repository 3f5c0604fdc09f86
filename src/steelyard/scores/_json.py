"""The JSON form of an Evaluation, with a schema version: strict about shape, lenient about extras."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, get_args

from steelyard._internal.typed import adapter, json_pieces, loads, read, with_changes, with_items
from steelyard.errors import InvalidRecord
from steelyard.record import (
    Record,
    TraceRef,
    check_schema,
    clean,
    number,
    probability,
    record_from_dict,
    record_to_dict,
    text_of,
    to_json_value,
    whole,
)
from steelyard.scores._scores import (
    CAUSES,
    Diagnosis,
    Direction,
    Evaluation,
    Evidence,
    Outcome,
    Provenance,
    Score,
    Usage,
    Verdict,
)


def clean_score(score: Score) -> Score:
    """A Score of plain values: one that is `scored` without a finite value has failed."""
    value = number(score.value)
    status: Outcome = _word(score.status, Outcome, "failed")
    if status == "scored" and value is None:
        status = "failed"
    lost = status is not score.status
    return with_changes(
        score,
        metric=text_of(score.metric),
        status=status,
        value=value if status == "scored" else None,
        hard_value=number(score.hard_value) if status == "scored" else None,
        explanation=text_of(score.explanation),
        cause="metric_error" if lost else _optional(score.cause),
        options=text_of(score.options),
        verdicts=with_items(
            score.verdicts, [clean_verdict(one) for one in _items(score.verdicts) if isinstance(one, Verdict)]
        ),
        standard_error=number(score.standard_error),
        label=_optional(score.label),
        passed=None if score.passed is None else _flag(score.passed),
        threshold=number(score.threshold),
        direction=_word(score.direction, Direction, "higher"),
        # A probability of 0 cannot be weighed by: such a turn could not have been picked.
        inclusion_probability=probability(score.inclusion_probability) or 1.0,
        calibrated_value=probability(score.calibrated_value),
        calibration=_optional(score.calibration),
        provenance=score.provenance if isinstance(score.provenance, Provenance) else None,
        also_seen=_seen(score.also_seen),
        left_out=int(number(score.left_out) or 0),
        id=text_of(score.id),
    )


def clean_verdict(verdict: Verdict) -> Verdict:
    """A Verdict of plain values."""
    return with_changes(
        verdict,
        about=text_of(verdict.about),
        kind=text_of(verdict.kind),
        value=_answer(verdict.value),
        probability=number(verdict.probability),
        reason=text_of(verdict.reason),
        evidence=with_items(
            verdict.evidence,
            [clean_evidence(one) for one in _items(verdict.evidence) if isinstance(one, Evidence)],
        ),
        span=_span(verdict.span),
        cause=_optional(verdict.cause),
    )


def clean_evidence(evidence: Evidence) -> Evidence:
    """Evidence of plain values."""
    return with_changes(
        evidence,
        context=whole(evidence.context),
        start=whole(evidence.start),
        end=whole(evidence.end),
        text=text_of(evidence.text),
        located=_flag(evidence.located) is True,
        notes=_notes(evidence.notes),
    )


def clean_usage(usage: Usage) -> Usage:
    """A Usage that can be added up: whole numbers from 0, at most 64 bits, and finite seconds and dollars."""
    counts: dict[str, Any] = {
        field.name: whole(getattr(usage, field.name)) or 0 for field in fields(Usage) if field.type == "int"
    }
    cost, seconds = number(usage.cost), number(usage.seconds)
    return Usage(**counts, cost=None if cost is None else max(0.0, cost), seconds=max(0.0, seconds or 0.0))


def _answer(value: object) -> bool | float | str | None:
    if value is None or isinstance(value, str | bool):
        return text_of(value) if isinstance(value, str) else value
    # numpy's bool has no class in common with Python's.
    if type(value).__name__ in ("bool", "bool_"):
        return _flag(value)
    return number(value)


def _word(value: object, among: Any, otherwise: Any) -> Any:
    return value if isinstance(value, str) and value in get_args(among) else otherwise


def _flag(value: object) -> bool | None:
    try:
        return bool(value)
    except Exception:  # noqa: BLE001 - the value may be anything
        return None


def _optional(value: object) -> str | None:
    return None if value is None else text_of(value)


def _seen(value: Any) -> Mapping[str, tuple[str, ...]]:
    if type(value) is dict and not value:
        return value
    return {kind: tuple(map(text_of, _items(parts))) for kind, parts in _notes(value).items()}


def _items(value: object) -> Iterable[object]:
    return value if isinstance(value, tuple | list) else ()


def _span(value: object) -> tuple[int, int] | None:
    if not isinstance(value, tuple | list) or len(value) != 2:
        return None
    start, end = whole(value[0]), whole(value[1])
    if type(value) is tuple and start is value[0] and end is value[1] and start < end:
        return value
    return None if start is None or end is None or start >= end else (start, end)


def _notes(value: object) -> dict[str, Any]:
    if type(value) is dict and not value:
        return value
    plain = to_json_value(value) if isinstance(value, Mapping) and len(value) else {}
    return plain if isinstance(plain, dict) else {}


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
