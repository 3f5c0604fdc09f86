"""What a server's reply says: a JSON object, what it cost, or an error by name."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from steelyard._internal.json_pieces import json_value
from steelyard.errors import JudgeError, JudgeRejected, JudgeUnavailable, MalformedReply, RateLimited
from steelyard.scores import Usage

_MOST_PARTS = 150_000
"""Lists and objects in a reply; one of 12,000 tokens with their log probabilities has fewer."""
_MOST_KEYS = 300_000
"""Keys in a reply; those 12,000 tokens have 230,000."""
_MOST_ESCAPES = 400_000
"""Backslashes in a reply. They may all stand in one text, which is read by one call."""
_LONGEST_REFUSAL = 20_000
"""Bytes of an error page that are looked at; what is shown of it is shorter."""
_MOST_COUNTED = 2**53  # beyond, a float no longer counts by ones; a server that says so is wrong


def named_error(
    status: int, message: str, *, code: str | None, headers: Mapping[str, str], where: str
) -> JudgeError:
    """The error that an HTTP status stands for."""
    # Cut: some servers reply with a whole page.
    text = f"{where} replied {status}: {message[:300]}"
    if status == 429:
        if code == "insufficient_quota":
            return JudgeRejected(text, cause="quota_exceeded")
        return RateLimited(text, retry_after=_retry_after(headers))
    if status in (401, 403):
        return JudgeRejected(f"{text}; check the key", cause="unauthorized")
    if status == 404 or code == "model_not_found":
        return JudgeRejected(f"{text}; check the model's name and base_url", cause="unknown_model")
    if status == 413 or code == "context_length_exceeded":
        return JudgeRejected(text, cause="too_large")
    if 300 <= status < 400:
        return JudgeRejected(f"{text}; redirects are not followed, name the new base_url", cause="redirected")
    # The server did not wait for the request; it may do so the next time.
    if status == 408:
        return JudgeUnavailable(text, cause="timeout")
    if status >= 500 or status in (409, 425):
        error = JudgeUnavailable(text, cause="server_error")
        error.retry_after = _retry_after(headers)
        return error
    return JudgeRejected(text, cause="bad_request")


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `retry-after` in either of its forms."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) / unit
        except (KeyError, ValueError):
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    return _until(headers.get("retry-after"))


def _until(date: str | None) -> float | None:
    if not date:
        return None
    try:
        return max(0.0, (parsedate_to_datetime(date) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def body_of(content: bytes) -> Mapping[str, Any]:
    """The JSON object of a reply.

    Raises:
        MalformedReply: If it is something else, or of more parts than any reply has: reading it would take
            seconds, and the application's threads would feel it.
    """
    # Counted before reading, since reading is what takes the time.
    if content.count(b"[") + content.count(b"{") > _MOST_PARTS:
        raise MalformedReply(f"a reply of more than {_MOST_PARTS:,} lists and objects; it was not read")
    if content.count(b":") > _MOST_KEYS:
        raise MalformedReply(f"a reply of more than {_MOST_KEYS:,} keys; it was not read")
    if content.count(b"\\") > _MOST_ESCAPES:
        raise MalformedReply(f"a reply of more than {_MOST_ESCAPES:,} escaped characters; it was not read")
    try:
        body = json_value(content)
    except (ValueError, RecursionError) as error:
        raise MalformedReply("the server's reply is not JSON") from error
    if not isinstance(body, dict):
        raise MalformedReply("the server's reply is not a JSON object")
    return body


def refusal_in(content: bytes) -> tuple[str, str | None]:
    """A server's words about what is wrong, and its code for that, if it has one."""
    try:
        body = json_value(content[:_LONGEST_REFUSAL])
    except (ValueError, RecursionError):
        return content[:_LONGEST_REFUSAL].decode(errors="replace").strip(), None
    error = _object(body).get("error", body)
    code = _object(error).get("code")
    return str(error), code if isinstance(code, str) else None


def usage_of(body: Mapping[str, Any], *, requests: int = 0, seconds: float = 0.0) -> Usage:
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
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST_COUNTED
    return int(value) if known else 0
