"""Negations: words that say that something is not so, in the larger languages, and where they are none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from steelyard.judge.local.words import Word, fold

_NOT_ONLY = frozenset({"only", "just", "merely", "simply"})
# Whole words of each language, since prefixes such as "un" are parts of too many others.
_WORDS = (
    "not no never none nobody nothing neither nor without cannot hardly unable except"
    " fail fails failed deny denies denied refuse refuses refused lack lacks lacked"
    # German, Dutch, French, Spanish, Italian, Portuguese, Swedish, Danish and Norwegian, Polish, Russian.
    " nicht kein keine keinen keinem keiner keines nie niemals niemand nichts ohne weder"
    " niet geen nooit niemand niets zonder|pas jamais rien personne aucun aucune sans"
    " nunca jamás nada nadie ningún ninguna ninguno sin tampoco|non nessuno nessuna niente senza"
    " não ninguém nenhum nenhuma sem|inte ingen inget inga aldrig utan ikke aldri aldrig ingen uten uden"
    " nie żaden żadna nikt nic bez|не нет никогда никто ничего без"
    # Hungarian, Finnish, Turkish, Greek, Hebrew, Hindi, Vietnamese, Indonesian.
    " nem sem nincs ei eivät ilman değil yok|δεν μη μην όχι κανένας χωρίς|לא אין בלי ללא|नहीं मत बिना"
    " không chưa chẳng|tidak bukan tanpa"
    # Arabic, Thai, and what Chinese and Japanese have for it.
    " لا لم لن ليس ليست غير بدون|ไม่|不 没 沒 没有 沒有 未 无 無 非 勿 ない なかった ません ませんでした"
).replace("|", " ")
_AMBIGUOUS = frozenset({"sin", "sans", "non", "pas", "nada", "sem", "nem", "ei"})
"""Negations elsewhere that are something else among English words."""
_ENGLISH = frozenset({"the", "of", "and", "are", "were", "that", "with", "from", "has", "have", "it", "to"})
_QUALIFIES = frozenset({"fail", "failed", "denied", "refused", "personne"})
"""What denies nothing behind an article: "a failed attempt", "une personne"."""
_ARTICLES = frozenset(
    {"a", "an", "the", "his", "her", "its", "their", "this", "une", "la", "cette", "chaque"}
)
# Korean and Turkish put the negation into the verb, which a list of words cannot hold.
_HANGUL = re.compile(r"(?:않|없|못하|아니|아닙)\w*|못|안")
_TURKISH = re.compile(r"\w{2,}(?:m[ae]z(?:l[ae]r)?|m[ıiuü]yor\w*|m[ae]d[ıi](?:l[ae]r)?)")
_TURKISH_LETTERS = frozenset("ığşİĞŞ")


def first_negation(words: Sequence[Word]) -> int | None:
    """The place of the first negation in a clause. "Not only" is not one, nor is the "never" of a title."""
    return next((at for at in range(len(words)) if denies(words[at]) and _is_meant(words, at)), None)


def denies(word: Word) -> bool:
    """Whether a word by itself is a negation."""
    surface = word.surface
    if surface.isascii():
        return surface.casefold() in _table() or surface == "not"
    return fold(surface) in _table() or _HANGUL.fullmatch(surface) is not None or _is_turkish(surface)


def prefixes(words: Sequence[Word], at: int) -> bool:
    """Whether the negation at a place turns round the next word alone: "non-toxic" in English."""
    return words[at].surface.casefold() == "non" and at + 1 < len(words) and _is_english(words)


def _is_meant(words: Sequence[Word], at: int) -> bool:
    """Whether what is a negation by itself is one where it stands."""
    surface = words[at].surface
    lower = surface.casefold()
    after = words[at + 1] if at + 1 < len(words) else None
    # "No 5" is a number, and "not only" says that it is so.
    if after and (after.surface.casefold() in _NOT_ONLY or (lower == "no" and after.surface[0].isdigit())):
        return False
    if lower in _QUALIFIES and at and words[at - 1].surface.casefold() in _ARTICLES:
        return False
    if lower in _AMBIGUOUS and _is_english(words) and not prefixes(words, at):
        return False
    return not _is_named(surface, after, at)


def _is_named(surface: str, after: Word | None, at: int) -> bool:
    """Whether a word is part of a title: capitalised inside of a clause, or before another capital."""
    if not surface[0].isupper() or surface.isupper():
        return False
    titled = after is not None and after.surface[0].isupper()
    return at > 0 or (titled and surface not in ("No", "Not"))


def _is_english(words: Sequence[Word]) -> bool:
    return any(word.surface.casefold() in _ENGLISH for word in words)


def _is_turkish(surface: str) -> bool:
    return not _TURKISH_LETTERS.isdisjoint(surface) and _TURKISH.fullmatch(surface.casefold()) is not None


@cache
def _table() -> frozenset[str]:
    return frozenset(map(fold, _WORDS.split()))
