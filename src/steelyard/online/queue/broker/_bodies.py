"""What a broker's messages hold: turns, and results beside the turns they are of."""

from __future__ import annotations

import hashlib
import re
import zlib
from dataclasses import replace

from steelyard.online.queue._turns import Selected
from steelyard.online.queue._written import result_to_json, turn_from_json
from steelyard.record import text_of
from steelyard.scores import Evaluation, evaluation_from_json

_OF_TURN = b'{"record_of":"turn",'
_PACKED_FROM = 64 * 1024  # below, compressing costs more than the bytes do
_OTHER = re.compile(r"[^A-Za-z0-9_-]")
_LARGEST = 64 * 1024 * 1024  # what unpacks to more is not ours, and may be an attack


def key_of(turn: Selected) -> str:
    """What the broker tells the same turn by, published twice."""
    return hashlib.blake2b(text_of(turn.record.id).encode(), digest_size=16).hexdigest()


def token_of(sink: str) -> str:
    """A sink's name as a part of a subject or of a queue's name."""
    return f"{_OTHER.sub('_', sink)[:60]}-{hashlib.blake2b(sink.encode(), digest_size=4).hexdigest()}"


def result_of(turn: Selected, evaluation: Evaluation) -> bytes:
    """A result as it is stored beside its turn: the Record, most of it, lies there already."""
    if evaluation.record is None or evaluation.record != turn.record:
        return packed(result_to_json(evaluation))
    line = result_to_json(replace(evaluation, record=None))
    return packed(_OF_TURN + line[1:])


def evaluation_of(result: bytes, turn: bytes) -> Evaluation:
    """The result again. Raises whatever a damaged text makes it raise."""
    line = unpacked(result)
    evaluation = evaluation_from_json(line)
    if not line.startswith(_OF_TURN):
        return evaluation
    return replace(evaluation, record=turn_from_json(unpacked(turn)).record)


def packed(body: bytes) -> bytes:
    """Compressed where it is large: brokers bound the size of a message, mostly at 1 MiB."""
    return body if len(body) < _PACKED_FROM else zlib.compress(body, 1)


def unpacked(body: bytes) -> bytes:
    """What was packed; JSON begins with a bracket, which no compressed text does.

    Raises:
        zlib.error: If it is neither, or larger than 64 MiB.
    """
    if body[:1] == b"{":
        return body
    inflate = zlib.decompressobj()
    text = inflate.decompress(body, _LARGEST)
    if not inflate.eof:
        raise zlib.error("too large or cut off")
    return text


def unpacked_or_empty(body: bytes) -> bytes:
    """What was packed; nothing where it cannot be unpacked."""
    try:
        return unpacked(body)
    except zlib.error:
        return b""
