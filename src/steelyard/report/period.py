"""Periods of time as people write them: `7d`, `24h`, `2026-11-01`."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

from steelyard.errors import ConfigurationError

# In seconds; a week is the longest unit that is always of the same length.
_UNITS = {"m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def moment(text: str, *, now: float) -> float | None:
    """The Unix time that a text names; None of an empty one.

    Args:
        text: A length of time before now (`30m`, `24h`, `7d`, `2w`) or an ISO 8601 date or time; without a
            zone it is in UTC.
        now: The present, as Unix time.

    Raises:
        ConfigurationError: If it is neither.

    >>> moment("1h", now=7200.0), moment("1970-01-02", now=0.0)
    (3600.0, 86400.0)
    """
    if not text:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([mhdw])", text.strip())
    if found:
        return now - float(found[1]) * _UNITS[found[2]]
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(
            f"{text!r} is not a time; write 30m, 24h, 7d, 2w or a date such as 2026-11-01"
        ) from None
    return (given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp()


def bucket_width(seconds: float) -> float:
    """How long a point of a time axis lasts, in seconds: an hour, a day or weeks, for some 120 at most."""
    for width in (_UNITS["h"], _UNITS["d"], _UNITS["w"]):
        if seconds / width <= (48 if width == _UNITS["h"] else 120):
            return width
    return _UNITS["w"] * math.ceil(seconds / _UNITS["w"] / 120)
