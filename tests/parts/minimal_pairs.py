"""Texts with a claim that follows and a twin in which one thing was changed, any number of them.

The sentences stand in `minimal_pairs.txt`; names, places, numbers and things are drawn for each pair, and the
sentence that decides stands among others. No rule of the local judge was written for a pair of these, so that
they can say which of its rules pay; the last kinds were added because it fails at them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Pair(NamedTuple):
    """One text and two claims about it."""

    kind: str
    text: str
    true: str
    false: str


_PEOPLE = [
    "Nora Weiss",
    "Ivan Petrov",
    "Lucia Ferrante",
    "Amir Haddad",
    "Greta Lindqvist",
    "Tom Okafor",
    "Mei Tanaka",
    "Paul Drummond",
    "Irene Castell",
    "Samuel Boateng",
    "Olga Brandt",
    "Hugh Carmody",
]
_PLACES = [
    "Bristol",
    "Odense",
    "Tampere",
    "Lyon",
    "Krakow",
    "Valencia",
    "Denver",
    "Nairobi",
    "Osaka",
    "Graz",
    "Leipzig",
    "Halifax",
]
_THINGS = [
    "lantern",
    "gearbox",
    "turbine",
    "carpet",
    "telescope",
    "kettle",
    "ladder",
    "printer",
    "compass",
    "bicycle",
    "pump",
    "drone",
    "mattress",
    "violin",
]
_FIRMS = [
    "Halden Works",
    "Norrix",
    "Belmont Foods",
    "Castor Energy",
    "Tidewater",
    "Quillon",
    "Marlow Press",
    "Vantico",
]
_MONTHS = ["January", "March", "April", "June", "July", "September", "October", "December"]


def read() -> list[tuple[str, str, str, str]]:
    """The kinds and sentences of the file."""
    lines = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
    found = []
    for line in lines:
        if not line.startswith("#"):
            kind, rest = line.split(" | ", 1)
            says, true, false = rest.rsplit(" | ", 2)
            found.append((kind, says.removesuffix(" |") + " |" * says.endswith(" |"), true, false))
    return found


def minimal_pairs(rounds: int, *, seed: int = 1) -> Iterator[Pair]:
    """Each sentence of the file so many times, with other words each time and other sentences around it."""
    chance = random.Random(seed)
    every = read()
    plain = [says for kind, says, _, _ in every if kind not in ("table", "list")]
    for _ in range(rounds):
        for kind, says, true, false in every:
            drawn = _drawn(chance)
            beside = [one.format(**_drawn(chance)) for one in chance.sample(plain, 4) if one != says]
            around = [one for one in beside if not _mixed_up(one, drawn, says)]
            place = chance.randint(0, len(around))
            text = says.replace("\\n", "\n").format(**drawn)
            apart = "\n\n" if "\n" in text else " "
            before, behind = " ".join(around[:place]), " ".join(around[place:])
            whole = apart.join(part for part in (before, text, behind) if part)
            yield Pair(kind, whole, true.format(**drawn), false.format(**drawn))


def _drawn(chance: random.Random) -> dict[str, str]:
    a, b = chance.sample(_PEOPLE, 2)
    p, q = chance.sample(_PLACES, 2)
    t, u = chance.sample(_THINGS, 2)
    o, r = chance.sample(_FIRMS, 2)
    n, m = chance.sample(range(11, 99), 2)
    scale = chance.choice((1, 1, 10, 1000))
    y, z = sorted(chance.sample(range(1890, 2021), 2))
    month, other = chance.sample(_MONTHS, 2)
    d, e = f"{chance.randint(3, 28)} {month} {y}", f"{chance.randint(3, 28)} {other} {y}"
    names = {"a": a, "b": b, "p": p, "q": q, "t": t, "u": u, "o": o, "r": r}
    return {**names, "n": f"{n * scale:,}", "m": f"{m * scale:,}", "y": str(y), "z": str(z), "d": d, "e": e}


def _mixed_up(beside: str, drawn: dict[str, str], says: str) -> bool:
    """Whether a sentence beside has words of the decisive one, and might make the changed claim true."""
    return any(word in beside for key, word in drawn.items() if f"{{{key}}}" in says and len(word) > 3)
