"""Splitting a block of text, a tool's result or the context part of a prompt, into its passages.

Every way of joining that frameworks have is tried in turn: JSON, what Python shows, XML, labels, rules,
blank lines. All are scanners that look at a line once.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from steelyard.record import Context, text_of
from steelyard.recording.provenance._literals import read_shown
from steelyard.recording.provenance._tools import finds_nothing
from steelyard.recording.provenance._values import contexts_in

MOST_BLOCK = 2_000_000
"""Characters of a block that are read; the rest is left out."""

# Tools wrap JSON in JSON and XML in that; deeper nesting is not a list of passages any more.
_LEVELS = 4
# Every repetition has a bound: these patterns run over texts that strangers write.
_TAG = re.compile(r"<(/?)([A-Za-z_][\w.-]{0,40})([^<>]{0,500})>")
_ENTITY = re.compile(r"&(?:#[0-9]{1,6}|#[xX][0-9a-fA-F]{1,5}|[A-Za-z][A-Za-z0-9]{1,30});")
_ITEMS = frozenset(("document", "doc", "passage", "chunk", "result", "item", "snippet", "node", "source"))
_WRAPPERS_WORDS = """
documents docs context contexts passages chunks results sources search_results retrieved_documents
retrieved_context knowledge excerpts nodes items
"""
_WRAPPERS = frozenset(_WRAPPERS_WORDS.split())
_CONTENTS = ("content", "document_content", "page_content", "text", "body", "snippet", "contents")
_ATTRIBUTE_ID = re.compile(r"""\b(?:id|doc_id|document_id)\s?=\s?["']([^"'<>]{1,200})["']""")
_NOUN = (
    r"(?:document|doc|source|passage|context|chunk|result|excerpt|snippet|reference|article|node|hit|item)"
)
_LABEL = re.compile(
    rf"[ \t]{{0,8}}[-=#*_<~\[(]{{0,40}}[ \t]{{0,3}}"
    rf"(?:{_NOUN}[ \t]{{0,2}}(?:no\.?|number|id)?[ \t]?[#:\[(]?[ \t]?"
    r"([0-9]{1,4})[\])]?|\[([0-9]{1,4})\]|(?<=\[)([0-9]{1,4})(?=\])|(?<=\()([0-9]{1,4})(?=\)))"
    r"(?:[ \t]{0,3}\([^()\n]{0,80}\))?[ \t]{0,3}[\])>:.|-]{0,3}[ \t]{0,3}[-=#*_~>]{0,40}[ \t]{0,8}",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"[ \t]{0,8}([0-9]{1,4})[.)][ \t]{1,8}(?=\S)")
_BULLET = re.compile(r"([-*+\u2022])[ \t]{1,4}(?=\S)")
_RULE = re.compile(r"[ \t]{0,8}(?:-{3,200}|={3,200}|\*{3,200}|_{3,200}|#{3,200}|~{3,200})[ \t]{0,8}")
_FIELD = re.compile(r"([A-Za-z][\w .\-]{0,39}): \S")
_PROPERTY = re.compile(r"[A-Za-z][\w .\-]{0,39}:[ \t]{0,4}\S")
_CONTENT_FIELD = re.compile(
    r"[ \t]{0,8}\**(?:page[ _])?(?:content|text|snippet|passage|body|excerpt|chunk)\**:\**[ \t]{0,8}",
    re.IGNORECASE,
)
_HEADER_WORD = re.compile(
    r"\b(?:documents?|results?|contexts?|passages?|sources?|chunks?|information|found|retrieved|excerpts?"
    r"|snippets?|references?|matches|knowledge)\b",
    re.IGNORECASE,
)
_SENTENCE_END = tuple(".!?\u3002\uff01\uff1f\u061f\"'),;\u0964\u2026")


def passages_of(block: object, *, count: int | None = None) -> tuple[Context, ...]:
    r"""The passages in a tool's result or in the context part of a prompt.

    Args:
        block: A text, or a value that was read from JSON.
        count: How many there are, where something else tells; a way of splitting a text that gives another
            number is then not taken.

    Returns:
        The passages in order, with ids and scores where the block names them. Headings stay with the text
        below them, and a header such as "Retrieved documents:" is not a passage, nor is a statement that
        nothing was found. A text that cannot be split is one passage.

    Example:
        >>> [c.text for c in passages_of("Retrieved documents:\n\n[1] Rome.\n\n[2] Paris.")]
        ['Rome.', 'Paris.']
        >>> [(c.id, c.text) for c in passages_of('{"blocks": [{"id": 7, "text": "Rome."}]}')]
        [('7', 'Rome.')]
    """
    found = (one for one in _passages(block, count, _LEVELS) if not finds_nothing(one.text))
    return tuple(
        Context(text=one.text, id=one.id, score=one.score, rank=rank) for rank, one in enumerate(found)
    )


def _passages(block: object, count: int | None, levels: int) -> tuple[Context, ...]:
    within = partial(_passages, count=count, levels=levels - 1)
    if not isinstance(block, str):
        return contexts_in(block, lambda text: within(text)) if levels > 0 else ()
    text = text_of(block[:MOST_BLOCK]).replace("\r\n", "\n").replace("\r", "\n").strip()
    if not text:
        return ()
    if levels > 0 and (found := _structured(text, within)):
        return found
    return tuple(Context(text=part) for part in _parts(text, count))


def _parts(text: str, count: int | None) -> Sequence[str]:
    """The parts of a text by the first way of splitting that fits; the whole text where none does."""
    # A passage that is known to be the only one must not be cut at its own headings.
    if count == 1:
        return (_without_label(text),)
    for way in _WAYS:
        parts = way(text)
        # One label is enough to show that passages are labelled; one paragraph says nothing.
        least = 1 if way is _by_label else 2
        if len(parts) == count or (count is None and len(parts) >= least):
            return parts
    # Lines are the last resort: without a count every list in a passage would be cut into pieces.
    if count is not None and len(parts := _lines(text)) == count:
        return parts
    return (text,)


def _structured(text: str, within: Callable[[str], tuple[Context, ...]]) -> tuple[Context, ...]:
    first = text[0]
    # JSON before Python's form: where a text is both, they mean the same, and JSON is read faster.
    if first in '[{"':
        value = _json(text)
        if isinstance(value, str) and value.strip():
            return within(value)
        if value is not None:
            return contexts_in(value, within)
    if first in "[({" or _LOOKS_SHOWN.match(text):
        value = read_shown(text)
        if value is not None and not isinstance(value, str):
            return contexts_in(value, within)
    return _tagged(text, within) if "</" in text else ()


_LOOKS_SHOWN = re.compile(r"[A-Za-z_][\w.]{0,80}(?:\(|=['\"\[{])")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _tagged(text: str, within: Callable[[str], tuple[Context, ...]]) -> tuple[Context, ...]:
    """The elements of an XML-like block; what is in a wrapper is split in its turn."""
    tags = list(_TAG.finditer(text))
    name = next((tag[2] for tag in tags if not tag[1] and tag[2].lower() in _ITEMS), None)
    if name is None:
        first = tags[0] if tags and tags[0].start() == 0 else None
        if first is None or first[2].lower() not in _WRAPPERS:
            return ()
        end = next((tag.start() for tag in reversed(tags) if tag[1] and tag[2] == first[2]), len(text))
        return within(text[first.end() : end])
    return tuple(_elements(text, tags, name))


def _elements(text: str, tags: Sequence[re.Match[str]], name: str) -> Iterator[Context]:
    opened: re.Match[str] | None = None
    inner: dict[str, tuple[int, int]] = {}
    starts: dict[str, int] = {}
    for tag in tags:
        if tag[2] == name and not tag[1]:
            opened, inner, starts = tag, {}, {}
        elif tag[2] == name and opened is not None:
            whole = (opened.end(), tag.start())
            start, end = next((inner[key] for key in _CONTENTS if key in inner), whole)
            if content := _ENTITY.sub(lambda match: html.unescape(match[0]), text[start:end]).strip():
                yield Context(text=text_of(content), id=_id_of(opened, text[slice(*inner.get("id", (0, 0)))]))
            opened = None
        elif tag[1]:
            if tag[2] in starts:
                inner.setdefault(tag[2], (starts[tag[2]], tag.start()))
        else:
            starts.setdefault(tag[2], tag.end())


def _id_of(opened: re.Match[str], inner: str) -> str | None:
    """An element's id: its attribute, or what stands in an element of that name inside of it."""
    identity = _ATTRIBUTE_ID.search(opened[3])
    return (identity[1] if identity else inner.strip()) or None


