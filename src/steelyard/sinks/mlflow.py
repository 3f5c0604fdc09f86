"""Scores as feedback on MLflow traces."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from steelyard.errors import SinkError
from steelyard.record import TraceRef
from steelyard.scores import Evaluation, Score
from steelyard.sinks._attributes import annotator_kind
from steelyard.sinks._client import basic
from steelyard.sinks._http import HTTPSink, Item, details, given_or_env, timestamp

# The API takes one assessment a request, so that many have to be under way at once.
_CONNECTIONS = 24
_TRACES = "/api/3.0/mlflow/traces"
_IN_DOUBT = frozenset({"timeout", "unreachable", "hangs"})
_LOOKS = (0.1, 0.4, 1.0, 2.0)


class MLflowSink(HTTPSink):
    """Posts assessments to the MLflow tracking server that the host's spans are exported to.

    MLflow has no key of ours to replace by. So the sink asks which results a trace has already, and sends the
    others; if no reply came, it asks whether the result has arrived before it sends it again. Failures are
    sent as feedback with an error; what does not apply is left out.
    """

    _without_value = frozenset({"not_applicable"})
    _looked_at = "/api/2.0/mlflow/experiments/search?max_results=1"

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
            ConfigurationError: If there is no URL, or it is not one (a file or database URI has no server).
        """
        headers = {}
        user, password = (os.environ.get(f"MLFLOW_TRACKING_{part}") for part in ("USERNAME", "PASSWORD"))
        if token or (token := os.environ.get("MLFLOW_TRACKING_TOKEN")):
            headers["Authorization"] = f"Bearer {token}"
        elif user and password:
            headers = basic(user, password)
        super().__init__(
            "mlflow",
            given_or_env(url, "MLFLOW_TRACKING_URI", what="MLflow tracking URL"),
            headers=headers,
            timeout=timeout,
            explanations=explanations,
            connections=_CONNECTIONS,
            patience=patience,
        )

    def _groups(self, items: Sequence[Item]) -> Iterable[Sequence[Item]]:
        by_trace: defaultdict[str, list[Item]] = defaultdict(list)
        for item in items:
            by_trace[item.body["trace_id"]].append(item)
        return by_trace.values()

    async def _send(self, items: Sequence[Item]) -> None:
        """The Scores of one trace that it does not have yet; a refused one takes no other along."""
        path = f"{_TRACES}/{items[0].body['trace_id']}"
        there = _result_ids(await self._request("GET", path))
        await asyncio.gather(*(self._send_one(item, path) for item in items if item.key[1] not in there))

    async def _send_one(self, item: Item, path: str) -> None:
        try:
            if not await self._taken("POST", f"{path}/assessments", {"assessment": item.body}):
                self._settle([item], "refused", "rejected")
        except SinkError as error:
            if error.cause not in _IN_DOUBT or not await self._arrives(item, path):
                raise

    async def _arrives(self, item: Item, path: str) -> bool:
        """Whether a result whose reply was lost is there in the end: a slow server writes it all the same."""
        for pause in _LOOKS:
            await asyncio.sleep(pause)
            with contextlib.suppress(SinkError):
                if item.key[1] in _result_ids(await self._request("GET", path)):
                    return True
        return False

    def _body(self, score: Score, evaluation: Evaluation, trace: TraceRef) -> dict[str, Any]:
        made = score.provenance
        kind = "CODE" if annotator_kind(score) == "CODE" else "LLM_JUDGE"
        at = timestamp(evaluation.evaluated_at)
        if score.value is None:
            error = {"error_code": score.cause or "failed", "error_message": self._comment(score) or ""}
            feedback: dict[str, Any] = {"error": error}
        else:
            feedback = {"value": score.value}
        return {
            "assessment_name": score.metric,
            "trace_id": f"tr-{trace.trace_id}",
            "span_id": trace.span_id,
            "source": {"source_type": kind, "source_id": made.judge if made else "steelyard"},
            "create_time": at,
            "last_update_time": at,
            "feedback": feedback,
            "rationale": self._comment(score),
            "metadata": {name: str(item) for name, item in details(score, evaluation).items()},
        }


def _result_ids(reply: Any) -> set[str]:
    """The ids of the results that a trace has already."""
    try:
        assessments = reply["trace"]["trace_info"].get("assessments", [])
        return {one.get("metadata", {}).get("steelyard.evaluation.id", "") for one in assessments}
    except (KeyError, TypeError, AttributeError):
        return set()
