"""Judged text made harmless to look at. Positions stay as they are: a character is replaced by one."""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def visible(text: str) -> str:
    """The text with a replacement character for each that steers a terminal, a browser or the direction."""
    return _UNSAFE.sub("\ufffd", text)


def one_line(text: str, width: int) -> str:
    """At most so many characters on one line."""
    flat = " ".join(visible(text[: 4 * width + 100]).split())
    return flat if len(flat) <= width else flat[: max(width - 1, 0)].rstrip() + "…"
