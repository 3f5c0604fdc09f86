"""Passages of a small world, and which of some are found in prompts."""

from __future__ import annotations

from steelyard.recording.provenance import find_passages

BALANCE = (
    'A steelyard is a balance with "unequal" arms.\nIts user\'s counterweight slides along the longer arm '
    "until the beam lies level, and the mark under it gives the weight in caf\u00e9 scales & markets."
)


PRESS = (
    "A printing press puts ink on paper through <b>pressure</b>.\tMovable type came to Mainz around 1450; "
    'the "Gutenberg" shop sold its first books by subscription, long before they were bound.'
)


KILN = (
    "A kiln is an oven that reaches the heat at which clay hardens for good. Potters stack the ware with "
    "care, close the door with bricks, and let the fire burn for two days and one night."
)


TIDE = (
    "Tides follow the moon, which is why high water comes about fifty minutes later every day. Harbour "
    "masters printed tables of them long before anybody could say what pulled the sea."
)


ALL = [BALANCE, PRESS, KILN, TIDE]


def found(passages: list[str], *prompts: str, question: str = "") -> list[bool | None]:
    return [sighting.found for sighting in find_passages(passages, prompts, question=question)]
