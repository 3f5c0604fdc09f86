"""Which sentences state something. A refusal, a question and a bare reply do not. English phrases.

"While the context does not give the date, the tower was built in 1920." invents a date behind a hedge. So a
sentence is looked at clause by clause, and evades only if no clause of it states anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

from steelyard.text._sentences import Sentence, iter_sentences

_TEXTS = (
    r"(?:given |provided |retrieved )?"
    r"(?:text|context|passage|document|source|article|material|table|list|information)s?"
)
# So many characters at most: without a bound a long text without a comma would be searched again and again.
_HEDGE = re.compile(
    r"\A\W{0,3}(?:"
    r"as far as (?:i|we) (?:can tell|can see|can judge|know|understand|remember)"
    r"|to (?:my|our|the best of my|the best of our) knowledge"
    r"|if (?:i|we) (?:read|understand|understood|remember|recall|see|am reading)\b[^,.;]{0,40}"
    r"|unless (?:i|we) (?:am|are|'m) (?:mistaken|wrong)"
    r"|(?:i|we)(?:'m| am| are)? [^,.;]{0,60}[,;] (?:but|however|though|yet)"
    r"|it (?:seems|appears|looks)(?: to me)?(?: that| as if| like)?"
    r"|(?:i|we) (?:think|believe|guess|suppose|assume|understand)(?: that)?"
    r"|in my (?:opinion|view|understanding)|apparently|presumably|probably"
    rf"|(?:according to|based on|going by|judging by) (?:the |these |this )?{_TEXTS}"
    rf"|(?:the |these |this ){_TEXTS} (?:says?|states?|mentions?|shows?|indicates?) that"
    r"|soweit ich (?:weiß|sehe|sehen kann)|meines wissens|ich (?:glaube|denke|meine)(?:, dass)?"
    r"|(?:autant|à ce) que je (?:sache|sais)|je (?:crois|pense) que|il semble que"
    r"|que yo sepa|creo que|pienso que|parece que"
    r")[,:]?\s+",
    re.IGNORECASE,
)
_REPLY = re.compile(
    r"\A\W{0,3}(?:"
    # "Yes Bank is a bank" begins with a name.
    r"(?:yes|yeah|yep|yea|yup|oh|wow|ok|okay|ja|oui|sí|sim)"
    r"(?:\s*[,!.;:–-]+\s+(?:(?:and|but)\s+)?|\s+(?-i:(?=[a-zà-ÿ])))"
    r"|(?:well|sure|right|true|great|hi|hello|hey|thanks|thank you|sorry|(?:good|great|nice) question"
    r"|no|nope|nein|non"
    r"|of course|certainly|absolutely|definitely|indeed|exactly|actually|in fact|in short|in summary|overall"
    r"|to sum up|in addition|additionally|furthermore|moreover|besides|also|finally|however|therefore|thus"
    r"|consequently|as a result|similarly|likewise|for example|for instance|interestingly|notably|importantly"
    r"|generally|basically|essentially|specifically|in other words|that said|außerdem|zudem|ferner|übrigens"
    r"|de plus|en outre|ademas|además)\s*[,!:]\s+"
    r"|(?:please )?note that\s+"
    r"|(?:it is|it's|it 's) (?:also )?(?:interesting|funny|important|worth|notable|true|clear|amazing|crazy"
    r"|fascinating)(?: (?:to (?:note|know|say|mention|add)|noting|mentioning|knowing))? that\s+"
    r"|i(?:'ve| have) (?:also )?(?:heard|read) (?:that )?"
    r")",
    re.IGNORECASE,
)
_INTRODUCTION = re.compile(r"\A([^:.!?\n]{12,240}):\s+(?=\S+\s+\S+\s+\S)")
_ABOUT_SAYING = re.compile(
    r"\b(?:say|says|said|saying|answer|text|passages?|contexts?|documents?|sources?|summary|words|briefly|full)\b",
    re.IGNORECASE,
)
_CONTENT = re.compile(r"\d|\s[A-Z]\w")


def unhedged(sentence: str) -> str:
    """A sentence without the opening that hedges, replies or leads over; the sentence itself without one.

    "Yes, ...", "In addition, ..." and "It is worth noting that ..." say nothing of what follows. Openings are
    told in English, German, French and Spanish. What goes before a colon is taken for one only if it speaks
    of saying something and holds no name or number.
    """
    for _ in range(3):
        match = _HEDGE.match(sentence) or _REPLY.match(sentence) or _introduction(sentence)
        if match is None or len(sentence) - match.end() < 3:
            return sentence
        sentence = sentence[match.end() :]
    return sentence


def _introduction(sentence: str) -> re.Match[str] | None:
    match = _INTRODUCTION.match(sentence)
    if match is None or _CONTENT.search(match[1]) or not _ABOUT_SAYING.search(match[1]):
        return None
    return match


# So many words at most: without a bound a text of nothing but "the" would take minutes.
_SOURCE = (
    r"(?:the |these |those |this |that |any |your |provided |given |retrieved |available |supplied ){0,4}"
)
_MATERIAL = r"(?:contexts?|documents?|passages?|sources?|texts?|information|materials?|articles?|excerpts?)"
# What a document "does not mention" is an evasion only where it is the one at hand: "the treaty does not
# mention slavery" states something.
_EVASION = re.compile(
    r"\b(?:i|we) (?:do not|don't) have (?:\w+ ){0,3}"
    r"(?:information|details?|data|context|access|answer|knowledge)\b"
    r"|\b(?:i|we) (?:do not|don't|cannot|can't|could not|couldn't)"
    r" (?:know|answer|say|tell|help|find|determine|provide|assist)\b"
    r"|\b(?:i am|i'm|we are|we're) (?:not (?:sure|certain|able|aware)|unable|unaware)\b"
    r"|^(?:it is|it's) (?:unclear|unknown|not (?:clear|known|possible to (?:say|tell|determine|answer)))\b"
    r"|\b(?:there is|there's|i have|i found|contains?|provides?) no"
    r" (?:relevant |specific |sufficient )?(?:information|details?|mention|answer|data)\b"
    r"|\b(?:not enough|insufficient) (?:information|context|details?|data)\b"
    rf"|\b{_SOURCE}{_MATERIAL}(?: (?:above|provided|given))? (?:does not|do not|did not|doesn't|don't|didn't)"
    r" (?:\w+ly )?(?:provide|contain|mention|specify|include|state|say|give|explain|have|answer|cover|discuss"
    r"|address|tell|indicate|list|describe|reveal|show|note|confirm|clarify|disclose|record)\b"
    rf"|\b{_SOURCE}{_MATERIAL} (?:is|are|was|were) (?:silent|unclear|vague)\b"
    rf"|\bwithout (?:being |any )?(?:mention|mentioned|support|information|specified|stated|given)\b"
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

_TURNS = (
    "but|however|although|though|even though|while|whereas|yet|nevertheless|nonetheless|still|instead"
    "|aber|jedoch|obwohl|doch|mais|cependant|pourtant|bien que|pero|aunque|sin embargo|mas|porém|ma|però|maar"
)
"""What sets a statement against an evasion in the same sentence."""
_OPENS = re.compile(
    rf"\W*(?:(?:and )?(?:{_TURNS}|even if|despite|whilst|since|because|if)\b|虽然|雖然|尽管)", re.IGNORECASE
)
_CUT = re.compile(
    rf"(?P<turn>[;–—()；:：]|--|(?<=\s)-(?=\s)|\b(?:even though|{_TURNS})\b|但是|但|不过|不過|しかし|ですが)"
    r"|[,，、،](?!\d)|\b(?:because|denn|parce que|porque)\b",
    re.IGNORECASE,
)
"""Where clauses end; a contrast, a dash or a bracket makes the next one count even without a verb we know."""
_LIKELY = re.compile(
    r"\W*(?:perhaps|maybe|probably|possibly|likely|presumably|apparently|it (?:is|was) (?:likely|known))\b",
    re.IGNORECASE,
)
_PASSED_OVER = re.compile(
    r"\W*(?:(?:and|or|so|as|since|because|if|when|that|then|therefore|thus|but)\s+)*"
    # Who answers, who is advised, and what was given to read: not what the answer is about.
    rf"(?:(?:i|we|you)\b|let me\b|(?:please|feel free|sorry|unfortunately|regrettably|apologies)\b"
    rf"|{_SOURCE}{_MATERIAL}\b"
    r"|(?:it|they|this|that|these|which) (?:(?:only|just|merely) )?"
    r"(?:do not|does not|did not|don't|doesn't|didn't|cannot|can't"
    r"|(?:would|might|may|could) be (?:best|helpful|better)"
    r"|(?:is|are|was|were) not (?:\w+ )?(?:clear|known|mentioned|specified|stated|given|provided|available))"
    r"|it (?:is|'s) (?:best|recommended|advisable|possible|hard|difficult|impossible|not)\b)",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"\b(?:is|are|was|were|has|had|have|will|would|became|began|stands|lies|built|made|found|took|gave|won"
    r"|ist|sind|war|waren|wurde|wurden|hat|hatte|est|sont|était|fut|es|son|era|fue|fueron|è|sono|são|foi|werd"
    r"|\w{2,}ed)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")
_LEAST = 3
"""Words of a clause that can state something."""


def evades(sentence: str) -> bool:
    """Whether a sentence says that there is nothing to say; a statement behind a hedge is something."""
    return not asserted(sentence)


def asserted(sentence: str) -> str:
    """What a sentence states: without hedges before it and without clauses that evade; empty if it evades."""
    plain = sentence[:_MOST].replace("’", "'")
    if not _evasive(plain):
        return unhedged(sentence)
    left = unhedged(plain)
    hedge = plain[: len(plain) - len(left)].rstrip()
    stating = list(_stating(left, after=bool(hedge) and hedge[-1] not in ":："))
    rest = sentence[_MOST:].strip()
    return ", ".join([*([left] if stating and not _evasive(left) else stating), *([rest] if rest else [])])


def _evasive(text: str) -> bool:
    return bool(_EVASION.search(" ".join(text.split())))


def _stating(sentence: str, *, after: bool) -> Iterator[str]:
    """The clauses of a sentence that state something; `after` a hedge that was cut off, all that is left."""
    contrasted = after
    opened = bool(_OPENS.match(sentence))
    start = 0
    for match in [*_CUT.finditer(sentence), None]:
        clause = sentence[start : match.start() if match else len(sentence)].strip()
        if _states(clause, sure=contrasted or bool(_LIKELY.match(clause))):
            yield clause
        if match is None:
            return
        # "While the text does not say, ..." makes what follows the main clause.
        turned = bool(match["turn"]) and match["turn"] not in ":："
        contrasted = turned or (opened and bool(clause))
        opened = opened and not clause
        start = match.end()


def _states(clause: str, *, sure: bool) -> bool:
    plain = " ".join(clause.split())
    words = _WORD.findall(plain)
    if not words or _PASSED_OVER.match(plain) or _EVASION.search(plain):
        return False
    if len(words) < _LEAST:
        return sure and any(map(str.isdigit, plain))
    return sure or bool(_VERB.search(plain))


_T = TypeVar("_T")

_REPLIES = """
yes no yeah yep nope sure ok okay certainly absolutely definitely indeed exactly right correct well oh
hello hi thanks thank you please sorry great good question of course
"""
_BARE_REPLY = frozenset(_REPLIES.split())


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
    return bool(found) and (_BARE_REPLY.issuperset(found) or affirms(sentence) is not None)
