"""Which names hold passages, and which texts of a search say that it found none."""

from __future__ import annotations

import re

_PASSAGES = re.compile(
    r"(?:\w{1,40}_)?(?:contexts?|documents?|docs?|passages|chunks|snippets|excerpts|sources|facts|evidence|knowledge"
    r"|results?|rows|records|memories|findings)(?:_str|_text)?",
    re.IGNORECASE,
)

_LONGEST_STATEMENT = 200  # characters; what is longer tells something
_WORD = r"(?:[\w-]{1,30} )"
_HITS = (
    r"(?:results?|documents?|docs?|match(?:es)?|hits?|passages?|information|info|data|records?|entries|rows?"
    r"|articles?|content|contexts?|sources?|chunks?|pages?|papers?|files?|items?|answers?|memor(?:y|ies))\b"
)
# "No information is available for children" tells something of children.
_THERE = r"available(?! (?:for|to|in|on) (?!(?:th[aei]|your)))"
_FOUND = rf"(?: (?:was|were|is|are|ha(?:s|ve) been))? (?:found|returned|retrieved|matched|{_THERE})\b"
_BARE = r"(?![ \t]{0,8}\w)"  # the statement is over; "No data is stored" goes on
_STATEMENTS = (
    rf"(?:no|zero|0) {_WORD}{{0,3}}{_HITS}(?:{_FOUND}|(?<= results) for\b|{_BARE}"
    r"| (?:for|match(?:ed|ing)) (?:this|the|that|your) (?:query|question|request|search|topic)\b)",
    rf"(?:no|zero|0) {_WORD}{{1,4}}(?:(?:was|were|is|are) )?(?:found|returned|matched){_BARE}",
    r"(?:nothing|none)(?: (?:was|were|relevant|similar)){0,2} (?:found|returned|match(?:ed|es))\b",
    r"(?:(?:i|we) )?(?:(?:could|did|can)(?: ?not|n.t)|(?:was |were )?unable to|failed to) (?:find|locate)"
    rf" (?:anything\b|{_WORD}{{0,3}}{_HITS})",
    rf"{_WORD}{{0,5}}not found{_BARE}",
    rf"empty (?:response|results?){_BARE}",
    rf"{_WORD}{{0,5}}(?:came (?:back|up) (?:empty|with nothing)|(?:returned|yielded|gave|produced|had|has)"
    rf" (?:nothing|no {_WORD}{{0,2}}{_HITS}|an empty \w{{1,20}})){_BARE}",
    r"(?:i(?:.m| am) sorry\W{1,3})?i (?:do not|don.t|cannot|can.t) (?:know|help|answer)\b",
    rf"(?:es wurden? )?keine? {_WORD}{{0,2}}(?:ergebnisse?|treffer|dokumente?|informationen)\b",
    rf"(?:es wurde )?nichts {_WORD}?gefunden\b",
    rf"aucune? {_WORD}{{0,2}}(?:r\u00e9sultats?|documents?|informations?)\b",
    rf"{_WORD}{{0,3}}rien {_WORD}?trouv\u00e9\b",
    rf"(?:no (?:se|he|hay|hemos) {_WORD}{{0,2}}(?:encontr\w{{1,8}}|resultados?|nada)|sin resultados)\b",
    rf"(?:nessun {_WORD}?risultato|nenhum {_WORD}?resultado|nada {_WORD}?encontrado)\b",
    rf"(?:geen {_WORD}{{0,2}}resultaten|niets {_WORD}?gevonden)\b",
    # Chinese (not found, searched up, matched), Japanese and Korean (cannot be found, there is no result).
    r"[^\s\u3002\uff0c,]{0,12}[\uff0c, ]{0,2}[\u672a\u6ca1\u6c92]\u6709?\u80fd?"
    r"(?:\u627e\u5230|\u68c0\u7d22\u5230|\u641c\u7d22\u5230|\u67e5\u8be2\u5230|\u67e5\u5230|\u5339\u914d\u5230)",
    r"[^\u3002\n]{0,12}(?:\u6ca1\u6709|\u65e0|\u7121)[^\u3002\n]{0,8}(?:\u7ed3\u679c|\u7d50\u679c)",
    r"[^\u3002\n]{0,30}\u898b\u3064\u304b\u308a\u307e\u305b\u3093",
    r"[^.\n]{0,30}(?:\ucc3e\uc744 \uc218 \uc5c6|\uacb0\uacfc\uac00 \uc5c6)",
)
_NOTHING = re.compile(
    r"(?:(?:sorry|unfortunately|error|note|leider|malheureusement|d\u00e9sol\u00e9|lo siento)\W{1,3})?"
    r"(?:(?:there (?:are|is|were|was)|(?:we )?found) )?"
    rf"(?:{'|'.join(_STATEMENTS)})",
    re.IGNORECASE,
)
_END = re.compile(r"[.!?](?:\s|$)|[\u3002\uff01\n]")
_ADVICE = re.compile(
    r"(?:please|try|suggestions?|consider|check|refine|rephrase|use|make sure|you (?:can|may|might))\b",
    re.IGNORECASE,
)
_BUT = re.compile(r"\b(?:but|however|instead|although)\b", re.IGNORECASE)


def names_passages(key: str) -> bool:
    """Whether applications keep passages under such a name.

    >>> [names_passages(name) for name in ("retrieved_docs", "sql_result", "web_results", "answer")]
    [True, True, True, False]
    """
    return _PASSAGES.fullmatch(key) is not None


def finds_nothing(text: str) -> bool:
    """Whether all that a search says is that it found nothing.

    Only short statements that begin so, and go on with nothing but advice.

    >>> [finds_nothing(text) for text in ("No good documents found for 'lens'.", "No data is shared.")]
    [True, False]
    """
    # What several searches say is joined by blank lines.
    first, *more = text.strip().split("\n\n")
    is_short = len(text) <= _LONGEST_STATEMENT
    return _states(first) and all(
        _states(one) or (is_short and _ADVICE.match(one.strip()) is not None) for one in more
    )


def may_find_nothing(text: str) -> bool:
    """Whether a paragraph begins as one that says nothing was found, and goes on without a number.

    What follows mostly tells the model what to do then.

    >>> [may_find_nothing(f"No documents found. {rest}") for rest in ("Say so.", "The nearest is in 12 km.")]
    [True, False]
    """
    first, stop, rest = text.strip().partition(". ")
    is_short = len(text) <= 2 * _LONGEST_STATEMENT and "\n" not in text.strip()
    return is_short and bool(stop) and _states(f"{first}.") and not any(map(str.isdigit, rest))


def _states(text: str) -> bool:
    told = text.strip("\"'[](){} \t\n").replace("_", " ") if len(text) <= _LONGEST_STATEMENT else ""
    if not _NOTHING.match(told) or _BUT.search(told):
        return False
    rest = _END.split(told, maxsplit=1)[1:]
    return not any(one.strip() and not _ADVICE.match(one.strip()) for one in rest)
