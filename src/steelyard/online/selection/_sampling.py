"""The hash behind sampling: the same turn gets the same position in [0, 1) in every process and language.

    sampling_position(key) = first 8 bytes of SHA-256(UTF-8 bytes of key), a big-endian integer, / 2**64
    sampling_position(key, secret) = the same of HMAC-SHA-256 with the UTF-8 bytes of secret as its key

The key is the W3C trace id in lower-case hex (32 digits) where the turn has one, otherwise the record's id.
A turn is picked where its position is below its rate. So a sample at a lower rate is part of the sample at a
higher one, all services that see a trace agree on it, and no state is shared. The id is hashed rather than
used as it stands because tracing systems sample by its bits: without the hash, the turns picked here would
depend on the traces picked there. A secret is for applications that are reached from outside: trace ids come
from the caller's `traceparent`, and whoever knows the hash could choose ids that are never or always picked.
"""

from __future__ import annotations

import hmac
from hashlib import sha256

from steelyard.errors import ConfigurationError
from steelyard.record import Record
from steelyard.recording import Draft

_RANGE = float(2**64)


def sampling_position(key: str, secret: str = "") -> float:
    """Where a key falls in [0, 1); with a secret, nobody can foresee it who does not know the secret."""
    said = key.encode("utf-8", "replace")
    if secret:
        digest = hmac.digest(secret.encode("utf-8", "replace"), said, "sha256")
    else:
        digest = sha256(said).digest()
    # The division rounds the largest integers up to 1.0, which no rate would exceed.
    return min(int.from_bytes(digest[:8], "big") / _RANGE, 1 - 2**-53)


def key_of(turn: Record | Draft) -> str:
    """What decides about a turn: its trace id, or else its own id."""
    trace = turn.trace
    return (trace.trace_id if trace else None) or turn.id


def checked_rate(value: object, name: str) -> float:
    """A rate in 0..1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ConfigurationError(f"{name} must be a number from 0 to 1, not {value!r}")
    return float(value)
