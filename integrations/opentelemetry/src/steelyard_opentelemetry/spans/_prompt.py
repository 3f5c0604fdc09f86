"""The last resort: the part of a prompt that holds passages. Every search looks at a line once."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

_OPENING = re.compile(r"<(context|contexts|documents|sources|passages|retrieved_\w{1,40})>", re.IGNORECASE)
_MOST_TAGS = 8
_ABOUT = re.compile(r"\bcontext\b(?![ \t]*:[ \t]*\S)", re.IGNORECASE)
_FENCE = re.compile(r"([-=*#`])\1{2,}")
_HEADING = re.compile(
    r"\b(?:context|contexts|context information|documents|sources|passages|knowledge)"
    r"[ \t]{0,8}:[ \t]{0,8}\n?",
    re.IGNORECASE,
)
_NEXT = re.compile(
    r"\n[ \t]{0,8}(?:question|query|q|user question|user query|human|user|answer|a|helpful answer"
    r"|instructions?)[ \t]{0,8}:",
    re.IGNORECASE,
)


def context_block(text: str) -> str:
    """The part of a prompt that holds the passages: between tags, between rules, or under a heading."""
    return next((block for way in (_tagged, _fenced, _headed) for block in way(text) if block), "")


def _tagged(text: str) -> Iterator[str]:
    lower = text.lower()
    seen: set[str] = set()
    for opening in _OPENING.finditer(text):
        name = opening[1].lower()
        if name in seen:
            continue
        seen.add(name)
        end = lower.find(f"</{name}>", opening.end())
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
            closing = next((n for n in places[after : after + 64] if lines[n].strip() == mark_text), None)
            if closing is not None:
                yield "\n".join(lines[at + 1 : closing]).strip()


def _headed(text: str) -> Iterator[str]:
    reached = 0
    for heading in _HEADING.finditer(text):
        if heading.start() < reached:
            continue
        below = _NEXT.search(text, max(heading.end() - 1, 0))
        reached = below.start() if below else len(text)
        yield text[heading.end() : reached].strip()
