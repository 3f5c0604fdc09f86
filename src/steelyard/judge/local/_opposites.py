"""Words that turn a sentence round: negations and pairs of opposites, English."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from steelyard.judge.local._text import Word, stem

_NOT_ONLY = frozenset({"only", "just", "merely", "simply"})
_REACH = 5
"""Words after a negation that it may reach."""
_TELLING = 3.5
"""Weight from which a word can be what is negated; articles, pronouns and auxiliaries are below it."""

_NEGATIONS = (
    "not no never none nobody nothing neither nor without cannot hardly fail failed fails deny denied denies"
    " refuse refused lack lacks lacked unable"
)
_PAIRS = """
increase decrease|rise fall|more less|more fewer|most least|high low|higher lower|highest lowest
large small|larger smaller|largest smallest|big little|major minor|maximum minimum|early late
earlier later|before after|first last|old new|old young|older younger|oldest youngest|start end|begin end
open close|win lose|won lost|victory defeat|winner loser|pass fail|success failure|successful unsuccessful
accept reject|accept refuse|agree disagree|allow forbid|allow ban|approve reject|approve oppose
support oppose|admit deny|confirm deny|include exclude|always never|all none|everyone nobody|with without
inside outside|above below|over under|up down|left right|north south|east west|northern southern
eastern western|male female|man woman|boy girl|father mother|son daughter|brother sister|husband wife
he she|his her|alive dead|born die|buy sell|bought sold|import export|gain loss|gain lose|profit loss
expand shrink|grow shrink|strengthen weaken|strong weak|hot cold|warm cool|fast slow|easy difficult
easy hard|safe dangerous|legal illegal|possible impossible|likely unlikely|true false|correct incorrect
right wrong|positive negative|good bad|better worse|best worst|rich poor|public private|present absent
arrive depart|arrive leave|enter leave|enter exit|guilty innocent|convict acquit|guilty cleared|hire fire
appoint dismiss|attack defend|love hate|single married|full empty|heavy light|long short|longer shorter
wide narrow|deep shallow|thick thin|same different|similar different
"""


class Negated(NamedTuple):
    """What a sentence says no to."""

    heads: frozenset[str]
    """The first telling word after each negation."""
    reach: frozenset[str]
    """Every telling word that a negation may reach."""


def negated(words: Sequence[Word]) -> Negated:
    """What a sentence says no to: a few words after each negation. "Not only" is not one."""
    heads: set[str] = set()
    reach: set[str] = set()
    for place, word in enumerate(words):
        if word.stem not in _negations():
            continue
        after = words[place + 1 : place + 1 + _REACH]
        if after and after[0].surface.casefold() in _NOT_ONLY:
            continue
        telling = [other.stem for other in after if other.weight >= _TELLING]
        heads.update(telling[:1])
        reach.update(telling)
    return Negated(frozenset(heads), frozenset(reach))


def opposites(stemmed: str) -> frozenset[str]:
    """The stems of the opposites of a stem; empty for most words."""
    return _table().get(stemmed, frozenset())


@cache
def _negations() -> frozenset[str]:
    return frozenset(map(stem, _NEGATIONS.split()))


@cache
def _table() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for pair in _PAIRS.replace("\n", "|").split("|"):
        if pair:
            one, other = map(stem, pair.split())
            table.setdefault(one, set()).add(other)
            table.setdefault(other, set()).add(one)
    return {word: frozenset(others) for word, others in table.items()}
