"""Pairs of words that say the opposite of one another."""

from __future__ import annotations

from functools import cache

from steelyard.judge.local.words import stem

_GROUPS = """
red green blue yellow black white grey gray brown orange purple pink|spring summer autumn winter
"""
"""Words of which one excludes the others."""
TELLING = 3.5
"""Weight from which a word can be what is negated; articles, pronouns and auxiliaries are below it."""
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
cheap expensive|cheaper expensive|cheaper dearer|light dark|brighter darker|louder quieter|slower faster
heavier lighter|weaker stronger|thicker thinner|deeper shallower|wider narrower|cooler warmer|colder hotter
easier harder|poorer richer|nearer farther|common rare|open closed|opened closed
wide narrow|deep shallow|thick thin|same different|similar different
"""


def opposites(stemmed: str) -> frozenset[str]:
    """The stems of the opposites of a stem; empty for most words."""
    return _table().get(stemmed, frozenset())


def excludes(stemmed: str) -> frozenset[str]:
    """The stems of what cannot be where a word is: other colours, other seasons."""
    return _groups().get(stemmed, frozenset())


@cache
def _groups() -> dict[str, frozenset[str]]:
    groups = [frozenset(map(stem, group.split())) for group in _GROUPS.strip().split("|")]
    # Two spellings of one colour do not exclude each other.
    same = {stem("grey"), stem("gray")}
    return {word: group - (same if word in same else {word}) for group in groups for word in group}


@cache
def _table() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for pair in _PAIRS.replace("\n", "|").split("|"):
        if pair:
            one, other = map(stem, pair.split())
            table.setdefault(one, set()).add(other)
            table.setdefault(other, set()).add(one)
    return {word: frozenset(others) for word, others in table.items()}
