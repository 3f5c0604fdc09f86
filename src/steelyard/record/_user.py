"""Users by a keyed hash: enough to tell them apart, and nothing to name them by."""

from __future__ import annotations

import hmac
import re
from typing import Final

from steelyard.errors import ConfigurationError
from steelyard.record._record import Record

_SHORTEST: Final = 16
"""Characters of a key: ids of users are few enough to try all of them against a short one."""
_HASHED: Final = re.compile("user-[0-9a-f]{32}")


def is_hashed(user: object) -> bool:
    """Whether this is what `with_hashed_user` makes of a user."""
    return isinstance(user, str) and _HASHED.fullmatch(user) is not None


def with_hashed_user(record: Record, key: str) -> Record:
    """The record with its user as HMAC-SHA256 under the key, cut to 128 bits; without a key, with none."""
    if record.user is None or (key and is_hashed(record.user)):
        return record
    if not key:
        return record.replace(user=None)
    digest = hmac.digest(key.encode(), str(record.user).encode("utf-8", "replace"), "sha256")
    return record.replace(user=f"user-{digest.hex()[:32]}")


def check_user_key(key: object, name: str = "user_key") -> None:
    """Refuse a key that could be guessed.

    Raises:
        ConfigurationError: If it is neither empty nor at least 16 characters long. It is not repeated.
    """
    if key != "" and (not isinstance(key, str) or len(key) < _SHORTEST):
        raise ConfigurationError(
            f"{name} must be a text of at least {_SHORTEST} characters; "
            "make one with `python -c 'import secrets; print(secrets.token_urlsafe())'`"
        )
