"""Scores as feedback on LangSmith runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid5

from steelyard.errors import SinkError
from steelyard.record import TraceRef
from steelyard.scores import Evaluation, Score
from steelyard.sinks._attributes import annotator_kind
from steelyard.sinks._http import HTTPSink, Item, details, given_or_env, timestamp

# The API takes one feedback a request, so that many have to be under way at once.
_CONNECTIONS = 24
_NAMESPACE = UUID("6e3c7c2a-5b0c-4b8e-9a53-4b1f7d2c9e10")


class LangSmithSink(HTTPSink):
    """Posts feedback for runs that LangSmith traced too; they share LangChain's run id with our records.

    The feedback id comes from the result id, and feedback that is there already is updated. Failures are sent
    with their explanation and without a score; what does not apply is left out, as is what has no run id.
    """

    _looked_at = "/sessions?limit=1"

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        project_id: str | None = None,
        extend_trace_retention: bool = False,
        patience: float = 6.0,
        explanations: bool = True,
        timeout: float = 5.0,
    ) -> None:
        """Nothing is sent yet.

        Args:
            url: The API; else `LANGSMITH_ENDPOINT`, else LangSmith's cloud.
            api_key: Else `LANGSMITH_API_KEY`.
            project_id: The project's UUID (LangSmith's `session_id`), which newer servers ask for.
            extend_trace_retention: Whether LangSmith keeps traces with feedback for longer, which it charges
                for. Its own client does so unless you say otherwise; this sink does so only if you ask.
            patience: Seconds to wait for a run that has not arrived yet.
            explanations: Whether to send the judges' words.
            timeout: Seconds for one request.

        Raises:
            ConfigurationError: If there is no key, or the URL is not one.
        """
        key = given_or_env(api_key, "LANGSMITH_API_KEY", what="LangSmith API key")
        default = "https://api.smith.langchain.com"
        super().__init__(
            "langsmith",
            given_or_env(url, "LANGSMITH_ENDPOINT", what="URL", default=default),
            headers={"x-api-key": key},
            timeout=timeout,
            explanations=explanations,
            connections=_CONNECTIONS,
            patience=patience,
        )
        self._project_id = project_id
        self._extend_trace_retention = extend_trace_retention

    async def _send(self, items: Sequence[Item]) -> None:
        (feedback,) = (item.body for item in items)
        try:
            await self._request("POST", "/feedback", feedback)
        except SinkError as error:
            if error.cause != "conflict":
                raise
            changes = {name: feedback[name] for name in ("score", "value", "comment") if name in feedback}
            await self._request("PATCH", f"/feedback/{feedback['id']}", changes)

    def _left_out(self, score: Score, trace: TraceRef | None) -> str:
        if trace is None or _uuid(trace.run_id) is None:
            return "no_run"
        return "no_value" if score.status == "not_applicable" else ""

    def _body(self, score: Score, evaluation: Evaluation, trace: TraceRef) -> dict[str, Any]:
        kind = "model" if annotator_kind(score) == "LLM" else "api"
        at = timestamp(evaluation.evaluated_at)
        return {
            "id": str(uuid5(_NAMESPACE, score.id or f"{evaluation.record_id}:{score.metric}")),
            "run_id": str(_uuid(trace.run_id)),
            "session_id": self._project_id,
            "key": score.metric,
            "score": score.value,
            "value": score.label,
            "comment": self._comment(score),
            "error": True if score.status == "failed" else None,
            "feedback_source": {"type": kind, "metadata": details(score, evaluation)},
            "extend_trace_retention": self._extend_trace_retention,
            "created_at": at,
            "modified_at": at,
        }


def _uuid(text: str | None) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        return None
