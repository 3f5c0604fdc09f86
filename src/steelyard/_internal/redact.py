"""The one place where secrets leave a text before it is logged, shown or stored.

Servers echo keys and texts in their error pages, URLs carry passwords, exceptions of a user's function quote
the turn. So an address is shown by `redacted_url`, an error by its type and status (`error_words`), never by
its message; what must be shown all the same goes through `redacted`.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit, urlunsplit

_HIDDEN = "***"
_USERINFO = re.compile(r"(?<=://)[^\s/?#@\"'<>]{1,1000}@")
_NAMED = re.compile(
    r"(?i)(?<![a-z])((?:api|access|auth|secret|private|public|app)?[-_]?"
    r"(?:key|token|secret|password|passwd|pwd|signature|sig)[\"']?\s?[=:]\s?[\"']?)"
    r"[^\s&\"',;}\])]{1,4000}"
)
_SCHEME = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{12,8000}")
_KEYS = re.compile(r"\b(?:sk|pk|rk|lsv2|ls|hf|ghp|xoxb|px)[-_][A-Za-z0-9_-]{8,500}")
_SHORTEST = 4
"""Given values shorter than this are not replaced: they would take ordinary words with them."""
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
"""This machine's own names: who listens there only needs no token, and answers to no other name."""


def redacted(text: str, *, secrets: Iterable[str] = ()) -> str:
    """A text without passwords in URLs, secret query values, bearer tokens, well-known keys and given values.

    Args:
        text: Any text; the time this takes grows with its length only.
        secrets: Values that must not be in it, such as the key that a request carried.
    """
    # The longest first: a key that begins with another would otherwise leave its end.
    for secret in sorted({one for one in secrets if len(one) >= _SHORTEST}, key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    text = _USERINFO.sub(f"{_HIDDEN}@", text)
    text = _SCHEME.sub(rf"\1 {_HIDDEN}", text)
    text = _NAMED.sub(rf"\1{_HIDDEN}", text)
    return _KEYS.sub(_HIDDEN, text)


def is_http_address(url: str) -> bool:
    """Whether it is an http or https address with a host, and with a port that a server can have."""
    try:
        parts = urlsplit(url)
        # Reading `port` is what raises for one that is not a number.
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def redacted_url(url: str) -> str:
    """An address as it may be shown: without user, password, query and fragment."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return _HIDDEN
    if not parts.scheme or not host:
        return redacted(url.partition("?")[0])
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def error_words(error: BaseException) -> str:
    """An error by its type and status: never by its message, which may quote keys, addresses and texts."""
    name = type(error).__name__
    try:
        status = _status(error)
        return f"{name} ({status})" if isinstance(status, str | int) and len(str(status)) <= 80 else name
    except Exception:  # noqa: BLE001 - an error of somebody's own may raise when it is looked at
        return name


def _status(error: BaseException) -> object:
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorname", None)
    if isinstance(error, OSError) and error.errno is not None:
        return error.strerror if isinstance(error.strerror, str) else error.errno
    return getattr(error, "status_code", None) or getattr(error, "cause", None)


def error_place(error: BaseException) -> str:
    """A user's error by its type and by where it was raised: its message may quote the turn."""
    place = error.__traceback__
    if place is None:
        return type(error).__name__
    while place.tb_next is not None:
        place = place.tb_next
    return f"{type(error).__name__} ({place.tb_frame.f_code.co_filename}, line {place.tb_lineno})"
