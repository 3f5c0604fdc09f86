r"""Sections of a prompt, for what has to be guessed: the one parser of tags, headings, labels, fences.

What is found here is a guess, and is said to be one. It is asked only where nothing told of passages, or of
the question.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

from steelyard.recording.provenance._words import word_count
from steelyard.recording.reading._questions import is_question

_SPEAKER = re.compile(
    r"</?s>|<\|(?:start_header_id\|>[ \t]{0,4}\w{1,20}[ \t]{0,4}<\|end_header_id"
    r"|im_start\|>[ \t]{0,4}\w{1,20}|\w{1,40})(?:\|>|\b)|\[/?INST\]|<</?SYS>>"
    r"|<(?:start_of_turn>[ \t]{0,4}\w{1,20}|end_of_turn>)"
)
_BUFFER = re.compile(r"(?:\A|\n)(?:System|Human|AI): ?")
"""How LangChain writes messages down as one text."""
_TAG = re.compile(r"<(/?)([A-Za-z_][\w.-]{0,40})(?: [^<>]{0,200})?>")
_LABEL = r"[^\W\d_][^\n:*<>{}\[\].!?\uff1a\u3002]{0,60}"
_HEADING = re.compile(
    r"(?:#{1,6}[ \t]{1,4}(?P<heading>[^\n]{1,100}?)[ \t#]{0,8}:?"
    rf"|(?:[-=*~]{{2,8}}|__)[ \t]{{0,4}}(?P<bold>{_LABEL}?)[ \t]{{0,4}}[:\uff1a]?[ \t]{{0,4}}"
    r"(?:[-=*~]{2,8}|__)[:\uff1a]?(?P<after>[^\n]*)"
    rf"|(?P<label>{_LABEL})[:\uff1a](?P<rest>[^\n]*)"
    r"|(?P<rule>```\w{0,20}|-{3,80}|={3,80}|\*{3,80}|#{3,80}|\"\"\"))[ \t]{0,8}"
)
_MOST_WORDS = 12  # of a line that ends with a colon and announces what is below it
_MOST_LABEL = 4  # of a label with its text on the same line
_ASKS = re.compile(
    r"\b(?:questions?|query|q|ask(?:ed|s)?|user'?s? (?:input|message|request|says?)|human|user)\b"
    r"|\bfrage|pregunta|pergunta|domanda|\u0432\u043e\u043f\u0440\u043e\u0441|\u95ee\u9898|\u554f\u984c|\u8cea\u554f|\uc9c8\ubb38"
    r"|\u0627\u0644\u0633\u0624\u0627\u0644",
    re.IGNORECASE,
)
"""What a question is called in English, German, Spanish, Portuguese, Italian, Russian, Chinese, Japanese,
Korean and Arabic."""
_MATERIAL = re.compile(
    r"contexts?\b|context_|documents?\b|\bdocs?\b|documentation|sources?\b|passages?|excerpts?|snippets?|knowledge|references?\b"
    r"|retrieved|search.results?|background|evidence|information\b|articles?\b|chunks?|materials?\b|facts\b|data\b|notes\b"
    r"|kontext|quellen|dokument|contexte|contexto|contesto|fuentes"
    r"|\u043a\u043e\u043d\u0442\u0435\u043a\u0441\u0442|\u8d44\u6599|\u8cc7\u6599|\u4e0a\u4e0b\u6587|\u6587\u6863|\u80cc\u666f"
    r"|\u5df2\u77e5|\u53c2\u8003|\u30b3\u30f3\u30c6\u30ad\u30b9\u30c8|\u6587\u8108|\u53c2\u7167|\ucee8\ud14d\uc2a4\ud2b8|\ubb38\ub9e5"
    r"|\u0627\u0644\u0633\u064a\u0627\u0642",
    re.IGNORECASE,
)
"""What templates call the part that holds the passages, in the same languages."""
_BELOW = re.compile(r"</[^<>]{0,40}>[\s<#*=-]{0,20}(?P<label>[^\n:>]{1,40})")
"""What stands right behind the end of a section."""
_LEAST = 4
_AROUND = "\"'`*"
_MOST_QUESTION = 60  # words of a line that asks; a longer one is a text that ends with a question


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a prompt."""

    label: str
    """What stands before it: a tag's name, a heading, a label; empty for what has none."""
    text: str = field(repr=False)
    """What it says."""
    is_closed: bool = False
    """Whether the template also marks its end, as tags do."""


def split_chat_template(text: str) -> list[str]:
    """A prompt cut where a template for chats marks the beginning or the end of a speech.

    >>> split_chat_template("<|user|>How many hills?</s><|assistant|>")
    ['How many hills?']
    """
    if text.startswith(("System: ", "Human: ")):
        return [part for part in _BUFFER.split(text) if part.strip()]
    return [part for part in _SPEAKER.split(text) if part.strip()]


def sections(prompt: str) -> list[Section]:
    r"""The sections of a prompt, in order.

    >>> [(one.label, one.text) for one in sections("Answer.\n\nContext:\nRome.\n\nQuestion: How many?")]
    [('', 'Answer.'), ('Context', 'Rome.'), ('Question', 'How many?')]
    """
    return [found for part in split_chat_template(prompt) for found in _of_speech(part)]


