"""OpenTelemetry metrics: what each Evaluation adds to histograms and counters.

No label ever holds a trace id or free text: labels are metric names, judge names, states and causes.
"""

from __future__ import annotations

from opentelemetry.context import Context
from opentelemetry.metrics import Meter

import steelyard.sinks._attributes as names
from steelyard.scores import Evaluation, Score

_SCORES = [0.0, *[tenth / 10 for tenth in range(1, 11)]]
"""A bucket for exactly 0, ten between 0 and 1."""
_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0]
"""The local judge takes some 10 ms, models take seconds; above a minute something is wrong."""
_DOLLARS = [0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0]
"""From a small model's single question to a large model's long record, in steps of about 3."""


class Instruments:
    """The instruments of one meter."""

    def __init__(self, meter: Meter) -> None:
        self._score = meter.create_histogram(
            names.SCORE_HISTOGRAM, "1", "Scores by metric.", explicit_bucket_boundaries_advisory=_SCORES
        )
        self._duration = meter.create_histogram(
            names.DURATION_HISTOGRAM,
            "s",
            "Time from the first question about a record to its last score.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._cost = meter.create_histogram(
            names.COST_HISTOGRAM,
            "{USD}",
            "What judging one record cost, where prices are known.",
            explicit_bucket_boundaries_advisory=_DOLLARS,
        )
        self._outcomes = meter.create_counter(
            names.OUTCOMES, "{score}", "Scores by metric, status and cause."
        )
        self._diagnoses = meter.create_counter(
            names.DIAGNOSES, "{turn}", "Diagnosed turns by cause; `fine` if nothing is wrong."
        )
        self._sum = meter.create_counter(
            names.WEIGHTED_SUM,
            "1",
            "Sum of value / inclusion probability; divided by the weight: unbiased mean.",
        )
        self._negative = meter.create_counter(
            names.NEGATIVE_SUM,
            "1",
            "The part of the weighted sum that comes from negative values, as magnitude.",
        )
        self._weight = meter.create_counter(names.WEIGHT, "1", "Sum of 1 / inclusion probability.")
        self._moments = meter.create_counter(
            names.MOMENTS,
            "1",
            "Sum of weight^2 * value^k, k = 0, 1, 2: the variance of the unbiased mean. Of values from 0 on.",
        )
        self._passed = meter.create_counter(
            names.PASSED_WEIGHT, "1", "Sum of 1 / inclusion probability, by whether the threshold is met."
        )
        self._tokens = meter.create_counter(names.TOKENS, "{token}", "Tokens used for judging, by type.")
        self._requests = meter.create_counter(names.REQUESTS, "{request}", "Requests sent to judges.")

    def record(self, evaluation: Evaluation, context: Context) -> None:
        """Add one Evaluation; in the scored span's context, so that exemplars lead to it."""
        for score in evaluation.scores:
            self._record_score(score, context)
        if evaluation.diagnosis is not None:
            cause = evaluation.diagnosis.cause or "fine"
            self._diagnoses.add(1, {names.SUFFERS: cause}, context=context)
        usage = evaluation.usage
        self._duration.record(evaluation.duration, context=context)
        if usage.cost is not None:
            self._cost.record(usage.cost, context=context)
        self._requests.add(usage.requests, context=context)
        # Cached tokens are a part of the input; apart from it, the types can be added up.
        for kind, count in (
            ("input", usage.prompt_tokens - usage.cached_tokens),
            ("cached_input", usage.cached_tokens),
            ("output", usage.completion_tokens),
        ):
            if count > 0:
                self._tokens.add(count, {names.TOKEN_TYPE: kind}, context=context)

    def _record_score(self, score: Score, context: Context) -> None:
        labels = {names.NAME: score.metric, names.JUDGE: score.provenance.judge if score.provenance else ""}
        outcome = {**labels, names.STATUS: score.status, names.CAUSE: score.cause or ""}
        self._outcomes.add(1, outcome, context=context)
        if score.value is None:
            return
        result = {**labels, names.LABEL: score.label} if score.label else labels
        self._score.record(score.value, result, context=context)
        weight = 1 / score.inclusion_probability
        self._weight.add(weight, labels, context=context)
        if score.passed is not None:
            self._passed.add(weight, {**labels, names.PASSED: score.passed}, context=context)
        if score.value >= 0:
            self._sum.add(score.value * weight, labels, context=context)
            for power in range(3):
                moment = weight * weight * score.value**power
                self._moments.add(moment, {**labels, names.MOMENT: str(power)}, context=context)
        else:
            self._negative.add(-score.value * weight, labels, context=context)
