"""What was seen of a passage, and how much is read to see it."""

from __future__ import annotations

from dataclasses import dataclass

MOST_PROMPT = 4_000_000
"""Characters of all prompts together that are read."""
MOST_PASSAGES = 4_000_000
"""Characters of all passages together that are looked for; later passages are not decided."""
MOST_PLACES = 64
"""So many places where a text may begin are tried; hostile texts have any number of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PassageMatch:
    """What was seen of one passage in the prompts."""

    found: bool | None
    """Whether it was there; None where that cannot be told (empty, one word, the question itself, beyond
    the bounds)."""
    seen: float
    """The share of its words that stand in the prompts, from 0 to 1, wherever they came from."""
    position: int | None = None
    """The word of the prompts, counted from 0, at which it begins; None where it was not found."""


# Said of texts without evidence either way, so that nobody counts them as missing.
UNDECIDED = PassageMatch(found=None, seen=0.0)
