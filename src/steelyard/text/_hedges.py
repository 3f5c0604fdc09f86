"""Openings of a statement that are not part of it: hedges, replies, connectives; and what is left."""

from __future__ import annotations

import re

_MATERIAL = (
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
    rf"|(?:according to|based on|going by|judging by) (?:the |these |this )?{_MATERIAL}"
    rf"|(?:the |these |this ){_MATERIAL} (?:says?|states?|mentions?|shows?|indicates?) that"
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
