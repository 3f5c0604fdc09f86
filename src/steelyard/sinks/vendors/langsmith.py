"""Scores as feedback on LangSmith runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID, uuid5

from steelyard.errors import SinkError
from steelyard.scores import Evaluation
from steelyard.sinks._described import annotator_kind
from steelyard.sinks.vendors._http import HTTPSink, details, given_or_env, timestamp
from steelyard.sinks.vendors._late import send_when_there

__all__ = ["LangSmithSink"]

_NAMESPACE = UUID("6e3c7c2a-5b0c-4b8e-9a53-4b1f7d2c9e10")


class LangSmithSink(HTTPSink):
    """Posts feedback for runs that LangSmith traced too; they share LangChain's run id with our records.

    The feedback id comes from the result id, and feedback that is there already is updated. Failures are sent
    with their explanation and without a score; what does not apply is left out, as is what has no run id.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        project_id: str | None = None,
        patience: float = 6.0,
        explanations: bool = True,
        timeout: float = 5.0,
    ) -> None:
        """Nothing is sent yet.

        Args:
            url: The API; else `LANGSMITH_ENDPOINT`, else LangSmith's cloud.
            api_key: Else `LANGSMITH_API_KEY`.
            project_id: The project's UUID (LangSmith's `session_id`), which newer servers ask for.
            patience: Seconds to wait for a run that has not arrived yet.
            explanations: Whether to send the judges' words.
            timeout: Seconds for one request.

        Raises:
            ConfigurationError: If there is no key, or the URL is none.
        """
        key = given_or_env(api_key, "LANGSMITH_API_KEY", what="LangSmith API key")
        default = "https://api.smith.langchain.com"
        super().__init__(
            "langsmith",
            given_or_env(url, "LANGSMITH_ENDPOINT", what="URL", default=default),
            headers={"x-api-key": key},
            timeout=timeout,
            explanations=explanations,
        )
        self._project_id = project_id
        self._patience = patience

    def _send(self, evaluations: Sequence[Evaluation]) -> None:
        found = [one for evaluation in evaluations for one in self._feedback(evaluation)]
        send_when_there(found, self._send_one, patience=self._patience, left_out=self._left_out)

    def _send_one(self, feedback: dict[str, Any]) -> None:
        try:
            self._request("POST", "/feedback", feedback)
        except SinkError as error:
            if error.cause != "conflict":
                raise
            changes = {name: feedback[name] for name in ("score", "value", "comment") if name in feedback}
            self._request("PATCH", f"/feedback/{feedback['id']}", changes)

    def _feedback(self, evaluation: Evaluation) -> Iterator[dict[str, Any]]:
        run_id = _uuid(evaluation.trace.run_id) if evaluation.trace else None
        if run_id is None:
            self._left_out["no_run"] += len(evaluation.scores)
            return
        for score in evaluation.scores:
            if score.status == "not_applicable":
                self._left_out["no_value"] += 1
                continue
            kind = "model" if annotator_kind(score) == "LLM" else "api"
            at = timestamp(evaluation.evaluated_at)
            given = {
                "id": str(uuid5(_NAMESPACE, score.id or f"{evaluation.record_id}:{score.metric}")),
                "run_id": str(run_id),
                "session_id": self._project_id,
                "key": score.metric,
                "score": score.value,
                "value": score.label,
                "comment": self._comment(score),
                "error": True if score.status == "failed" else None,
                "feedback_source": {"type": kind, "metadata": details(score, evaluation)},
                "created_at": at,
                "modified_at": at,
            }
            yield {name: item for name, item in given.items() if item is not None}


def _uuid(text: str | None) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        return None
