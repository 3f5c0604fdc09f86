"""Lines of texts as they are compared: what a model wrote into a list, and what later stands in a prompt."""

from __future__ import annotations

import re
from functools import lru_cache

_LEAD = re.compile(r"(?:\d{1,3}\s{0,3}[.):]|[-*\N{BULLET}])\s{0,9}")
_SPOKEN = re.compile(
    r"(?im)^\W{0,9}(human|user|customer|you|ai|assistant|bot|chatbot|model|system)"
    r"(?:[ \t]?\(\w{1,20}\))?[ \t]?[:\uff1a]"
)
_MODELS = frozenset(("ai", "assistant", "bot", "chatbot", "model"))
_MOST_KEPT = 20_000
"""Characters of a text whose plain form is kept for a while."""
_QUOTES = " \t\"'`*"


def plain(text: str) -> str:
    """A text in lower case, with one blank wherever it has white space."""
    return _plain(text) if len(text) <= _MOST_KEPT else " ".join(text.casefold().split())


@lru_cache(maxsize=64)
def _plain(text: str) -> str:
    # The same passages and prompts are compared a dozen times while a Record is built.
    return " ".join(text.casefold().split())


def plain_line(text: str) -> str:
    """A line without its number, its bullet and its quotes, as `plain` writes it."""
    return plain(_LEAD.sub("", text.strip(), count=1).strip(_QUOTES))


def names_speaker(line: str) -> bool:
    """Whether a line says who speaks, and nothing else."""
    found = _SPOKEN.match(line)
    return found is not None and not line[found.end() :].strip()


def names_model(label: str) -> bool:
    """Whether a label says that a model speaks."""
    return label.strip().casefold() in _MODELS


def holds_replies(text: str) -> bool:
    """Whether what a model said is written down in a text, as of an earlier exchange."""
    return any(found[1].casefold() in _MODELS for found in _SPOKEN.finditer(text))


def is_history(text: str) -> bool:
    r"""Whether a text is a conversation that was written down: each of its parts says who speaks.

    >>> [is_history(text) for text in ("Human: Hi\nAI: Hello!", "User: a person who uses a service.")]
    [True, False]
    """
    speakers = [match[0].strip(" \t:*#-\uff1a").casefold() for match in _SPOKEN.finditer(text[:20_000])]
    return len(set(speakers)) > 1 and _SPOKEN.match(text.lstrip()) is not None
