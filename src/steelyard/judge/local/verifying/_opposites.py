"""Words that turn a sentence round: negations, and pairs of opposites."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from steelyard.judge.local.words import Word, stem

_NOT_ONLY = frozenset({"only", "just", "merely", "simply"})
TELLING = 3.5
"""Weight from which a word can be what is negated; articles, pronouns and auxiliaries are below it."""

_NEGATIONS = (
    "not no never none nobody nothing neither nor without cannot hardly fail failed fails deny denied denies"
    " refuse refused lack lacks lacked unable except"
    # German, Dutch, French, Spanish, Italian, Portuguese, Swedish, Danish and Norwegian, Polish, Russian.
    " nicht kein keine keinen keinem keiner keines nie niemals niemand nichts ohne weder"
    " niet geen nooit niemand niets zonder|pas jamais rien personne aucun aucune sans"
    " nunca jamás nada nadie ningún ninguna ninguno sin tampoco|non mai nessuno nessuna niente senza"
    " não ninguém nenhum nenhuma sem|inte ingen inget inga aldrig utan ikke aldri aldrig ingen uten uden"
    " nie żaden żadna nikt nic bez|не нет никогда никто ничего без"
    # Arabic, and the characters of Chinese and Japanese.
    " لا لم لن ليس ليست غير بدون|不 没 沒 未 无 無 非 勿"
).replace("|", " ")
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


def negates(words: Sequence[Word]) -> bool:
    """Whether some words hold a negation. "Not only" is not one."""
    for place, word in enumerate(words):
        if word.stem in _negations():
            after = words[place + 1 : place + 2]
            if not (after and after[0].surface.casefold() in _NOT_ONLY):
                return True
    return False


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
