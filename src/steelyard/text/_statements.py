"""Which sentences state something. A refusal, a question and a bare reply do not. English phrases."""

from __future__ import annotations

import re

from steelyard.text._sentences import Sentence, sentences

# So many words at most: without a bound a text of nothing but "the" would take minutes.
_SOURCE = (
    r"(?:the |these |those |this |that |any |your |provided |given |retrieved |available |supplied ){0,4}"
)
_MATERIAL = r"(?:contexts?|documents?|passages?|sources?|texts?|information|materials?|articles?|excerpts?)"
# What a document "does not mention" is an evasion only where it is the one at hand: "the treaty does not
# mention slavery" states something.
_EVASION = re.compile(
    r"\b(?:i|we) (?:do not|don't|cannot|can't|could not|couldn't)"
    r" (?:know|answer|say|tell|help|find|determine|provide|assist)\b"
    r"|\b(?:i am|i'm|we are|we're) (?:not (?:sure|certain|able|aware)|unable|unaware)\b"
    r"|^(?:it is|it's) (?:unclear|unknown|not (?:clear|known|possible to (?:say|tell|determine|answer)))\b"
    r"|\b(?:there is|there's|i have|i found|contains?|provides?) no"
    r" (?:relevant |specific |sufficient )?(?:information|details?|mention|answer|data)\b"
    r"|\b(?:not enough|insufficient) (?:information|context|details?|data)\b"
    rf"|\b{_SOURCE}{_MATERIAL}(?: (?:above|provided|given))? (?:does not|do not|did not|doesn't|don't|didn't)"
    r" (?:provide|contain|mention|specify|include|state|say|give|explain|have|answer)\b"
    r"|\b(?:not|isn't|wasn't|aren't)"
    r" (?:mentioned|specified|stated|provided|given|available|included|found|answered) (?:in|by) "
    rf"{_SOURCE}{_MATERIAL}\b"
    r"|\b(?:question|this|it) can(?:not|'t| not) be (?:answered|determined|found|inferred)\b"
    r"|\bas an? (?:ai|language model)\b"
    r"|\b(?:i'm sorry|i am sorry|i apologi[sz]e|sorry), (?:but|i)\b",
    re.IGNORECASE,
)
_REPLIES = """
yes no yeah yep nope sure ok okay certainly absolutely definitely indeed exactly right correct well oh
hello hi thanks thank you please sorry great good question of course
"""
_REPLY = frozenset(_REPLIES.split())


def statements(text: str) -> list[Sentence]:
    """The sentences of a text that state something, in order.

    Args:
        text: Any text; questions, headings, refusals and bare replies are told from statements in English.
    """
    return [sentence for sentence in sentences(text) if states(sentence.text)]


def states(sentence: str) -> bool:
    """Whether a sentence states something: a question, a heading, a refusal or a bare reply does not."""
    bare = sentence.rstrip("\"'”’»)*_ ")
    if bare.endswith(("?", "？", ":", "：", "؟")) or evades(sentence):
        return False
    return not _replies(sentence)


def evades(sentence: str) -> bool:
    """Whether a sentence says that there is nothing to say."""
    return bool(_EVASION.search(" ".join(sentence.replace("’", "'").split())))


def _replies(sentence: str) -> bool:
    """Whether a sentence is a bare reply ("Yes.", "Of course!"): what it affirms is not in it."""
    found = re.findall(r"\w+", sentence.casefold())
    return bool(found) and _REPLY.issuperset(found)
