"""Every attribute, event and instrument name that Steelyard writes, and scores as such attributes.

docs/reference/emitted.md says of each who may change it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from steelyard.record import text_of
from steelyard.scores import Evaluation, Score

SCOPE: Final = "steelyard"
"""Instrumentation scope of everything we emit; recorders leave spans of this scope alone."""

EVENT: Final = "gen_ai.evaluation.result"
NAME: Final = "gen_ai.evaluation.name"
VALUE: Final = "gen_ai.evaluation.score.value"
LABEL: Final = "gen_ai.evaluation.score.label"
EXPLANATION: Final = "gen_ai.evaluation.explanation"
ERROR_TYPE: Final = "error.type"
OPERATION: Final = "gen_ai.operation.name"

SPAN_KIND: Final = "openinference.span.kind"
EVALUATIONS: Final = "evaluations"

STATUS: Final = "steelyard.evaluation.status"
CAUSE: Final = "steelyard.evaluation.cause"
PASSED: Final = "steelyard.evaluation.passed"
THRESHOLD: Final = "steelyard.evaluation.threshold"
DIRECTION: Final = "steelyard.evaluation.direction"
OPTIONS: Final = "steelyard.evaluation.options"
RESULT_ID: Final = "steelyard.evaluation.id"
STANDARD_ERROR: Final = "steelyard.evaluation.standard_error"
INCLUSION: Final = "steelyard.evaluation.inclusion_probability"
VERDICTS: Final = "steelyard.evaluation.verdicts"
VERDICTS_MISSING: Final = "steelyard.evaluation.verdicts_missing"
METRIC_VERSION: Final = "steelyard.metric.version"
JUDGE: Final = "steelyard.judge.name"
EMBEDDER: Final = "steelyard.embedder.name"
PROMPT_VERSION: Final = "steelyard.judge.prompt_version"
CALIBRATED: Final = "steelyard.judge.calibrated"
CALIBRATED_VALUE: Final = "steelyard.evaluation.calibrated_value"
CALIBRATION: Final = "steelyard.evaluation.calibration"
INPUT_TOKENS: Final = "steelyard.judge.input_tokens"
"""Not `gen_ai.usage.*`: tools that take those names add them to what the application itself used."""
OUTPUT_TOKENS: Final = "steelyard.judge.output_tokens"
JUDGE_REQUESTS: Final = "steelyard.judge.requests"
JUDGE_SECONDS: Final = "steelyard.judge.seconds"
JUDGE_COST: Final = "steelyard.judge.cost"
RECORD_ID: Final = "steelyard.record.id"
HAPPENED_AT: Final = "steelyard.record.happened_at"
TENANT: Final = "steelyard.tenant"
SUFFERS: Final = "steelyard.diagnosis.cause"
BECAUSE: Final = "steelyard.diagnosis.because"
RULE: Final = "steelyard.diagnosis.rule"
STRENGTH: Final = "steelyard.diagnosis.strength"
BACKING: Final = "steelyard.diagnosis.backing"
SESSION: Final = "session.id"
CONVERSATION: Final = "gen_ai.conversation.id"
USER: Final = "enduser.pseudo.id"

SCORE_HISTOGRAM: Final = "gen_ai.evaluation.score"
DURATION_HISTOGRAM: Final = "gen_ai.evaluation.client.operation.duration"
COST_HISTOGRAM: Final = "gen_ai.evaluation.client.usage.cost"
QUEUE_SIZE: Final = "gen_ai.evaluation.client.queue.size"
DIAGNOSES: Final = "steelyard.diagnosis.turns"
OUTCOMES: Final = "steelyard.evaluation.outcomes"
WEIGHTED_SUM: Final = "steelyard.evaluation.weighted_sum"
NEGATIVE_SUM: Final = "steelyard.evaluation.weighted_sum.negative"
WEIGHT: Final = "steelyard.evaluation.weight"
MOMENTS: Final = "steelyard.evaluation.weight_moments"
PASSED_WEIGHT: Final = "steelyard.evaluation.passed_weight"
TOKENS: Final = "steelyard.judge.tokens"
REQUESTS: Final = "steelyard.judge.request.count"
DECISIONS: Final = "steelyard.turns.decisions"
TURNS: Final = "steelyard.turns.outcomes"
PENDING: Final = "steelyard.turns.pending"
SINK_RESULTS: Final = "steelyard.sink.results"
CACHE_HITS: Final = "steelyard.judge.cache.hits"
BREAKER: Final = "steelyard.judge.breaker.open"
BUDGET_LIMIT: Final = "steelyard.budget.limit"
ALARM_FALLEN: Final = "steelyard.alarm.fallen"

MOMENT: Final = "steelyard.moment"
BUDGET: Final = "steelyard.budget.name"
ALARM: Final = "steelyard.alarm.name"
TOKEN_TYPE: Final = "steelyard.token.type"
DECISION: Final = "steelyard.decision"
OUTCOME: Final = "steelyard.outcome"
SINK: Final = "steelyard.sink.name"


def flat_score(metric: str) -> str:
    """The span attribute that holds one metric's value, for tools that only filter on flat keys."""
    return f"steelyard.{metric}.score"


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
        NAME: score.metric,
        VALUE: score.value,
        LABEL: label,
        EXPLANATION: (score.explanation or None) if explanations else None,
        ERROR_TYPE: (score.cause or "_OTHER") if score.status == "failed" else None,
        STATUS: score.status,
        CAUSE: score.cause,
        PASSED: score.passed,
        THRESHOLD: score.threshold,
        DIRECTION: score.direction,
        OPTIONS: score.options or None,
        RESULT_ID: score.id or None,
        STANDARD_ERROR: score.standard_error,
        INCLUSION: score.inclusion_probability,
        CALIBRATED_VALUE: score.calibrated_value,
        CALIBRATION: score.calibration,
        VERDICTS: len(score.verdicts),
        VERDICTS_MISSING: sum(verdict.value is None for verdict in score.verdicts),
        **made_how(score),
    }
    return _storable(given)