def _by_label(text: str) -> list[str]:
    """Split before `[1]`, `Document 1:`, `===== Document 0 =====`; numbers must go up one by one."""
    return _at_labels(text, _LABEL) or _at_labels(text, _NUMBERED, least=2)


def _at_labels(text: str, pattern: re.Pattern[str], least: int = 1) -> list[str]:
    parts: list[list[str]] = [[]]
    expected: int | None = None
    for line in text.split("\n"):
        label = pattern.match(line)
        number = int(next(filter(None, label.groups()))) if label else -1
        # Numbers must go on from each other, or the numbered list in a passage would cut it.
        if (
            label
            and _is_set_off(line, label)
            and number == (expected if expected is not None else min(number, 1))
        ):
            expected = number + 1
            parts.append([_after_label(line, label)])
        else:
            parts[-1].append(line)
    before = "\n".join(parts[0]).strip()
    labelled = [_body("\n".join(part)) for part in parts[1:]]
    # Text before the first label that does not announce anything would be lost, so this is no list.
    if len(labelled) < least or not all(labelled) or (before and not _is_preamble(before)):
        return []
    return labelled


def _is_set_off(line: str, label: re.Match[str]) -> bool:
    """Whether a label is one, rather than the beginning of a sentence: "Article 1 says"."""
    return label.end() == len(line) or label[0].rstrip().endswith(
        (":", ".", ")", "]", ">", "|", "-", "=", "#", "*")
    )


def _after_label(line: str, label: re.Match[str]) -> str:
    rest = line[label.end() :]
    is_open = label[0].count("[") > label[0].count("]")
    return "" if is_open and rest.rstrip().endswith("]") else rest