def guessed_question(prompt: str) -> str:
    """The question that a prompt names, or its last line if that asks; empty if neither is there."""
    found = sections(prompt)
    named = [
        one.text for one in found if one.text and word_count(one.label) <= _LEAST and _ASKS.search(one.label)
    ]
    if named:
        return _unquoted(named[-1])
    last = next((line.strip() for line in reversed(prompt.split("\n")) if line.strip()), "")
    label, _, rest = last.rpartition(": ")
    if label and word_count(label) <= _MOST_WORDS and _ASKS.search(label):
        return rest.strip()
    first = next((line.strip() for line in prompt.split("\n") if line.strip()), "")
    return next(filter(_may_be_asked, (last, first)), "") or _only_asked(prompt)


def _unquoted(text: str) -> str:
    """A text without marks that stand around the whole of it."""
    text = text.strip()
    while len(text) > 1 and text[0] in _AROUND and text[-1] == text[0]:
        text = text[1:-1].strip()
    return text


def _only_asked(prompt: str) -> str:
    """The only line outside of what seem to be passages that asks something."""
    for passage in guessed_passages(prompt, ""):
        prompt = prompt.replace(passage, "\n")
    asked = [line.strip() for line in prompt.split("\n") if _may_be_asked(line.strip())]
    return asked[0] if len(asked) == 1 else ""


def _may_be_asked(line: str) -> bool:
    return is_question(line) and word_count(line) <= _MOST_QUESTION


def guessed_passages(prompt: str, question: str) -> list[str]:
    """The sections of a prompt that seem to hold passages.

    What stands within the question is the user's, whatever it looks like.
    """
    if question:
        prompt = prompt.replace(question, " ")
    found = _telling(prompt)
    return _under_names(found) or [
        text for one in found if not one.label and (text := _below_instruction(one.text))
    ]


def holds_passages(prompt: str) -> bool:
    """Whether a prompt has a section that is named as passages are."""
    return bool(_under_names(_telling(prompt)))


def _telling(prompt: str) -> list[Section]:
    return [one for one in sections(prompt) if word_count(one.text) >= _LEAST or len(one.text) > 30]


def _under_names(found: list[Section]) -> list[str]:
    closed = [one.text for one in found if one.is_closed and _MATERIAL.search(one.label)]
    return closed or [one.text for one in found if _MATERIAL.search(one.label) and not _ASKS.match(one.label)]


def _below_instruction(text: str) -> str:
    """What stands below a first paragraph that speaks of it, such as "Use only this context."."""
    first, _, rest = text.partition("\n\n")
    return rest.strip() if _MATERIAL.search(first) and word_count(rest) >= _LEAST else ""


def _of_speech(text: str) -> Iterator[Section]:
    """Tags first, since they say where a section ends; what is outside of them by headings and labels."""
    at = 0
    closing: dict[str, list[int]] = {}
    for tag in _TAG.finditer(text):
        if tag[1]:
            closing.setdefault(tag[2], []).append(tag.start())
    for tag in _TAG.finditer(text):
        if tag[1] or tag.start() < at or (end := _end_of(tag, text, closing.get(tag[2], []))) < 0:
            continue
        yield from _by_lines(text[at : tag.start()])
        yield Section(tag[2], text[tag.end() : end].strip(), is_closed=True)
        at = text.index(">", end) + 1
    yield from _by_lines(text[at:])


def _end_of(tag: re.Match[str], text: str, closing: list[int]) -> int:
    """Where the section ends that a tag opens; -1 if it never does.

    A passage may hold the end of its own tag, so the last one counts. But where a question is named right
    behind one, what follows is the user's, who may type tags as well.
    """
    after = bisect_left(closing, tag.end())
    for at in range(after, len(closing) - 1):
        below = _BELOW.match(text, closing[at])
        if below and _ASKS.search(below["label"]):
            return closing[at]
    return closing[-1] if after < len(closing) else -1


def _by_lines(text: str) -> Iterator[Section]:
    label, lines, fence = "", list[str](), ""
    for line in text.split("\n"):
        found = _HEADING.fullmatch(line.strip())
        opened = _opened(found) if found else None
        if opened is None:
            lines.append(line)
            continue
        if body := "\n".join(lines).strip():
            yield Section(label, body)
        if opened[0] is None and not fence and _MATERIAL.search(above := body.rpartition("\n")[2]):
            # What is announced right above a rule stands between it and the next one like it.
            label, lines, fence = above, [], line.strip()
            continue
        if line.strip() == fence:
            label, lines, fence = "", [], ""
            continue
        # A rule ends a part; what follows still stands under the same name.
        label, lines = (label if opened[0] is None else opened[0]), [opened[1]]
    if body := "\n".join(lines).strip():
        yield Section(label, body)


def _opened(line: re.Match[str]) -> tuple[str | None, str] | None:
    """The label and the rest of a line that begins a section; None of a line that does not."""
    if line["rule"]:
        return None, ""
    if line["heading"]:
        return line["heading"].strip(" :"), ""
    if line["bold"]:
        return line["bold"].strip(), line["after"].strip()
    label, rest = line["label"].strip(), line["rest"].strip()
    most = _MOST_LABEL if rest else _MOST_WORDS
    return (label, rest) if word_count(label) <= most else None
