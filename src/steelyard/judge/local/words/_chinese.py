"""Numbers in Chinese characters, as Chinese and Japanese write them: 三百二十, 12万."""

from __future__ import annotations

_DIGITS = {"〇": 0, "零": 0, "一": 1, "二": 2, "两": 2, "兩": 2, "三": 3, "四": 4, "五": 5}
_DIGITS |= {"六": 6, "七": 7, "八": 8, "九": 9}
_PLACES = {"十": 10, "百": 100, "千": 1000}
_MYRIADS = {"万": 10_000, "萬": 10_000, "亿": 100_000_000, "億": 100_000_000}
CHARACTERS = "".join([*_DIGITS, *_PLACES, *_MYRIADS])
"""What such numbers are written with."""
COUNTED = (
    "名人个個元円年月日号號点點歳岁匹頭头台臺辆輛本册冊米公層层階楼樓間间"
    "次回件座条條位只隻张張杯瓶块塊秒小时時週周天倍家户戶棟栋把套封枚粒%％"
)
"""What follows a number rather than another character: 三 is a number in 三月, and not in 三明治."""


def chinese_number(text: str) -> int | None:
    """The value of characters that are all of a number; None where they are in no order that makes one."""
    if all(character in _DIGITS for character in text):
        return int("".join(str(_DIGITS[character]) for character in text))
    total = section = digit = 0
    for character in text:
        if character in _DIGITS:
            digit = _DIGITS[character]
        elif character in _PLACES:
            section += (digit or 1) * _PLACES[character]
            digit = 0
        else:
            section += digit
            if not section:
                return None
            total, section, digit = (total + section) * _MYRIADS[character], 0, 0
    return total + section + digit