def _without_label(text: str) -> str:
    parts = _by_label(text)
    return parts[0] if len(parts) == 1 else text


def _is_preamble(text: str) -> bool:
    """Whether what stands before the first passage only announces the passages."""
    return len(text) < 300 and (
        text.endswith(":") or _is_header(text) or _RULE.fullmatch(text.split("\n")[-1]) is not None
    )


def _is_header(text: str) -> bool:
    """Whether a single line announces passages: "Retrieved documents:", "Found 3 results"."""
    plain = text.strip(" \t#*=-_:")
    return (
        "\n" not in text.strip()
        and len(plain.split()) <= 8
        and not plain.endswith(_SENTENCE_END)
        and (
            text.rstrip(" *#=-_").endswith(":")
            or plain.split(" ")[0].lower() in ("found", "retrieved", "top")
        )
        and _HEADER_WORD.search(plain) is not None
    )


def _body(text: str) -> str:
    """A labelled passage without the rule below it and without the name of its content field."""
    lines = text.strip().split("\n")
    while lines and (_RULE.fullmatch(lines[-1]) or not lines[-1].strip()):
        lines.pop()
    # Fields that head a passage stand in its first lines; a colon further down is prose.
    for at, line in enumerate(lines[:8]):
        named = _CONTENT_FIELD.match(line)
        if named and all(_FIELD.match(other) or not other.strip() for other in lines[:at]):
            return "\n".join([line[named.end() :], *lines[at + 1 :]]).strip()
        if not _FIELD.match(line) and line.strip():
            break
    return "\n".join(lines).strip()


def _by_rule(text: str) -> list[str]:
    """Split at lines of dashes, equal signs or stars."""
    parts: list[list[str]] = [[]]
    for line in text.split("\n"):
        if _RULE.fullmatch(line):
            parts.append([])
        else:
            parts[-1].append(line)
    if len(parts) < 2:
        return []
    whole = ["\n".join(part).strip() for part in parts]
    return [_body(part) for part in whole if part and not _is_header(part)]


def _by_bullet(text: str) -> list[str]:
    """Split a list in which every line begins with the same mark, or goes on with an indented line."""
    first = _BULLET.match(text)
    parts: list[list[str]] = []
    for line in text.split("\n"):
        bullet = _BULLET.match(line)
        if first and bullet and bullet[1] == first[1]:
            parts.append([line[bullet.end() :]])
        elif parts and line[:1] in ("", " ", "\t"):
            parts[-1].append(line)
        else:
            return []
    return ["\n".join(part).strip() for part in parts] if len(parts) > 1 else []


def _paragraphs(text: str) -> list[str]:
    parts: list[list[str]] = [[]]
    for line in text.split("\n"):
        if line.strip():
            parts[-1].append(line)
        elif parts[-1]:
            parts.append([])
    return ["\n".join(part).strip() for part in parts if part]


def _by_metadata(text: str) -> list[str]:
    """Split where each passage is headed by a paragraph of `key: value` lines, always with the same keys."""
    paragraphs = _paragraphs(text)
    keys = _keys(paragraphs[0])
    if not keys:
        return []
    passages: list[list[str]] = []
    for paragraph in paragraphs:
        if _keys(paragraph) == keys:
            passages.append([])
        else:
            passages[-1].append(paragraph)
    return ["\n\n".join(parts) for parts in passages] if all(passages) else []


def _keys(paragraph: str) -> list[str]:
    found = [_FIELD.match(line) for line in paragraph.split("\n")]
    return [match[1] for match in found if match] if all(found) else []


def _by_paragraph(text: str) -> list[str]:
    """Split at blank lines; a heading goes with the text below it, a header is dropped."""
    paragraphs = _paragraphs(text)
    if paragraphs and _is_header(paragraphs[0]):
        paragraphs = paragraphs[1:]
    elif paragraphs and _is_header(first := paragraphs[0].split("\n")[0]):
        paragraphs[0] = paragraphs[0][len(first) :].strip()
    # Only short lines: they are the passages themselves, and not headings of anything.
    if all(_is_heading(paragraph) for paragraph in paragraphs):
        return paragraphs
    passages: list[str] = []
    above: list[str] = []
    for paragraph in paragraphs:
        above.append(paragraph)
        if not _is_heading(paragraph):
            passages.append("\n\n".join(above))
            above = []
    if above:
        passages[-1] = "\n\n".join([passages[-1], *above])
    return passages


def _is_heading(paragraph: str) -> bool:
    if paragraph.startswith("#"):
        return all(map(_PROPERTY.match, paragraph.split("\n")[1:]))
    if "\n" in paragraph:
        return False
    return len(paragraph) <= 80 and len(paragraph.split()) <= 10 and not paragraph.endswith(_SENTENCE_END)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]


# The surest way first: metadata and labels are written by programs, blank lines by anybody.
_WAYS: tuple[Callable[[str], list[str]], ...] = (
    _by_metadata,
    _by_label,
    _by_rule,
    _by_bullet,
    _by_paragraph,
)
