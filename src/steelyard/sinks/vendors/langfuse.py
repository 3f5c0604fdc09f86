"""Scores in Langfuse, on the observation that the RAG span became there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from steelyard.errors import SinkError
from steelyard.scores import Evaluation
from steelyard.sinks.vendors._http import HTTPSink, basic, details, given_or_env, timestamp

__all__ = ["LangfuseSink"]

_MOST, _LARGEST = 100, 900_000


class LangfuseSink(HTTPSink):
    """Posts numeric scores to `/api/public/scores`, in batches where the server takes them.

    Scores are keyed by result id and the time of the evaluation, so writing the same again replaces them.
    What has no value has no place among numeric scores and is left out (counted in `left_out`).
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        public_key: str | None = None,
        secret_key: str | None = None,
        environment: str | None = None,
        explanations: bool = True,
        timeout: float = 5.0,
    ) -> None:
        """Nothing is sent yet.

        Args:
            url: The server; else `LANGFUSE_BASE_URL` or `LANGFUSE_HOST`, else Langfuse's cloud.
            public_key: Else `LANGFUSE_PUBLIC_KEY`.
            secret_key: Else `LANGFUSE_SECRET_KEY`.
            environment: Langfuse's environment name.
            explanations: Whether to send the judges' words.
            timeout: Seconds for one request.

        Raises:
            ConfigurationError: If a key is missing, or the URL is none.
        """
        public = given_or_env(public_key, "LANGFUSE_PUBLIC_KEY", what="Langfuse public key")
        secret = given_or_env(secret_key, "LANGFUSE_SECRET_KEY", what="Langfuse secret key")
        default = "https://cloud.langfuse.com"
        super().__init__(
            "langfuse",
            given_or_env(url, "LANGFUSE_BASE_URL", "LANGFUSE_HOST", what="URL", default=default),
            headers={"Authorization": basic(public, secret)},
            timeout=timeout,
            explanations=explanations,
        )
        self._environment = environment
        self._batches = True

    def _send(self, evaluations: Sequence[Evaluation]) -> None:
        scores = [score for evaluation in evaluations for score in self._scores(evaluation)]
        for batch in _batches(scores):
            if self._batches and self._send_batch(batch):
                continue
            for score in batch:
                self._request("POST", "/api/public/scores", score)

    def _send_batch(self, batch: list[dict[str, Any]]) -> bool:
        """False where the server is one that takes scores only one by one."""
        try:
            reply = self._request("POST", "/api/public/scores", batch)
        except SinkError as error:
            if error.cause != "rejected":
                raise
            self._batches = False
            return False
        rejected = reply.get("rejected", 0) if isinstance(reply, dict) else 0
        if rejected:
            self._left_out["rejected"] += int(rejected)
        return True

    def _scores(self, evaluation: Evaluation) -> Iterator[dict[str, Any]]:
        trace = evaluation.trace
        if trace is None or not trace.trace_id:
            self._left_out["no_trace"] += len(evaluation.scores)
            return
        for score in evaluation.scores:
            if score.value is None:
                self._left_out["no_value"] += 1
                continue
            given = {
                "id": score.id or f"{evaluation.record_id}-{score.metric}",
                "traceId": trace.trace_id,
                "observationId": trace.span_id,
                "name": score.metric,
                "value": score.value,
                "dataType": "NUMERIC",
                "comment": self._comment(score),
                "environment": self._environment,
                "timestamp": timestamp(evaluation.evaluated_at),
                "metadata": details(score, evaluation),
            }
            yield {name: item for name, item in given.items() if item is not None}


def _batches(scores: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The server takes bodies of up to one mebibyte."""
    batch: list[dict[str, Any]] = []
    size = 0
    for score in scores:
        length = len(json.dumps(score))
        if batch and (len(batch) >= _MOST or size + length > _LARGEST):
            yield batch
            batch, size = [], 0
        batch.append(score)
        size += length
    if batch:
        yield batch
