"""Lines of texts as they are compared: what a model wrote into a list, and what later stands in a prompt."""

from __future__ import annotations

import re

_LEAD = re.compile(r"(?:\d{1,3}\s{0,3}[.):]|[-*\N{BULLET}])\s{0,9}")
_QUOTES = " \t\"'`*"


def plain(text: str) -> str:
    """A text in lower case, with one blank wherever it has white space."""
    return " ".join(text.casefold().split())


def plain_line(text: str) -> str:
    """A line without its number, its bullet and its quotes, as `plain` writes it."""
    return plain(_LEAD.sub("", text.strip(), count=1).strip(_QUOTES))
