"""Which sentences state something. A refusal, a question and a bare reply do not. English phrases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

from steelyard.text._evasions import evades
from steelyard.text._sentences import Sentence, iter_sentences

_T = TypeVar("_T")

_REPLIES = """
yes no yeah yep nope sure ok okay certainly absolutely definitely indeed exactly right correct well oh
hello hi thanks thank you please sorry great good question of course
"""
_REPLY = frozenset(_REPLIES.split())


_POLAR = re.compile(
    r"\A\W{0,20}"
    r"(?:is|are|was|were|am|do|does|did|can|could|may|might|must|should|shall|will|would|has|have|had|need"
    r"|ist|sind|war|waren|hat|haben|kann|können|darf|dürfen|muss|wird|wurde|gibt|est-ce|es|son|tiene|hay|puede)"
    r"(?:n't)?\s(?!many|much\b)",
    re.IGNORECASE,
)
_AFFIRMS = {
    **dict.fromkeys(("yes", "yeah", "yep", "ja", "oui", "sí", "si", "sim", "是", "是的", "نعم"), True),
    **dict.fromkeys(("no", "nope", "nein", "non", "não", "nee", "不", "不是", "لا"), False),
}
_LEANING = """
it he she they we you i this that these those there one some somebody someone nobody none all both not never
is are was were do does did can could may might must should shall will would has have had need be been
cannot can't don't doesn't didn't isn't aren't wasn't weren't won't wouldn't mustn't couldn't shouldn't hasn't
haven't so indeed of course certainly definitely absolutely not
"""
_LEANS = frozenset(_LEANING.split())
_BARE = 1_000
"""Characters of a bare reply at most; "it it it ..." without an end is not one."""


def statements(text: str, question: str = "") -> list[Sentence]:
    """The sentences of a text that state something, in order.

    Args:
        text: Any text; questions, headings, refusals and bare replies are told from statements by phrases, in
            English most of all.
        question: What it answers: a bare "yes" or "no" states something where that asks for one.
    """
    return [one for one in iter_statements(text, question) if one is not None]


def iter_statements(text: str, question: str = "", *, most: int | None = None) -> Iterator[Sentence | None]:
    """`statements`, in steps: None for each step that brings none, so that a long text can be paused in.

    Args:
        text: Any text.
        question: What it answers.
        most: How many sentences are looked at, evenly spread over the text if it has more; None for all.
    """
    polar = is_polar(question)
    found: list[Sentence] = []
    for sentence in iter_sentences(text):
        found.append(sentence)
        yield None
    for sentence in found if most is None else spread(found, most):
        is_one = states(sentence.text) or (polar and affirms(sentence.text) is not None)
        yield sentence if is_one else None


def spread(items: Sequence[_T], most: int) -> list[_T]:
    """The items, or so many of them, evenly spread, if there are more."""
    if len(items) <= most:
        return list(items)
    return [items[at * len(items) // most] for at in range(most)]


def states(sentence: str) -> bool:
    """Whether a sentence states something: a question, a heading, a refusal or a bare reply does not."""
    bare = sentence.rstrip("\"'”’»)*_ ")
    if bare.endswith(("?", "？", ":", "：", "؟")) or evades(sentence):
        return False
    return not _replies(sentence)


def is_polar(question: str) -> bool:
    """Whether a question asks for yes or no."""
    return bool(_POLAR.match(question)) or question.rstrip("？? ").endswith(("吗", "嗎", "か"))


def affirms(sentence: str) -> bool | None:
    """Whether a bare reply says yes or no: "Yes.", "No, it does not."; None for any other sentence."""
    if len(sentence) > _BARE:
        return None
    found = re.findall(r"[\w'’]+", sentence.casefold())
    if not found or (said := _AFFIRMS.get(found[0])) is None:
        return None
    return said if _LEANS.issuperset(word.replace("’", "'") for word in found[1:]) else None


def _replies(sentence: str) -> bool:
    """Whether a sentence is a bare reply ("Yes.", "Of course!"): what it affirms is not in it."""
    if len(sentence) > _BARE:
        return False
    found = re.findall(r"\w+", sentence.casefold())
    return bool(found) and (_REPLY.issuperset(found) or affirms(sentence) is not None)
