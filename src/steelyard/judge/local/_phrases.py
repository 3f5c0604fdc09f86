"""Phrases with which an answer evades, English."""

from __future__ import annotations

import re

__all__ = ["evades", "replies"]

_EVASION = re.compile(
    r"\b(?:i|we) (?:do not|don't|cannot|can't|could not|couldn't)"
    r" (?:know|answer|say|tell|help|find|determine|provide|assist)\b"
    r"|\b(?:i am|i'm|we are|we're) (?:not (?:sure|certain|able|aware)|unable|unaware)\b"
    r"|\b(?:it is|it's|is|are|remains?) (?:unclear|unknown|not (?:clear|known))\b"
    r"|\bnot possible to (?:say|tell|determine|answer)\b"
    r"|\bno (?:relevant |specific |sufficient )?(?:information|details?|mention|answer|data)"
    r" (?:about|on|of|regarding|in|is|was|are|available|provided|given|to)\b"
    r"|\b(?:not enough|insufficient|lack(?:s|ing)?(?: the| any)?) (?:information|context|details?|data)\b"
    r"|\b(?:does|do|did) not (?:provide|contain|mention|specify|include|state|say|give|explain|have)\b"
    r"|\b(?:doesn't|don't|didn't) (?:provide|contain|mention|specify|include|state|say|give|explain|have)\b"
    r"|\b(?:not|isn't|wasn't|aren't)"
    r" (?:mentioned|specified|stated|provided|given|available|included|found) (?:in|by)\b"
    r"|\bcan(?:not|'t| not) be (?:answered|determined|found|inferred)\b"
    r"|\bas an? (?:ai|language model)\b"
    r"|\b(?:i'm sorry|i am sorry|i apologi[sz]e|sorry), (?:but|i)\b",
    re.IGNORECASE,
)


def evades(sentence: str) -> bool:
    """Whether a sentence says that there is nothing to say."""
    return bool(_EVASION.search(sentence.replace("’", "'")))


_REPLIES = """
yes no yeah yep nope sure ok okay certainly absolutely definitely indeed exactly right correct well oh
hello hi thanks thank you please sorry great good question of course
"""
_REPLY = frozenset(_REPLIES.split())


def replies(sentence: str) -> bool:
    """Whether a sentence is a bare reply ("Yes.", "Of course!"): what it affirms is not in it."""
    found = re.findall(r"\w+", sentence.casefold())
    return bool(found) and _REPLY.issuperset(found)
