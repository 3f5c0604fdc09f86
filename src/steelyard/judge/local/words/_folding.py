"""What does not tell words apart: case, width, accents, optional vowel signs, invisible characters."""

from __future__ import annotations

import re
import unicodedata

# Zero-width and bidirectional controls and the soft hyphen: invisible, so they must not tell words apart.
INVISIBLE = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
"""Ranges of invisible characters, for a class of a pattern."""
MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0981-\u0983\u09bc-\u09d7\u0a01-\u0a51\u0a81-\u0acd\u0b01-\u0b57"
    "\u0b82-\u0bcd\u0c00-\u0c56\u0c81-\u0cd6\u0d00-\u0d57\u0d81-\u0ddf"
)
"""Ranges of marks that belong to the letter before them; Python counts none of them as part of a word."""

_VANISH = re.compile(f"[{INVISIBLE}]")
_CLITIC = re.compile(r"['’](?:s|d|m|ll|re|ve)?$")
_ALIKE = str.maketrans({"ı": "i", "ـ": None, "ى": "ي", "ة": "ه"})
"""Letters that case or spelling does not keep apart: Turkish I, and Arabic endings."""


def visible(surface: str) -> str:
    """A word without the characters that cannot be seen."""
    return _VANISH.sub("", surface)


def fold(surface: str) -> str:
    """What a word is looked up by; accents fall, and with them the vowel signs of Arabic and Hebrew."""
    text = unicodedata.normalize("NFKC", surface).casefold()
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFD", text) if not _falls(c)).translate(_ALIKE)
        text = unicodedata.normalize("NFC", text)
    return _CLITIC.sub("", text.replace("’", "'").replace(".", ""))


def _falls(character: str) -> bool:
    """Whether a character is an accent; the signs of Indic and Japanese syllables are part of the letter."""
    return unicodedata.combining(character) != 0 and not "\u0900" <= character <= "\u30ff"
