"""Scores in Langfuse, on the observation that the RAG span became there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from steelyard.errors import SinkError
from steelyard.record import TraceRef
from steelyard.scores import Evaluation, Score
from steelyard.sinks._client import basic
from steelyard.sinks._http import REFUSALS, HTTPSink, Item, details, given_or_env, timestamp

_MOST, _LARGEST = 100, 900_000
_PATH = "/api/public/scores"


class LangfuseSink(HTTPSink):
    """Posts numeric scores to `/api/public/scores`, in batches if the server takes them.

    Scores are keyed by result id and the time of the evaluation, so writing the same again replaces them.
    What has no value has no place among numeric scores and is left out.
    """

    _looked_at = "/api/public/projects"

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
            ConfigurationError: If a key is missing, or the URL is not one.
        """
        public = given_or_env(public_key, "LANGFUSE_PUBLIC_KEY", what="Langfuse public key")
        secret = given_or_env(secret_key, "LANGFUSE_SECRET_KEY", what="Langfuse secret key")
        default = "https://cloud.langfuse.com"
        super().__init__(
            "langfuse",
            given_or_env(url, "LANGFUSE_BASE_URL", "LANGFUSE_HOST", what="URL", default=default),
            headers=basic(public, secret),
            timeout=timeout,
            explanations=explanations,
        )
        self._environment = environment
        self._batches = True

    def _groups(self, items: Sequence[Item]) -> Iterator[list[Item]]:
        """The server takes bodies of up to one mebibyte."""
        batch: list[Item] = []
        size = 0
        for item in items:
            length = len(json.dumps(item.body))
            if batch and (len(batch) >= _MOST or size + length > _LARGEST):
                yield batch
                batch, size = [], 0
            batch.append(item)
            size += length
        if batch:
            yield batch

    async def _send(self, items: Sequence[Item]) -> None:
        became = await self._post_batch(items) if self._batches else "refused"
        if became == "taken":
            return
        taken = await asyncio.gather(*(self._taken("POST", _PATH, item.body) for item in items))
        refused = [item for item, arrived in zip(items, taken, strict=True) if not arrived]
        self._settle(refused, "refused", "rejected")
        if became == "refused" and len(items) > 1 and not refused:
            self._batches = False  # it was the batch that the server did not take

    async def _post_batch(self, items: Sequence[Item]) -> Literal["taken", "partly", "refused"]:
        """Of a batch taken in part the reply does not say which: one by one tells, and doubles nothing."""
        try:
            reply = await self._request("POST", _PATH, [item.body for item in items])
        except SinkError as error:
            if error.cause not in REFUSALS:
                raise
            return "refused"
        return "partly" if isinstance(reply, dict) and reply.get("rejected") else "taken"

    def _body(self, score: Score, evaluation: Evaluation, trace: TraceRef) -> dict[str, Any]:
        return {
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
