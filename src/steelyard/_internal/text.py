"""Text that is shown, logged or stored: no character of it acts as code, and no secret is left in it.

Servers echo keys and texts in their error pages, URLs carry passwords, exceptions of a user's function quote
the turn. So an address is shown by `redacted_url`, an error by its type and status (`error_words`), never by
its message; what must be shown all the same goes through `redacted`.
"""

from __future__ import annotations

import difflib
import json
import re
import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime
from io import TextIOWrapper
from typing import Final, TypeGuard
from urllib.parse import urlsplit, urlunsplit

# C0 and C1 controls, the bidirectional controls and marks, line and paragraph separators, zero-width and
# tag characters, and lone surrogates: whatever moves the cursor, starts a sequence or reorders what is read.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_YEAR_10000: Final = 253_402_300_800.0
_DRAWN = re.compile(r"(\x1b\[[0-9;?]*[A-Khlm]|\r)")
_BREAKS = re.compile(r"\r\n?|[\u2028\u2029]")


def printable(text: str, *, lines: bool = False) -> str:
    """A text in which no character acts as code where it is shown.

    Control characters (C0 and C1, so also the escape character that starts terminal sequences), bidirectional
    controls, zero-width characters and lone surrogates become the replacement character. Escaping for HTML or
    quoting for CSV is the writer's own work, on top of this.

    Args:
        text: Any text.
        lines: Keep line breaks and tabs; else all white space becomes single spaces.
    """
    text = _BREAKS.sub("\n", text) if lines else " ".join(text.split())
    return text if text.isascii() and text.isprintable() else _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def visible(text: str) -> str:
    """The text with a replacement character for each that acts as code where it is shown.

    Positions stay as they are: a character is replaced by one. Line feeds and tabs are left.
    """
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r", " "))


def escaped(text: str) -> str:
    """The text with a JSON escape for each character that acts as code; what JSON says stays the same."""
    return _CONTROLS.sub(lambda found: json.dumps(found[0])[1:-1], text)


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number and its noun.

    >>> counted(1, "record"), counted(1200, "record"), counted(2, "reply", "replies")
    ('1 record', '1,200 records', '2 replies')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


class ShownStream(TextIOWrapper):
    """A terminal or pipe: whatever is written to it, no text from outside acts as code there."""

    def write(self, text: str, /) -> int:
        """Write with `escaped`; a terminal also takes the colours and cursor moves of progress bars."""
        if self.isatty():
            text = "".join(part if _DRAWN.fullmatch(part) else escaped(part) for part in _DRAWN.split(text))
        else:
            text = escaped(text)
        return super().write(text)


def shorten(text: str, width: int) -> str:
    """A printable text of at most so many characters, on one line."""
    flat = printable(text[: 4 * width + 100])
    return flat if len(flat) <= width else flat[: max(width - 1, 0)].rstrip() + "…"


def instead_of(name: str, known: Iterable[str]) -> str:
    """For the message about an unknown name: the one that was probably meant, or else all there are."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"


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


def is_date(at: object) -> TypeGuard[float]:
    """Whether a Unix time is one of a calendar; milliseconds that are taken for seconds are not."""
    return isinstance(at, float | int) and 0 <= at < _YEAR_10000


def utc(at: float, form: str) -> str:
    """A Unix time in UTC; a dash for one that no calendar has."""
    return datetime.fromtimestamp(at, UTC).strftime(form) if is_date(at) else "–"
