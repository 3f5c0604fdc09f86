"""Scores as flat attributes: for events, for evaluation spans, and for the scored span itself."""

from __future__ import annotations

import json
from collections.abc import Sequence

import steelyard.sinks._attributes as names
from steelyard.record import text_of
from steelyard.scores import Evaluation, Score

Value = str | bool | int | float
_LATEST = 2**63 / 1e9
"""The end of what OpenTelemetry's nanoseconds can say, in the year 2262."""


def written_time(seconds: float) -> float:
    """Unix time that every format has; 0.0 for any other, such as that of a clock that says infinity."""
    return seconds if 0 <= seconds < _LATEST else 0.0


def event_attributes(score: Score, *, explanations: bool = True) -> dict[str, Value]:
    """The attributes of one `gen_ai.evaluation.result` event.

    A failure has `error.type` and no value; what does not apply has neither, but says so in its label.
    """
    label = score.label or ("not_applicable" if score.status == "not_applicable" else None)
    given: dict[str, Value | None] = {
        names.NAME: score.metric,
        names.VALUE: score.value,
        names.LABEL: label,
        names.EXPLANATION: (score.explanation or None) if explanations else None,
        names.ERROR_TYPE: (score.cause or "_OTHER") if score.status == "failed" else None,
        names.STATUS: score.status,
        names.CAUSE: score.cause,
        names.PASSED: score.passed,
        names.THRESHOLD: score.threshold,
        names.DIRECTION: score.direction,
        names.OPTIONS: score.options or None,
        names.RESULT_ID: score.id or None,
        names.STANDARD_ERROR: score.standard_error,
        names.INCLUSION: score.inclusion_probability,
        names.CALIBRATED_VALUE: score.calibrated_value,
        names.CALIBRATION: score.calibration,
        names.VERDICTS: len(score.verdicts),
        names.VERDICTS_MISSING: sum(verdict.value is None for verdict in score.verdicts),
        **made_how(score),
    }
    return _storable(given)


def made_how(score: Score) -> dict[str, Value | None]:
    """How the number was made, as attributes."""
    made = score.provenance
    if made is None:
        return {}
    return {
        names.JUDGE: made.judge,
        names.EMBEDDER: made.embedder,
        names.PROMPT_VERSION: made.prompt_version or None,
        names.METRIC_VERSION: made.metric_version or None,
        names.CALIBRATED: made.calibrated,
    }


def span_attributes(
    scores: Sequence[Score], *, explanations: bool = True, first: int = 0
) -> dict[str, Value]:
    """Scores as span attributes: OpenInference's `evaluations.<i>.evaluation.*` and flat `steelyard.*` keys.

    Args:
        scores: The Scores; those without a value have no flat key and no `score`.
        explanations: Whether to write the judges' words.
        first: Where to start counting, for a span that has some already.
    """
    given: dict[str, Value | None] = {}
    for index, score in enumerate(scores, first):
        label = score.label or (None if score.status == "scored" else score.status)
        about = {**made_how(score), names.CAUSE: score.cause, names.INCLUSION: score.inclusion_probability}
        parts: dict[str, Value | None] = {
            "name": score.metric,
            "score": score.value,
            "label": label,
            "explanation": (score.explanation or None) if explanations else None,
            "annotator_kind": annotator_kind(score),
            "identifier": score.id or None,
            "metadata": json.dumps({name: item for name, item in about.items() if item is not None}),
        }
        given |= {f"{names.EVALUATIONS}.{index}.evaluation.{name}": item for name, item in parts.items()}
        given[names.flat_score(score.metric)] = score.value
    return _storable(given)


def annotator_kind(score: Score) -> str:
    """`CODE` for the embedded judge, which is a formula; `LLM` for models."""
    return "CODE" if score.provenance and score.provenance.judge.startswith("local") else "LLM"


def usage_attributes(evaluation: Evaluation) -> dict[str, Value]:
    """What judging one record cost."""
    usage = evaluation.usage
    return _storable(
        {
            names.INPUT_TOKENS: usage.prompt_tokens or None,
            names.OUTPUT_TOKENS: usage.completion_tokens or None,
            names.JUDGE_REQUESTS: usage.requests,
            names.JUDGE_SECONDS: usage.seconds,
            names.JUDGE_COST: usage.cost,
        }
    )


def turn_attributes(evaluation: Evaluation) -> dict[str, Value]:
    """Which turn it was: its record, when it happened, whose conversation it belongs to."""
    return _storable(
        {
            names.RECORD_ID: evaluation.record_id,
            names.HAPPENED_AT: evaluation.happened_at,
            names.SESSION: evaluation.session,
            names.CONVERSATION: evaluation.session,
            names.TENANT: evaluation.tenant,
            names.USER: evaluation.user,
        }
    )


def diagnosis_attributes(evaluation: Evaluation) -> dict[str, Value]:
    """What the turn suffers from, `fine` if nothing; empty of a turn that nobody diagnosed."""
    found = evaluation.diagnosis
    if found is None:
        return {}
    return _storable(
        {
            names.SUFFERS: found.cause or "fine",
            names.BECAUSE: found.because or None,
            names.RULE: found.rule or None,
            names.STRENGTH: found.strength if found.bad else None,
            names.BACKING: found.backing,
        }
    )


def _storable(given: dict[str, Value | None]) -> dict[str, Value]:
    return {
        name: text_of(item) if isinstance(item, str) else item
        for name, item in given.items()
        if item is not None
    }
