"""Every attribute, event and instrument name that Steelyard writes, with its stability, in one place.

`development` names come from OpenTelemetry's GenAI conventions, which may still change; `openinference`
names from OpenInference; `common` names are written by other evaluators too, without a convention;
`steelyard` names are our own and change only with a note in the changelog.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

Stability = Literal["stable", "development", "openinference", "common", "steelyard"]

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

STABILITY: Final[Mapping[str, Stability]] = {
    ERROR_TYPE: "stable",
    **dict.fromkeys((EVENT, NAME, VALUE, LABEL, EXPLANATION, OPERATION), "development"),
    **dict.fromkeys((SESSION, CONVERSATION, USER), "development"),
    **dict.fromkeys((SPAN_KIND, EVALUATIONS), "openinference"),
    **dict.fromkeys((SCORE_HISTOGRAM, DURATION_HISTOGRAM, COST_HISTOGRAM, QUEUE_SIZE), "common"),
    **dict.fromkeys(
        (
            *(STATUS, CAUSE, PASSED, THRESHOLD, DIRECTION, OPTIONS, RESULT_ID, STANDARD_ERROR, INCLUSION),
            *(VERDICTS, VERDICTS_MISSING, METRIC_VERSION, JUDGE, EMBEDDER, PROMPT_VERSION, CALIBRATED),
            *(CALIBRATED_VALUE, CALIBRATION),
            *(INPUT_TOKENS, OUTPUT_TOKENS, JUDGE_REQUESTS, JUDGE_SECONDS, JUDGE_COST, RECORD_ID),
            *(HAPPENED_AT, TENANT),
            *(SUFFERS, BECAUSE, RULE, STRENGTH, BACKING, DIAGNOSES),
            *(OUTCOMES, WEIGHTED_SUM, NEGATIVE_SUM, WEIGHT, TOKENS, REQUESTS, DECISIONS, TURNS, PENDING),
            *(SINK_RESULTS, CACHE_HITS, BREAKER, TOKEN_TYPE, DECISION, OUTCOME, SINK),
            *(MOMENTS, PASSED_WEIGHT, BUDGET_LIMIT, ALARM_FALLEN, MOMENT, BUDGET, ALARM),
        ),
        "steelyard",
    ),
}
"""Every name and who may change it."""


def flat_score(metric: str) -> str:
    """The span attribute that holds one metric's value, for tools that only filter on flat keys."""
    return f"steelyard.{metric}.score"
