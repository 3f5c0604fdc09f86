"""Numbers in Chinese characters, as Chinese and Japanese write them: 三百二十, 12万."""

from __future__ import annotations

from unicodedata import numeric

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
