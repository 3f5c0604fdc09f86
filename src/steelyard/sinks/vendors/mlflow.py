"""Scores as feedback on MLflow traces."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from steelyard.scores import Evaluation, Score
from steelyard.sinks._described import annotator_kind
from steelyard.sinks.vendors._http import HTTPSink, basic, details, given_or_env, timestamp
from steelyard.sinks.vendors._late import send_when_there

__all__ = ["MLflowSink"]

_TRACES = "/api/3.0/mlflow/traces"


class MLflowSink(HTTPSink):
    """Posts assessments to the MLflow tracking server that the host's spans are exported to.

    MLflow has no key of ours to replace by, so the sink asks which results a trace has already, and sends the
    others. Failures are sent as feedback with an error; what does not apply is left out.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        patience: float = 6.0,
        explanations: bool = True,
        timeout: float = 5.0,
    ) -> None:
        """Nothing is sent yet.

        Args:
            url: The tracking server; else `MLFLOW_TRACKING_URI`.
            token: Else `MLFLOW_TRACKING_TOKEN`, or `MLFLOW_TRACKING_USERNAME` and `_PASSWORD`, if any.
            patience: Seconds to wait for a trace that has not arrived yet.
            explanations: Whether to send the judges' words.
            timeout: Seconds for one request.

        Raises:
            ConfigurationError: If there is no URL, or it is none (a file or database URI has no server).
        """
        headers = {}
        user, password = (os.environ.get(f"MLFLOW_TRACKING_{part}") for part in ("USERNAME", "PASSWORD"))
        if token or (token := os.environ.get("MLFLOW_TRACKING_TOKEN")):
            headers["Authorization"] = f"Bearer {token}"
        elif user and password:
            headers["Authorization"] = basic(user, password)
        super().__init__(
            "mlflow",
            given_or_env(url, "MLFLOW_TRACKING_URI", what="MLflow tracking URL"),
            headers=headers,
            timeout=timeout,
            explanations=explanations,
        )
        self._patience = patience

    def _send(self, evaluations: Sequence[Evaluation]) -> None:
        found = []
        for evaluation in evaluations:
            if evaluation.trace is None or not evaluation.trace.trace_id:
                self._left_out["no_trace"] += len(evaluation.scores)
                continue
            absent = sum(score.status == "not_applicable" for score in evaluation.scores)
            if absent:
                self._left_out["no_value"] += absent
            if absent < len(evaluation.scores):
                found.append(evaluation)
        send_when_there(found, self._send_one, patience=self._patience, left_out=self._left_out)

    def _send_one(self, evaluation: Evaluation) -> None:
        assert evaluation.trace is not None
        trace_id = f"tr-{evaluation.trace.trace_id}"
        there = _result_ids(self._request("GET", f"{_TRACES}/{trace_id}"))
        for score in evaluation.scores:
            if score.status != "not_applicable" and (not score.id or score.id not in there):
                assessment = self._assessment(score, evaluation, trace_id)
                self._request("POST", f"{_TRACES}/{trace_id}/assessments", {"assessment": assessment})

    def _assessment(self, score: Score, evaluation: Evaluation, trace_id: str) -> dict[str, Any]:
        made = score.provenance
        kind = "CODE" if annotator_kind(score) == "CODE" else "LLM_JUDGE"
        at = timestamp(evaluation.evaluated_at)
        if score.value is None:
            error = {"error_code": score.cause or "failed", "error_message": self._comment(score) or ""}
            feedback: dict[str, Any] = {"error": error}
        else:
            feedback = {"value": score.value}
        given = {
            "assessment_name": score.metric,
            "trace_id": trace_id,
            "span_id": evaluation.trace.span_id if evaluation.trace else None,
            "source": {"source_type": kind, "source_id": made.judge if made else "steelyard"},
            "create_time": at,
            "last_update_time": at,
            "feedback": feedback,
            "rationale": self._comment(score),
            "metadata": {name: str(item) for name, item in details(score, evaluation).items()},
        }
        return {name: item for name, item in given.items() if item is not None}


def _result_ids(reply: Any) -> set[str]:
    """The ids of the results that a trace has already."""
    try:
        assessments = reply["trace"]["trace_info"].get("assessments", [])
        return {one.get("metadata", {}).get("steelyard.evaluation.id", "") for one in assessments}
    except (KeyError, TypeError, AttributeError):
        return set()
