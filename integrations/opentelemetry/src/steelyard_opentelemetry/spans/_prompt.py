"""The last resort: passages and the question, out of the prompt a model was sent."""

from __future__ import annotations

import re
from collections.abc import Sequence

_TAGGED = re.compile(
    r"<(context|contexts|documents|sources|passages|retrieved_\w+)>(.*?)</\1>", re.DOTALL | re.IGNORECASE
)
_FENCED = re.compile(
    r"^[^\n]*\bcontext\b(?![ \t]*:[ \t]*\S)[^\n]*\n(?:[ \t]*\n)?([-=*#`]{3,})[^\n]*\n(.*?)\n\1[ \t]*$",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_NEXT = r"(?:question|query|q|user question|user query|human|user|answer|a|helpful answer|instructions?)"
_HEADED = re.compile(
    r"\b(?:context|contexts|context information|documents|sources|passages|knowledge)[ \t]*:[ \t]*\n?"
    rf"(.+?)(?=\n[ \t]*{_NEXT}[ \t]*:|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_QUESTION = re.compile(
    r"^[ \t]*(?:user )?(?:question|query|q)[ \t]*:[ \t]*(\S[^\n]*)", re.IGNORECASE | re.MULTILINE
)
_TASK = re.compile(r"^[ \t]*new task:[ \t]*\n", re.IGNORECASE)
_FIELD = re.compile(r"^[\w .\-]{1,40}: \S[^\n]*$")
_LABEL = re.compile(
    r"(?:^|\n)[ \t]*(?:\[\d{1,3}\]|\(\d{1,3}\)|<document[^>\n]*>"
    r"|(?:document|source|passage|context|chunk) ?#?\d{1,3})"
    r"[ \t]*[:.)]?[ \t]*",
    re.IGNORECASE,
)
_CLOSE = re.compile(r"</document>", re.IGNORECASE)


def context_block(text: str) -> str:
    """The part of a prompt that holds the passages: between tags, between rules, or under a heading."""
    for pattern in (_TAGGED, _FENCED, _HEADED):
        match = pattern.search(text)
        if match and (block := match[match.lastindex or 0].strip()):
            return block
    return ""


def question_of_prompt(text: str) -> str:
    """The question that a prompt names as such: on its last `Question:` line, or below `New task:`."""
    found = _QUESTION.findall(text)
    task = _TASK.match(text)
    return found[-1].strip() if found else text[task.end() :].strip() if task else ""


def split_passages(text: str, count: int = 0) -> tuple[str, ...]:
    """Passages that were joined into one text.

    Args:
        text: The joined passages.
        count: How many there were, where something else tells; then only a split into so many is taken.

    Returns:
        The passages in order. One that is the whole text, where no way of splitting gives `count`.
    """
    whole = text.strip()
    if not whole:
        return ()
    if count == 1:
        return (_unlabelled(whole),)
    ways = [_by_metadata(whole), _by_label(whole), *(_by(whole, mark) for mark in _MARKS)]
    if count:
        return next((way for way in ways if len(way) == count), (whole,))
    return next((way for way in ways[:-1] if len(way) > 1), (whole,))


_MARKS = (r"\n\s*(?:-{3,}|={3,}|\*{3,})\s*\n", r"\n[ \t]*\n\s*", r"\n")


def _by(text: str, mark: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, re.split(mark, text))))


def _by_label(text: str) -> tuple[str, ...]:
    """Split before `[1]`, `Document 1:` and the like; only where the text starts with one."""
    if not _LABEL.match(text):
        return ()
    return tuple(filter(None, (_CLOSE.sub("", part).strip() for part in _LABEL.split(text))))


def _unlabelled(text: str) -> str:
    return (_by_metadata(text) or _by_label(text) or (text,))[0]


def _by_metadata(text: str) -> tuple[str, ...]:
    """Split where each passage is headed by a paragraph of `key: value` lines, as LlamaIndex writes them."""
    paragraphs = _by(text, _MARKS[1])
    keys = _keys(paragraphs[0])
    if not keys:
        return ()
    passages: list[list[str]] = []
    for paragraph in paragraphs:
        if _keys(paragraph) == keys:
            passages.append([])
        else:
            passages[-1].append(paragraph)
    return tuple("\n\n".join(parts) for parts in passages) if all(passages) else ()


def _keys(paragraph: str) -> Sequence[str]:
    lines = paragraph.split("\n")
    return [line.split(":", 1)[0] for line in lines] if all(map(_FIELD.match, lines)) else []
