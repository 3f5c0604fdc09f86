"""What the replies of OpenAI-compatible endpoints have in common: a JSON object with counts in it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from steelyard.errors import MalformedReply
from steelyard.scores import Usage


def body_of(content: bytes) -> Mapping[str, Any]:
    """The JSON object of a reply.

    Raises:
        MalformedReply: If it is none.
    """
    try:
        body = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise MalformedReply("the server's reply is not JSON") from error
    if not isinstance(body, dict):
        raise MalformedReply("the server's reply is not a JSON object")
    return body


def usage_of(body: Mapping[str, Any], *, requests: int, seconds: float) -> Usage:
    """What the server counted, under either of the names in use; zeros where it counts nothing."""
    usage = _object(body.get("usage"))
    details = _object(usage.get("prompt_tokens_details") or usage.get("input_tokens_details"))
    return Usage(
        requests=requests,
        prompt_tokens=_count(usage.get("prompt_tokens", usage.get("input_tokens"))),
        completion_tokens=_count(usage.get("completion_tokens", usage.get("output_tokens"))),
        cached_tokens=_count(details.get("cached_tokens")),
        seconds=seconds,
    )


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return max(0, int(value)) if known else 0
