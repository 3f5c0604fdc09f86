"""Embeddings from an OpenAI-compatible endpoint."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import ConfigurationError, MalformedReply
from steelyard.judge.chat._prompts import sendable
from steelyard.judge.endpoint import Endpoint, usage_of
from steelyard.judge.middleware import RetryPolicy
from steelyard.scores import Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class OpenAIEmbedder:
    """An embedding model behind an OpenAI-compatible endpoint.

    Args:
        model: The model's name.
        base_url: Where the server is; as for `ChatJudge`.
        api_key: The key; as for `ChatJudge`, a key in the environment is not sent to a `base_url`.
        dimensions: Length of the vectors, for models that let one choose.
        timeout: Seconds until a request is given up.
        retries: Requests after the first, if the failure may pass.
        concurrency: Requests in flight, and connections, at most.
        batch: Texts in one request.
        client: An `openai.AsyncOpenAI` of your own; set its `max_retries=0`.

    Raises:
        ConfigurationError: If an option makes no sense, or there is no key for an endpoint that needs one.
    """

    def __init__(
        self,
        model: str = "text-embedding-3-small",
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        dimensions: int | None = None,
        timeout: float = 30.0,
        retries: int = 3,
        concurrency: int = 16,
        batch: int = 512,
        client: AsyncOpenAI | None = None,
    ) -> None:
        if batch < 1 or (dimensions is not None and dimensions < 1):
            raise ConfigurationError(f"batch={batch!r} and dimensions={dimensions!r} must be at least 1")
        self._endpoint = Endpoint(
            base_url=base_url, api_key=api_key, timeout=timeout, connections=concurrency, client=client
        )
        self._patience = RetryPolicy(retries=retries)
        self._batch = batch
        self._options: dict[str, Any] = {"model": model, "encoding_format": "base64"}
        if dimensions is not None:
            self._options["dimensions"] = dimensions

    @property
    def name(self) -> str:
        """`openai:` and the model, with the length if it was chosen."""
        length = self._options.get("dimensions")
        return f"openai:{self._options['model']}" + (f":{length}" if length else "")

    async def embed(self, texts: Sequence[str]) -> tuple[Sequence[Sequence[float]], Usage]:
        """One vector per text, in order.

        Raises:
            JudgeError: If there are no vectors.
        """
        vectors: list[Sequence[float]] = []
        usage = Usage()
        for start in range(0, len(texts), self._batch):
            piece = [sendable(text) for text in texts[start : start + self._batch]]
            asked = {"input": piece, **self._options}
            began = time.perf_counter()
            body, failed = await self._patience.call(partial(self._endpoint.post, "/embeddings", asked))
            vectors += _vectors(body, len(piece))
            usage += usage_of(body, requests=failed + 1, seconds=time.perf_counter() - began)
        return vectors, usage

    async def aclose(self) -> None:
        """Close the running loop's connections."""
        await self._endpoint.aclose()

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self._options['model']!r}, base_url={self._endpoint.where!r})"


def _vectors(body: Mapping[str, Any], count: int) -> list[Sequence[float]]:
    """The vectors of a reply by their index, which servers do not all keep in order."""
    data = body.get("data")
    rows = {row.get("index", at): row for at, row in enumerate(data) if isinstance(row, dict)} if data else {}
    if sorted(rows, key=str) != sorted(range(count), key=str):
        raise MalformedReply(f"{len(rows)} vectors for {count} texts")
    return [_vector(rows[at].get("embedding")) for at in range(count)]


def _vector(value: Any) -> Sequence[float]:
    """A vector from base64 of little-endian floats, or from the plain list of servers that know no base64."""
    try:
        packed = base64.b64decode(value) if isinstance(value, str) else None
        numbers = np.array(value, float) if packed is None else np.frombuffer(packed, "<f4")
        if numbers.ndim != 1:
            raise ValueError("a list of lists")
        vector: list[float] = numbers.tolist()
        return vector
    except (ValueError, TypeError, binascii.Error) as error:
        raise MalformedReply("a vector that is not a list of numbers") from error
