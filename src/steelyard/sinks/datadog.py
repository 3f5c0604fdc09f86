"""Scores as external evaluations in Datadog's LLM (Agent) Observability."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, get_args

from steelyard.errors import ConfigurationError
from steelyard.record import TraceRef
from steelyard.scores import Evaluation, Score
from steelyard.sinks._attributes import written_time
from steelyard.sinks._http import HTTPSink, Item, details, given_or_env, split

Tracer = Literal["otel", "ddtrace"]

_PATH = "/api/intake/llm-obs/v2/eval-metric"


class DatadogSink(HTTPSink):
    """Posts evaluation metrics, joined to spans that reached Datadog over OpenTelemetry or from ddtrace.

    The time of the evaluation is sent with each metric, so that writing again is the same point again. Scores
    without a value are left out.
    """

    _looked_at = "/api/v1/validate"
    _wanted = ("trace_id", "span_id")
    _most = 100

    def __init__(
        self,
        ml_app: str | None = None,
        *,
        api_key: str | None = None,
        site: str | None = None,
        url: str | None = None,
        tracer: Tracer = "otel",
        explanations: bool = True,
        timeout: float = 5.0,
    ) -> None:
        """Nothing is sent yet.

        Args:
            ml_app: The application's name in Datadog; else `DD_LLMOBS_ML_APP`.
            api_key: Else `DD_API_KEY`.
            site: Datadog's site; else `DD_SITE`, else `datadoghq.com`.
            url: The API itself, if it is not `https://api.<site>`.
            tracer: Who made the spans. `otel` tags the metrics so that Datadog waits until it has converted
                the span; spans of `ddtrace` need no conversion.
            explanations: Whether to send the judges' words.
            timeout: Seconds for one request.

        Raises:
            ConfigurationError: If the name or the key is missing, or the URL or the tracer is not one.
        """
        if tracer not in get_args(Tracer):
            raise ConfigurationError(f"tracer must be 'otel' or 'ddtrace', not {tracer!r}")
        self._tags = ["source:otel"] if tracer == "otel" else []
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

    async def _send(self, items: Sequence[Item]) -> None:
        self._settle(await split(items, self._post), "refused", "rejected")

    async def _post(self, items: Sequence[Item]) -> None:
        metrics = [item.body for item in items]
        body = {"data": {"type": "evaluation_metric", "attributes": {"metrics": metrics}}}
        await self._request("POST", _PATH, body)

    def _body(self, score: Score, evaluation: Evaluation, trace: TraceRef) -> dict[str, Any]:
        return {
            "event_kind": "evaluation",
            "eval_scope": "span",
            "join_on": {"span": {"trace_id": _id(trace.trace_id), "span_id": _id(trace.span_id)}},
            "ml_app": self._ml_app,
            "timestamp_ms": round(written_time(evaluation.evaluated_at) * 1000),
            "label": _label(score.metric),
            "metric_type": "score",
            "score_value": score.value,
            "assessment": None if score.passed is None else "pass" if score.passed else "fail",
            "reasoning": self._comment(score),
            "metadata": details(score, evaluation),
            "tags": [*self._tags, f"ml_app:{self._ml_app}"],
        }


def _id(hexadecimal: str | None) -> str:
    """Ids of at most 64 bits are decimal, longer ones hexadecimal: so Datadog's own client writes them."""
    number = int(hexadecimal or "", 16)
    return str(number) if number < 1 << 64 else f"{number:032x}"


def _label(metric: str) -> str:
    """Labels have ASCII letters, digits and underscores, and begin with a letter."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", metric)[:100]
    return plain if plain[:1].isalpha() else f"m_{plain}"
