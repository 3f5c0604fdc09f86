"""One word as it is compared, and where it stands."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["word", "number", "name"]


class Word(NamedTuple):
    """One word, the same object wherever it is written the same way."""

    stem: str
    """What it is compared by: words with the same stem count as the same word."""
    surface: str
    """The word as it is written, without invisible characters."""
    weight: float
    """How much it tells: inverse sentence frequency in English."""
    kind: Kind
    """Whether it is a number or (part of) a name; both must be found, where a word may be paraphrased."""
    raw: str = ""
    """The digits of a quantity, whose stem is what it measures."""
    opens: bool = False
    """Whether a quantity, a fraction or a date may begin with it."""

    def __repr__(self) -> str:
        """Not what it says: words in a row are content."""
        return f"<{self.kind} of {len(self.surface)} characters>"


Located = tuple[Word, int, int]
"""A word, its first character in the text and one past its last."""
