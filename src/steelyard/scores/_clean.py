"""Repairing Scores of somebody's own making: whatever came in, what goes on can be stored and sent.

Numbers become Python's own and finite, texts valid Unicode; what cannot be either is left out. Nothing here
raises, so that one odd value never takes others along.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, get_args

from steelyard._internal.typed import with_changes, with_items
from steelyard.record import text_of, to_json_value
from steelyard.scores._scores import Direction, Evidence, Outcome, Provenance, Score, Usage, Verdict

_LARGEST = 2**63 - 1
"""The largest whole number that a database or a protocol buffer holds."""


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
        inclusion_probability=_probability(score.inclusion_probability) or 1.0,
        calibrated_value=_probability(score.calibrated_value),
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
        context=_whole(evidence.context),
        start=_whole(evidence.start),
        end=_whole(evidence.end),
        text=text_of(evidence.text),
        located=_flag(evidence.located) is True,
        notes=_notes(evidence.notes),
    )


def clean_usage(usage: Usage) -> Usage:
    """A Usage that can be added up: whole numbers from 0, at most 64 bits, and finite seconds and dollars."""
    counts: dict[str, Any] = {
        field.name: _whole(getattr(usage, field.name)) or 0 for field in fields(Usage) if field.type == "int"
    }
    cost, seconds = number(usage.cost), number(usage.seconds)
    return Usage(
        **counts,
        cost=None if cost is None else max(0.0, cost),
        seconds=max(0.0, seconds or 0.0),
    )


def number(value: object) -> float | None:
    """A plain finite float; None for what is not a number, or is not finite."""
    if type(value) is float:
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | bytes):
        return None
    try:
        found = float(value)  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001 - the value may be anything
        return None
    return found if math.isfinite(found) else None


def _probability(value: object) -> float | None:
    found = number(value)
    return found if found is not None and 0 <= found <= 1 else None


def _whole(value: object) -> int | None:
    """A whole number from 0 to 64 bits; None for anything else."""
    if type(value) is int:
        return min(value, _LARGEST) if value >= 0 else None
    try:
        found = operator.index(value)  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001 - the value may be anything
        rounded = number(value)
        found = -1 if rounded is None else int(rounded)
    return min(int(found), _LARGEST) if found >= 0 else None


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
    start, end = _whole(value[0]), _whole(value[1])
    if type(value) is tuple and start is value[0] and end is value[1] and start < end:
        return value
    return None if start is None or end is None or start >= end else (start, end)


def _notes(value: object) -> dict[str, Any]:
    if type(value) is dict and not value:
        return value
    plain = to_json_value(value) if isinstance(value, Mapping) and len(value) else {}
    return plain if isinstance(plain, dict) else {}
