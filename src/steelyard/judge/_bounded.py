"""Replies of a server read up to a limit: while they arrive, and while they are unpacked.

A reply without end, or one that grows a thousandfold when it is unpacked, costs no more memory than the limit
and one piece. It is put in as a response hook of the HTTP client under openai.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import AsyncIterator
from functools import cache
from typing import Any

from steelyard.errors import MalformedReply

_MOST_BYTES = 8_000_000
"""17,000 tokens with the log probabilities of five alternatives each."""
_MOST_BYTES_OF_VECTORS = 64_000_000
"""Vectors written out as decimal numbers take some 20 bytes a number."""


async def bound_reply(response: Any) -> None:
    """Let the body of a response be read up to the limit only.

    Raises:
        MalformedReply: If it is packed in a way that cannot be unpacked piece by piece.
    """
    most = _MOST_BYTES_OF_VECTORS if response.request.url.path.endswith("/embeddings") else _MOST_BYTES
    packing = response.headers.pop("content-encoding", "identity").strip().lower()
    if packing not in ("identity", "gzip", "x-gzip", "deflate", ""):
        raise MalformedReply(f"a reply packed as {packing[:40]!r}, which was not asked for")
    response.headers.pop("content-length", None)
    response.stream = _stream_of(_library(response).AsyncByteStream)(
        response.stream, most, packed=packing not in ("identity", "")
    )


def _library(response: Any) -> Any:
    """The HTTP library under openai, which has changed its name before."""
    return sys.modules[type(response).__module__.partition(".")[0]]


@cache
def _stream_of(base: Any) -> Any:
    class BoundedStream(base):  # type: ignore[misc]  # the class is known only when a reply is there
        def __init__(self, inner: Any, most: int, *, packed: bool) -> None:
            self._inner, self._most, self._packed = inner, most, packed

        async def __aiter__(self) -> AsyncIterator[bytes]:
            pieces = _unpacked(self._inner, self._most) if self._packed else aiter(self._inner)
            size = 0
            async for piece in pieces:
                size += len(piece)
                if size > self._most:
                    raise too_long(self._most)
                yield piece

        async def aclose(self) -> None:
            await self._inner.aclose()

    return BoundedStream


async def _unpacked(inner: Any, most: int) -> AsyncIterator[bytes]:
    """The pieces of a gzip or zlib stream; no piece is longer than one byte more than the limit."""
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    async for packed in inner:
        try:
            piece = unpacker.decompress(packed, most + 1)
        except zlib.error:
            raise MalformedReply("a reply that cannot be unpacked") from None
        if unpacker.unconsumed_tail:
            raise too_long(most)
        yield piece


def too_long(most: int) -> MalformedReply:
    """The error for a reply beyond the limit."""
    return MalformedReply(f"a reply of more than {most // 1_000_000} MB; the rest was not read")
