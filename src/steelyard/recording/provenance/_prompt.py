"""The last resort: the part of a prompt that holds passages. Every search looks at a line once."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from steelyard.recording.provenance._sections import speeches

QUESTION_WORDS = (
    r"(?:nutzer)?frage|pregunta|domanda|\u0432\u043e\u043f\u0440\u043e\u0441|(?:\u7528\u6237)?\u95ee\u9898"
    r"|\u554f\u984c|\u8cea\u554f|\uc9c8\ubb38|\u0627\u0644\u0633\u0624\u0627\u0644"
)
"""What a question is called in German, Spanish, Italian, Russian, Chinese, Japanese, Korean and Arabic."""
_OPENING = re.compile(
    r"<(contexts?|documents|sources|passages|references|knowledge|search_results|retrieved_\w{1,40})>",
    re.IGNORECASE,
)
_MOST_TAGS = 8
_ABOUT = re.compile(r"\bcontext\b(?![ \t]*:[ \t]*\S)", re.IGNORECASE)
_FENCE = re.compile(r"([-=*#`])\1{2,}")
_HEADING = re.compile(
    r"(?:\b(?:context|contexts|context information|documents|sources|passages|knowledge|kontext|quellen"
    r"|dokumente|contexte|contexto|contesto|fuentes|\u043a\u043e\u043d\u0442\u0435\u043a\u0441\u0442)"
    # Chinese: materials, context, what is known, background, reference, documents.
    r"|\u8d44\u6599|\u8cc7\u6599|\u4e0a\u4e0b\u6587|\u6587\u6863"
    r"|(?:\u5df2\u77e5|\u80cc\u666f|\u53c2\u8003)(?:\u4fe1\u606f|\u77e5\u8bc6|\u5185\u5bb9)"
    # Japanese, Korean and Arabic: context, and in Japanese information for reference.
    r"|\u30b3\u30f3\u30c6\u30ad\u30b9\u30c8|\u6587\u8108|\u53c2\u8003\u60c5\u5831"
    r"|\ucee8\ud14d\uc2a4\ud2b8|\ubb38\ub9e5|\u0627\u0644\u0633\u064a\u0627\u0642)"
    r"[ \t]{0,8}[:\uff1a][ \t]{0,8}\n?",
    re.IGNORECASE,
)
_NEXT = re.compile(
    r"\n[ \t]{0,8}(?:question|query|q|user question|user query|human|user|answer|a|helpful answer"
    r"|instructions?|(?:json|output|response) (?:schema|format)"
    rf"|{QUESTION_WORDS}|antwort|r\u00e9ponse|respuesta|risposta|\u56de\u7b54|\u7b54\u6848)"
    r"[ \t]{0,8}[:\uff1a]",
    re.IGNORECASE,
)


_TITLE = re.compile(
    r"[^\n]{0,200}\b(?:contexts?|documents|passages|sources|excerpts|knowledge"
    r"|(?:us(?:e|ing)|based on|rely on|relevant|retrieved|background|supporting)\b[^\n:]{0,40}"
    r"\b(?:information|facts|articles|notes|reference material|search results))\b[^\n:]{0,60}:[ \t]{0,8}",
    re.IGNORECASE,
)
_END = re.compile(
    r"[ \t#*]{0,8}(?:user |original |follow.?up )?(?:question|query|answer|input|task|chat history"
    r"|conversation|instructions?|(?:json|output|response) (?:schema|format)(?=[ \t*]{0,4}:))\b"
    r"[ \t*]{0,4}:?[^\n]{0,2000}",
    re.IGNORECASE,
)
_ASKS = re.compile(r"[ \t#*]{0,8}(?:user |original )?(?:question|query)[ \t*]{0,4}:", re.IGNORECASE)
_SPEAKS = re.compile(r"\b(?:contexts?|documents|passages|sources|excerpts)\b", re.IGNORECASE)


def context_block(text: str) -> str:
    r"""The part of a prompt that holds the passages: between tags, between rules, or under a heading.

    Where a template of a local model marks who speaks, it is looked for within one speech.

    >>> context_block("Use this context only.\n\nRome has seven hills.\n\nQuestion: How many hills?")
    'Rome has seven hills.'
    """
    parts = speeches(text)
    return next((block for way in _WAYS for part in parts for block in way(part) if block), "")


def is_title(line: str) -> bool:
    """Whether a line is a heading that announces passages, such as "Use the following information:"."""
    return _TITLE.fullmatch(line) is not None


def _tagged(text: str) -> Iterator[str]:
    lower = text.lower()
    seen: set[str] = set()
    for opening in _OPENING.finditer(text):
        name = opening[1].lower()
        # A tag that is opened again and again by a hostile text would be searched for each time.
        if name in seen:
            continue
        seen.add(name)
        end = lower.find(f"</{name}>", opening.end())
        # Lower case can change the length of a text, and then places in the two differ.
        if end >= 0 and len(lower) == len(text):
            yield text[opening.end() : end].strip()
        if len(seen) >= _MOST_TAGS:
            return


def _fenced(text: str) -> Iterator[str]:
    """Between two equal rules, the first of them below a line that speaks of the context."""
    lines = text.split("\n")
    rules: dict[str, list[int]] = {}
    for at, line in enumerate(lines):
        if mark := _FENCE.match(line):
            rules.setdefault(mark[0], []).append(at)
    for mark_text, places in rules.items():
        for at in places:
            above = at - 2 if at > 1 and not lines[at - 1].strip() else at - 1
            if above < 0 or not _ABOUT.search(lines[above]):
                continue
            after = bisect_right(places, at)
            # Few rules are looked at behind each: a table has thousands of equal lines.
            closing = next((n for n in places[after : after + 64] if lines[n].strip() == mark_text), None)
            if closing is not None:
                yield "\n".join(lines[at + 1 : closing]).strip()


def _headed(text: str) -> Iterator[str]:
    reached = 0
    for heading in _HEADING.finditer(text):
        # Within a block that was given already.
        if heading.start() < reached:
            continue
        below = _NEXT.search(text, max(heading.end() - 1, 0))
        reached = below.start() if below else len(text)
        yield text[heading.end() : reached].strip()


def _titled(text: str) -> Iterator[str]:
    """Between a line that is a heading and the question, or the end."""
    lines = text.split("\n")
    start = next((at for at, line in enumerate(lines) if is_title(line)), None)
    if start is not None:
        below = lines[start + 1 :]
        end = next((at for at, line in enumerate(below) if _END.fullmatch(line)), len(below))
        yield "\n".join(below[:end]).strip()


def _instructed(text: str) -> Iterator[str]:
    """Between an instruction on the context, set off by a blank line, and a line that begins the question."""
    lines = text.split("\n")
    # From the end, since a passage may ask a question too; the last one is the prompt's.
    asks = next((at for at in range(len(lines) - 1, 0, -1) if _ASKS.match(lines[at])), None)
    if asks is None:
        return
    blank = next((at for at, line in enumerate(lines[:asks]) if at and not line.strip()), None)
    if blank is not None and _SPEAKS.search("\n".join(lines[:blank])):
        yield "\n".join(lines[blank:asks]).strip()


# Tags and rules are written by templates to be found; headings and instructions are guessed at.
_WAYS = (_tagged, _fenced, _titled, _headed, _instructed)
