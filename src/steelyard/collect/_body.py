"""Reading a request's body within bounds, gzip included: nothing is unpacked further than it may go."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

_GZIP = 16 + zlib.MAX_WBITS


class Busy(Exception):
    """Other requests have the room that this one would take."""


class TooLarge(Exception):
    """The body is longer than it may be, packed or unpacked."""


class Unreadable(Exception):
    """The body is not what its headers say."""


async def read_body(chunks: AsyncIterator[bytes], *, encoding: str, longest: int) -> bytes:
    """The whole body, unpacked.

    Args:
        chunks: What comes over the connection.
        encoding: The `Content-Encoding` header: `gzip`, `deflate`, `identity` or nothing.
        longest: The most bytes, before and after unpacking.

    Raises:
        TooLarge: If there is more; what follows is not read.
        Unreadable: If it is not in that encoding, or was cut short.
    """
    named = encoding.strip().lower()
    if named in ("", "identity"):
        return await _plain(chunks, longest)
    if named not in ("gzip", "deflate"):
        raise Unreadable(f"the encoding {named[:40]!r} is not understood; send gzip, deflate or nothing")
    return await _unpacked(chunks, zlib.decompressobj(_GZIP if named == "gzip" else zlib.MAX_WBITS), longest)


async def _plain(chunks: AsyncIterator[bytes], longest: int) -> bytes:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > longest:
            raise TooLarge
    return bytes(body)


async def _unpacked(chunks: AsyncIterator[bytes], inflate: zlib._Decompress, longest: int) -> bytes:
    body = bytearray()
    received = 0
    async for chunk in chunks:
        # zlib would keep what follows the end, in a longer and longer copy.
        if inflate.eof and chunk:
            raise Unreadable("bytes follow the end of the compressed body")
        received += len(chunk)
        try:
            body += inflate.decompress(chunk, longest + 1 - len(body))
        except zlib.error:
            raise Unreadable("the body is not compressed as its headers say") from None
        if received > longest or len(body) > longest or inflate.unconsumed_tail:
            raise TooLarge
    if inflate.unused_data:
        raise Unreadable("bytes follow the end of the compressed body")
    if not inflate.eof:
        raise Unreadable("the compressed body was cut short")
    return bytes(body)
