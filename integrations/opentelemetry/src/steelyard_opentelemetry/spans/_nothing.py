"""A search's statement that it found nothing, which is not a passage.

Passages may begin with the same words ("No data is shared with third parties."), so that only a short text
counts in which nothing else is said.
"""

from __future__ import annotations

import re

_THINGS = (
    r"(?:results?|documents?|docs|passages?|match(?:es)?|records?|rows|hits|articles|pages|entries|chunks"
    r"|memories|information|context|sources|treffer|ergebnisse|résultats?)"
)
_FOUND = (
    r"(?:was |were |is |are |have been |could be )?"
    r"(?:found|returned|retrieved|matched|located|gefunden|trouvés?)\b.{0,120}"
)
_FOR_IT = (
    r"(?:for|matching|about) "
    r"(?:(?:the |your |this )?(?:query|question|search|request|term)\b|['\"“`]).{0,120}"
)
_NOTHING = re.compile(
    r"\W{0,4}(?:(?:sorry|unfortunately)\W{1,3})?(?:"
    r"(?:i |we )?(?:could not|couldn['’]t|did not|didn['’]t|cannot|can['’]t) find any\b.{0,120}"
    r"|(?:there (?:are|were|is|was) )?(?:no|zero|0|keine|aucun) (?:[\w-]{1,20} ){0,3}?"
    rf"{_THINGS}(?: (?:{_FOUND}|available|{_FOR_IT}))?"
    r"|(?:nothing|none)(?: (?:relevant |useful )?(?:was )?found\b.{0,120})?|not found|n/a|null"
    r"|(?:未|没有|沒有)找到.{0,40}"
    r")\W{0,4}",
    re.IGNORECASE,
)


def says_nothing(text: str) -> bool:
    """Whether a search's whole result is that it found nothing."""
    plain = text.strip()
    return plain in ("", "[]", "{}") or _NOTHING.fullmatch(plain) is not None