def made_how(score: Score) -> dict[str, Value | None]:
    """How the number was made, as attributes."""
    made = score.provenance
    if made is None:
        return {}
    return {
        JUDGE: made.judge,
        EMBEDDER: made.embedder,
        PROMPT_VERSION: made.prompt_version or None,
        METRIC_VERSION: made.metric_version or None,
        CALIBRATED: made.calibrated,
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
        about = {**made_how(score), CAUSE: score.cause, INCLUSION: score.inclusion_probability}
        parts: dict[str, Value | None] = {
            "name": score.metric,
            "score": score.value,
            "label": label,
            "explanation": (score.explanation or None) if explanations else None,
            "annotator_kind": annotator_kind(score),
            "identifier": score.id or None,
            "metadata": json.dumps({name: item for name, item in about.items() if item is not None}),
        }
        given |= {f"{EVALUATIONS}.{index}.evaluation.{name}": item for name, item in parts.items()}
        given[flat_score(score.metric)] = score.value
    return _storable(given)


def annotator_kind(score: Score) -> str:
    """`CODE` for the embedded judge, which is a formula; `LLM` for models."""
    return "CODE" if score.provenance and score.provenance.judge.startswith("local") else "LLM"


def usage_attributes(evaluation: Evaluation) -> dict[str, Value]:
    """What judging one record cost."""
    usage = evaluation.usage
    return _storable(
        {
            INPUT_TOKENS: usage.prompt_tokens or None,
            OUTPUT_TOKENS: usage.completion_tokens or None,
            JUDGE_REQUESTS: usage.requests,
            JUDGE_SECONDS: usage.seconds,
            JUDGE_COST: usage.cost,
        }
    )


def turn_attributes(evaluation: Evaluation) -> dict[str, Value]:
    """Which turn it was: its record, when it happened, whose conversation it belongs to."""
    return _storable(
        {
            RECORD_ID: evaluation.record_id,
            HAPPENED_AT: evaluation.happened_at,
            SESSION: evaluation.session,
            CONVERSATION: evaluation.session,
            TENANT: evaluation.tenant,
            USER: evaluation.user,
        }
    )


def diagnosis_attributes(evaluation: Evaluation) -> dict[str, Value]:
    """What the turn suffers from, `fine` if nothing; empty of a turn that nobody diagnosed."""
    found = evaluation.diagnosis
    if found is None:
        return {}
    return _storable(
        {
            SUFFERS: found.cause or "fine",
            BECAUSE: found.because or None,
            RULE: found.rule or None,
            STRENGTH: found.strength if found.bad else None,
            BACKING: found.backing,
        }
    )


def _storable(given: dict[str, Value | None]) -> dict[str, Value]:
    return {
        name: text_of(item) if isinstance(item, str) else item
        for name, item in given.items()
        if item is not None
    }
