"""Text that is shown: in a terminal, a CSV file, an HTML page, a log line."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable
from io import TextIOWrapper

# C0 and C1 controls, the bidirectional controls and marks, line and paragraph separators, zero-width and
# tag characters, and lone surrogates: whatever moves the cursor, starts a sequence or reorders what is read.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)
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
