"""Digits as values, however a country groups them (1,250,000, 1.250.000), and in Chinese (三百二十)."""

from __future__ import annotations

import re
import unicodedata
from unicodedata import numeric

_GROUP = "\u00a0\u202f\u2009'’"
"""What groups digits and never separates numbers: spaces that do not break, and the Swiss apostrophe."""
GROUPED = rf"\d{{1,3}}(?:[{_GROUP}]\d{{3}})+(?!\d)(?:[.,]\d+)?|\d{{1,3}}(?: \d{{3}}){{2,}}(?!\d)(?:[.,]\d+)?"
"""Pattern of a number in groups; with plain spaces from two groups on, for "2 500" may be two numbers."""
GROUPED_BY_SPACES = r"\d{1,3}(?: \d{3})+(?!\d)(?:,\d+)?"
"""Pattern of a number in groups where the comma is the decimal mark."""

_UNSURE = re.compile(r"\d[., ]\d{3}(?!\d)")
_ENGLISH = re.compile(r"\b(?:the|and|are|were|with|from|that|this|their|has|been)\b", re.IGNORECASE)
_OTHERS = re.compile(
    r"\b(?:der|das|und|ist|wurde|wurden|mit|ein|eine|für|le|les|est|une|dans|el|los|las|del|una|por|il|gli|della"
    r"|sono|uma|não|het|een|voor|bir|için|och|för|og|jest|się)\b|[à-öø-ÿāăąćčďđęěğıłńňőœřśşšťůűźżžа-яё]",
    re.IGNORECASE,
)
_INDIAN = re.compile(r"\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d+)?")
_BY_COMMAS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_BY_DOTS = re.compile(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?")
_DECIMAL_COMMA = re.compile(r"\d+,\d+")
_DECIMAL = re.compile(r"\d+\.\d+")


def has_decimal_comma(text: str) -> bool:
    """Whether "1.250" and "12 500" are thousands in a sentence, as most of Europe writes them.

    Told from two words or letters that English does not have, and none of its commonest ones.
    """
    if not _UNSURE.search(text) or _ENGLISH.search(text):
        return False
    return len({found.casefold() for found in _OTHERS.findall(text)}) > 1


def figure(surface: str, *, comma: bool = False) -> str:
    """A number as it is compared: `1250000`, `2.5`; what is not one number stays as it is (`3.11.4`)."""
    if surface.isascii() and surface.isdigit():
        return surface.lstrip("0") or "0"
    text = "".join(str(unicodedata.digit(c)) if c.isdigit() else c for c in surface)
    text = re.sub(rf"[{_GROUP} ]", "", text.replace("٫", ".").replace("٬", ","))
    if "," in text or "." in text:
        text = _ungrouped(text, comma)
    return re.sub(r"^0+(?=\d)", "", text)


def _ungrouped(text: str, comma: bool) -> str:
    by_dots = _BY_DOTS.fullmatch(text) is not None and (comma or text.count(".") > 1 or "," in text)
    by_commas = _INDIAN.fullmatch(text) is not None or _BY_COMMAS.fullmatch(text) is not None
    if by_dots and not text.startswith("0"):
        text = text.replace(".", "").replace(",", ".")
    elif by_commas and not (comma and text.count(",") == 1 and "." not in text):
        text = text.replace(",", "")
    elif _DECIMAL_COMMA.fullmatch(text):
        text = text.replace(",", ".")
    return text.rstrip("0").rstrip(".") if _DECIMAL.fullmatch(text) else text


CHARACTERS = "〇零一二两兩三四五六七八九十百千万萬亿億"
"""What such numbers are written with."""
COUNTED = (
    "名人个個元円年月日号號点點歳岁匹頭头台臺辆輛本册冊米公层層階楼樓間间"
    "次回件座条條位只隻张張杯瓶块塊秒小时時週周天倍家户戶棟栋把套封枚粒%％"
)
"""What follows a number rather than another character: 三 is a number in 三月, and not in 三明治."""


def chinese_number(text: str) -> int | None:
    """The value of characters that are all of a number; None if they are in no order that makes one."""
    # Unicode gives no value to the simplified two.
    values = [int(numeric(character, 2)) for character in text]
    if max(values) < 10:
        return int("".join(map(str, values)))
    total = section = digit = 0
    for value in values:
        if value < 10:
            digit = value
        elif value < 10_000:
            section += (digit or 1) * value
            digit = 0
        else:
            section += digit
            if not section:
                return None
            total, section, digit = (total + section) * value, 0, 0
    return total + section + digit
