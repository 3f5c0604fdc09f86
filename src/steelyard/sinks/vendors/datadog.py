"""Scores as external evaluations in Datadog's LLM (Agent) Observability."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from steelyard.scores import Evaluation, Score
from steelyard.sinks.vendors._http import HTTPSink, details, given_or_env

__all__ = ["DatadogSink"]

_PATH = "/api/intake/llm-obs/v2/eval-metric"


class DatadogSink(HTTPSink):
    """Posts evaluation metrics, joined to spans that reached Datadog over OpenTelemetry.

    The tag `source:otel` makes Datadog wait until it has converted the span. The time of the evaluation is
    sent with each metric, so that writing again is the same point again. Scores without a value are left out.
    """

    def __init__(
        self,
        ml_app: str | None = None,
        *,
        api_key: str | None = None,
        site: str | None = None,
        url: str | None = None,
        explanations: bool = True,
        timeout: float = 5.0,
    ) -> None:
        """Nothing is sent yet.

        Args:
            ml_app: The application's name in Datadog; else `DD_LLMOBS_ML_APP`.
            api_key: Else `DD_API_KEY`.
            site: Datadog's site; else `DD_SITE`, else `datadoghq.com`.
            url: The API itself, where it is not `https://api.<site>`.
            explanations: Whether to send the judges' words.
            timeout: Seconds for one request.

        Raises:
            ConfigurationError: If the name or the key is missing, or the URL is none.
        """
        self._ml_app = given_or_env(ml_app, "DD_LLMOBS_ML_APP", what="Datadog ml_app")
        key = given_or_env(api_key, "DD_API_KEY", what="Datadog API key")
        where = given_or_env(site, "DD_SITE", what="site", default="datadoghq.com")
        super().__init__(
            "datadog",
            url or f"https://api.{where}",
            headers={"DD-API-KEY": key},
            timeout=timeout,
            explanations=explanations,
        )

    def _send(self, evaluations: Sequence[Evaluation]) -> None:
        found = [metric for evaluation in evaluations for metric in self._metrics(evaluation)]
        if found:
            body = {"data": {"type": "evaluation_metric", "attributes": {"metrics": found}}}
            self._request("POST", _PATH, body)

    def _metrics(self, evaluation: Evaluation) -> Iterator[dict[str, Any]]:
        trace = evaluation.trace
        if trace is None or not trace.trace_id or not trace.span_id:
            self._left_out["no_trace"] += len(evaluation.scores)
            return
        # Trace ids stay hexadecimal, span ids are decimal: Datadog's own convention for 128-bit traces.
        span = {"trace_id": trace.trace_id, "span_id": str(int(trace.span_id, 16))}
        for score in evaluation.scores:
            if score.value is None:
                self._left_out["no_value"] += 1
                continue
            given = {
                "event_kind": "evaluation",
                "eval_scope": "span",
                "join_on": {"span": span},
                "ml_app": self._ml_app,
                "timestamp_ms": round(evaluation.evaluated_at * 1000),
                "label": _label(score.metric),
                "metric_type": "score",
                "score_value": score.value,
                "assessment": _assessment(score),
                "reasoning": self._comment(score),
                "metadata": details(score, evaluation),
                "tags": ["source:otel", f"ml_app:{self._ml_app}"],
            }
            yield {name: item for name, item in given.items() if item is not None}


def _label(metric: str) -> str:
    """Labels have ASCII letters, digits and underscores, and begin with a letter."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", metric)[:100]
    return plain if plain[:1].isalpha() else f"m_{plain}"


def _assessment(score: Score) -> str | None:
    return None if score.passed is None else ("pass" if score.passed else "fail")
