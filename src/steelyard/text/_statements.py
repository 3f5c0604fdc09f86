"""Which sentences state something. A refusal, a question and a bare reply do not. English phrases."""

from __future__ import annotations

import re

from steelyard.text._hedges import unhedged
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
    r"|\b(?:i'm sorry|i am sorry|i apologi[sz]e|sorry), (?:but|i)\b"
    r"|^n/?a\W*$|^(?:none|unknown|no answer|no comment)\W*$"
    r"|\b(?:it|that|this) depends(?: on (?:many|various|several|a number of|different)\b[^,.;:]{0,40})?\W*$"
    r"|\bplease (?:ask|consult|contact|refer to|see|check)\b"
    r"|^(?:that|this)(?: is|'s) an? (?:\w+ )?question\W*$"
    # German, French, Spanish, Italian, Portuguese, Dutch, Chinese, Japanese, Arabic.
    r"|\b(?:das |es )?wei(?:ß|ss) ich (?:\w+ )?nicht\b|\bich wei(?:ß|ss) (?:es |das )?(?:\w+ )?nicht\b"
    r"|\bich (?:kann|konnte) [^,.;]{0,40}nicht (?:beantworten|sagen|finden)\b"
    r"|\bkeine (?:angaben|informationen?)\b"
    r"|\bje ne (?:le )?sais pas\b|\bje n'ai pas (?:cette |l'|d')?informations?\b"
    r"|\bje ne peux pas (?:répondre|dire)\b"
    r"|\bno (?:lo )?sé\b|\bno tengo (?:\w+ )?información\b|\bno puedo (?:responder|contestar|decir)\b"
    r"|\bnon (?:lo )?so\b|\bnon ho (?:\w+ )?informazion[ei]\b"
    r"|\bnão (?:o )?sei\b|\bnão tenho (?:\w+ )?informaç"
    r"|\b(?:dat )?weet ik niet\b|\bik weet (?:het|dat) niet\b"
    r"|不知道|不清楚|无法回答|無法回答|没有(?:相关|足够|这方面)?的?信息|わかりません|分かりません"
    r"|لا أعرف|لا أعلم|لا توجد معلومات",
    re.IGNORECASE,
)
_MOST = 2_000
"""Characters of a sentence that are searched: text without an end would hold the interpreter for long."""
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


def statements(text: str, question: str = "") -> list[Sentence]:
    """The sentences of a text that state something, in order.

    Args:
        text: Any text; questions, headings, refusals and bare replies are told from statements by phrases, in
            English most of all.
        question: What it answers: a bare "yes" or "no" states something where that asks for one.
    """
    polar = is_polar(question)
    return [
        sentence
        for sentence in sentences(text)
        if states(sentence.text) or (polar and affirms(sentence.text) is not None)
    ]


def states(sentence: str) -> bool:
    """Whether a sentence states something: a question, a heading, a refusal or a bare reply does not."""
    bare = sentence.rstrip("\"'”’»)*_ ")
    if bare.endswith(("?", "？", ":", "：", "؟")) or evades(sentence):
        return False
    return not _replies(sentence)


def evades(sentence: str) -> bool:
    """Whether a sentence says that there is nothing to say; a statement behind a hedge is something."""
    plain = " ".join(sentence[:_MOST].replace("’", "'").split())
    return bool(_EVASION.search(plain)) and bool(_EVASION.search(unhedged(plain)))


def is_polar(question: str) -> bool:
    """Whether a question asks for yes or no."""
    return bool(_POLAR.match(question)) or question.rstrip("？? ").endswith(("吗", "嗎", "か"))


def affirms(sentence: str) -> bool | None:
    """Whether a bare reply says yes or no: "Yes.", "No, it does not."; None for any other sentence."""
    found = re.findall(r"[\w'’]+", sentence.casefold())
    if not found or (said := _AFFIRMS.get(found[0])) is None:
        return None
    return said if _LEANS.issuperset(word.replace("’", "'") for word in found[1:]) else None


def _replies(sentence: str) -> bool:
    """Whether a sentence is a bare reply ("Yes.", "Of course!"): what it affirms is not in it."""
    found = re.findall(r"\w+", sentence.casefold())
    return bool(found) and (_REPLY.issuperset(found) or affirms(sentence) is not None)
