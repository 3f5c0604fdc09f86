"""Texts that a hostile user makes of one piece, again and again, in all scripts; and of pieces that count."""

from __future__ import annotations

PIECES = {
    "Chinese numerals": "三",
    "numerals that count": "三名",
    "one-letter sentences": "A. ",
    "initials": "a. ",
    "marks apart": ". ",
    "bullets": "- x\n",
    "Chinese": "塔建于一九二零年。",
    "hedges": "I do not know, but it is 5. ",
    "one endless hedge": "the context does not say, but ",
    "emoji": "👩\u200d🚀",
    "marks": "e\u0301",
    "Hebrew": "שלום עולם. ",
    "Arabic digits": "٥",
    "digits": "5",
    "grouped digits": "12 345 ",
    "digits and commas": "1,",
    "brackets": "((",
    "JSON lists": "[",
    "JSON objects": '{"a": ',
    "escapes": "\\u0041\\n",
    "quotes": "\"'",
    "commas": "a, ",
    "table": "| a | 1 |\n",
    "tags": "<context>",
    "speakers": "Human: x\n",
    "headings": "Context:\n",
    "assignments": "key='value', ",
    "addresses": "http://a:b@",
    "markup": "**x** _y_ ",
    "fences": "```\n",
    "Korean": "가나다. ",
    "Thai": "ไทย ",
    "Devanagari": "क्षि ",
    "replies": "Yes. ",
    "one reply": "yes ",
    "apostrophes": "don't ",
    "dashes": "- ",
    "points": ".",
    "blank lines": "\n \n",
    "one letter": "x",
    "other words": "w{} ",
    "other sentences": "The gate of town {} is {} feet high. ",
    "other numbers": "{}, ",
    "other names": "Ada{} Quist ",
    "other keys": '"k{}": 1, ',
    "other items": "{}. item of it\n",
    "other denials": "not {}, but {}. ",
    "other days": "On {} May it was {} km. ",
}
"""What comes again and again, by name; `{}` is the number of the piece."""
TELLING = (
    *("Chinese numerals", "one-letter sentences", "one endless hedge", "emoji", "Hebrew", "digits"),
    *("grouped digits", "digits and commas", "brackets", "JSON objects", "quotes", "commas", "table", "tags"),
    *("speakers", "assignments", "replies", "blank lines", "one letter", "other words", "other keys"),
    "other denials",
)
"""The kinds of text that are always tried; all are with the slow tests."""


def repeated(piece: str, length: int) -> str:
    """A text of so many characters, made of one piece."""
    if "{}" not in piece:
        return (piece * (length // len(piece) + 1))[:length]
    parts: list[str] = []
    size = number = 0
    while size < length:
        parts.append(piece.replace("{}", str(number)))
        size += len(parts[-1])
        number += 1
    return "".join(parts)[:length]
