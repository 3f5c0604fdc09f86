r"""Sections of a prompt, for what has to be guessed: the one parser of tags, headings, labels, fences.

Where a section begins and ends is told by the form of its marks; what a mark is called is looked at where
they do not tell.
"""

from __future__ import annotations

import itertools
import json
import re
import string
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from os.path import commonprefix

from steelyard.recording.provenance._words import MOST_KEPT, word_count, words
from steelyard.recording.reading._questions import is_question

_SPEAKER = re.compile(
    r"</?s>|<\|(?:start_header_id\|>[ \t]{0,4}\w{1,20}[ \t]{0,4}<\|end_header_id"
    r"|im_start\|>[ \t]{0,4}\w{1,20}|\w{1,40})(?:\|>|\b)|\[/?INST\]|<</?SYS>>"
    r"|<(?:start_of_turn>[ \t]{0,4}\w{1,20}|end_of_turn>)"
)
_BUFFER = re.compile(r"(?:\A|\n)(?:System|Human|AI|\[(?:system|human|user|ai|assistant)\]): ?")
"""How LangChain, and people who trace it, write messages down as one text."""
_TAG = re.compile(r"[<\[](/?)([^\W\d][\w.-]{0,40})(?: [^<>\[\]]{0,200})?[>\]]")
_LABEL = r"[^\W\d_][^\n:*<>{}\[\].!?\uff1a\u3002]{0,60}"
_HEADING = re.compile(
    r"(?:(?P<depth>#{1,6})[ \t]{1,4}(?P<heading>[^\n]{1,100}?)[ \t#]{0,8}:?"
    rf"|(?:[-=*~]{{2,8}}|__)[ \t]{{0,4}}(?P<bold>{_LABEL}?)[ \t]{{0,4}}[:\uff1a]?[ \t]{{0,4}}"
    r"(?:[-=*~]{2,8}|__)[:\uff1a]?(?P<after>[^\n]*)"
    r"|[\u3010\u300e\u300a\[](?P<bracket>[^\W\d][^\n\[\]\u3011\u300f\u300b]{0,60})[\u3011\u300f\u300b\]][:\uff1a]?"
    rf"|(?P<label>{_LABEL})(?::(?!\S)|\uff1a)(?P<rest>[^\n]*)"
    r"|(?P<rule>```\w{0,20}|-{3,80}|={3,80}|\*{3,80}|#{3,80}|\"\"\"))[ \t]{0,8}"
)
MOST_LABEL_WORDS = 12  # of a line that ends with a colon and announces what is below it
_MOST_LABEL = 5  # of a label with its text on the same line
_ASKS = re.compile(
    r"\b(?:questions?|query|q|ask(?:ed|s)?|user'?s? (?:input|message|request|says?)|(?:human|user)$)\b"
    r"|\bfrage|pregunta|pergunta|domanda|\u0432\u043e\u043f\u0440\u043e\u0441|\u95ee\u9898|\u554f\u984c|\u8cea\u554f|\uc9c8\ubb38"
    r"|\u0627\u0644\u0633\u0624\u0627\u0644",
    re.IGNORECASE,
)
"""What a question is called in English, German, Spanish, Portuguese, Italian, Russian, Chinese, Japanese,
Korean and Arabic."""
_MATERIAL = re.compile(
    r"contexts?\b|context_|documents?\b|\bdocs?\b|documentation|sources?\b|passages?|excerpts?|snippets?|knowledge|references?\b"
    r"|retrieved|search.results?|background|evidence|informa(?:tion|ci\u00f3n|\u00e7\u00f5es)\b|articles?\b|chunks?|materials?\b|facts\b|data\b|notes\b"
    r"|kontext|quellen|dokument|contexte|contexto|contesto|fuentes"
    r"|\u043a\u043e\u043d\u0442\u0435\u043a\u0441\u0442|\u8d44\u6599|\u8cc7\u6599|\u4e0a\u4e0b\u6587|\u6587\u6863|\u80cc\u666f"
    r"|\u5df2\u77e5|\u53c2\u8003|\u30b3\u30f3\u30c6\u30ad\u30b9\u30c8|\u6587\u8108|\u53c2\u7167|\ucee8\ud14d\uc2a4\ud2b8|\ubb38\ub9e5"
    r"|\u0627\u0644\u0633\u064a\u0627\u0642",
    re.IGNORECASE,
)
"""What templates call the part that holds the passages, in the same languages."""
_LETTERS = f"{string.ascii_letters}{string.digits}"
"""Of a fence's language, which its end does not repeat."""
_MOST_MARK = 60  # characters of a line in capitals that begins or ends a part
_MOST_NAME = 4  # words of what a question is called
_BELOW = re.compile(r"</[^<>]{0,40}>[\s<#*=-]{0,20}(?P<label>[^\n:>]{1,40})")
"""What stands right behind the end of a section."""
ENDED = ("tag", "fence")
"""Forms that also mark the end of a section."""
_REMARK = 12  # words; instructions at the end of a prompt have fewer, passages have more
ASKED = "\0"
"""Stands for the question in a prompt."""
_NUMBER = re.compile(r"\d{1,6}")
_RULE = re.compile(r"[-=*_~# \t]{1,200}|[-=~]{2,8} ?\w[\w ]{0,60} ?[-=~]{2,8}")
MOST_QUESTION = 60  # words of a line that asks; a longer one is a text that ends with a question


def asks(label: str) -> bool:
    """Whether a label speaks of a question."""
    return _ASKS.search(label) is not None


def speaks_of_material(text: str) -> bool:
    """Whether a label or an instruction speaks of what holds the passages."""
    return _MATERIAL.search(text) is not None


def without_number(label: str) -> str:
    """A label without its number."""
    return _NUMBER.sub("", label)


def without_rule(text: str) -> str:
    """A part without the rule that sets it apart from the next, which may say that the part ends."""
    above, _, last = text.rstrip().rpartition("\n")
    return above.rstrip() if _RULE.fullmatch(last) else text.rstrip()


def may_be_asked(text: str) -> bool:
    """Whether a text asks, and is no longer than a question."""
    return is_question(text) and word_count(text) <= MOST_QUESTION


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a prompt."""

    label: str
    """What stands before it: a tag's name, a heading, a label; empty for what has none."""
    text: str = field(repr=False)
    """What it says; empty where a template has a place and nothing was put there."""
    form: str = ""
    """How its label is written: a `tag` or a `fence`, which also mark its end, a `heading`, a `label` with a
    colon on a line of its own, or a `field` with its text on the same line."""
    is_apart: bool = False
    """Whether a blank line stands below its label."""
    is_last: bool = False
    """Whether no other part of the prompt has a label after it, but for the question and the answer."""
    depth: int = 0
    """How deep a heading is below the title; 0 of what is not marked so."""

    @property
    def names_material(self) -> bool:
        """Whether its label is a usual one for passages."""
        return speaks_of_material(self.label) and (self.form == "tag" or not _ASKS.match(self.label))

    @property
    def names_question(self) -> bool:
        """Whether its label is a usual one for a question."""
        return word_count(self.label) <= _MOST_NAME and asks(self.label.replace("_", " "))

    @property
    def material(self) -> str:
        """What it says before the question, without a last short remark of the template."""
        text, asked, _ = self.text.partition(ASKED)
        text = without_rule(text).strip()
        if asked or not self.is_last or self.form in ENDED:
            return text
        *above, last = re.split(r"\n[ \t]{0,20}\n", text)
        size = word_count(last)
        named = _MATERIAL.search(self.label)
        refers = named is not None and named[0].lower() in last.lower()
        if size >= (2 if refers else 1) * _REMARK:
            return text
        if not above:
            return "" if self.is_apart else text
        is_remark = refers or 2 * size < min(map(word_count, above))
        return "\n\n".join(above) if is_remark else text


def split_chat_template(text: str) -> list[str]:
    """A prompt cut where a template for chats marks the beginning or the end of a speech.

    >>> split_chat_template("<|user|>How many hills?</s><|assistant|>")
    ['How many hills?']
    """
    if _BUFFER.match(text):
        return [part for part in _BUFFER.split(text) if part.strip()]
    return [part for part in _SPEAKER.split(text) if part.strip()]


def sections(prompt: str, *, lists: bool = False) -> list[Section]:
    r"""The sections of a prompt, in order; those with a label also if they are empty.

    Args:
        prompt: The prompt.
        lists: Whether fields count that hold lists, of a prompt that is an object: a user may type one.

    >>> [(one.label, one.text) for one in sections("Answer.\n\nContext:\nRome.\n\nQuestion: How many?")]
    [('', 'Answer.'), ('Context', 'Rome.'), ('Question', 'How many?')]
    """
    found = _sections(prompt, lists=lists)
    # A tag may stand around all of it.
    within = _sections(found[0].text) if len(found) == 1 and found[0].form == "tag" else []
    return within if any(one.form and one.names_question for one in within) else found


def _sections(prompt: str, *, lists: bool = False) -> list[Section]:
    read = _parts if len(prompt) <= MOST_KEPT else _parts.__wrapped__
    return [one for part, said in read(prompt) for one in _fields(part, lists=lists) or said]


@lru_cache(maxsize=8)
def _parts(prompt: str) -> list[tuple[str, list[Section]]]:
    """The speeches of a prompt, each with its sections; kept, since a Record asks for them several times."""
    parts = split_chat_template(_with_tags(prompt))
    return [(part, list(_of_speech(part, is_last=part is parts[-1]))) for part in parts]


def _with_tags(prompt: str) -> str:
    r"""A prompt with tags in place of two lines in capitals that begin and end a part with passages.

    >>> _with_tags("START CONTEXT BLOCK\nRome.\nEND OF CONTEXT BLOCK")
    '<context_block>\nRome.\n</context_block>'
    """
    lines = prompt.split("\n")
    marks = [at for at, line in enumerate(lines) if len(line) <= _MOST_MARK and line.isupper()]
    for first, last in itertools.pairwise(marks):
        begins, ends = (words(lines[at]) for at in (first, last))
        name = "_".join(_shared_words(begins, ends))
        if last > first + 1 and speaks_of_material(name):
            lines[first], lines[last] = f"<{name}>", f"</{name}>"
    return "\n".join(lines)


def _shared_words(begins: Sequence[str], ends: Sequence[str]) -> Sequence[str]:
    """The words, two at least, that both marks end or begin with, each beside words of its own."""
    above, below = (commonprefix([list(begins)[::step], list(ends)[::step]]) for step in (1, -1))
    shared = max(above, below[::-1], key=len)
    return shared if 2 <= len(shared) < min(len(begins), len(ends)) else ()


def _fields(text: str, *, lists: bool) -> list[Section]:
    """The fields of a prompt that is one JSON object."""
    if not text.lstrip().startswith("{"):
        return []
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return []
    texts = {name: one.strip() for name, one in value.items() if isinstance(one, str)}
    if lists:
        every = ((name, one) for name, one in value.items() if isinstance(one, list))
        texts.update((name, json.dumps(one, ensure_ascii=False)) for name, one in every)
    return [Section(name, text, "tag") for name, text in texts.items()]


def _of_speech(text: str, *, is_last: bool) -> Iterator[Section]:
    """Tags first, since they say where a section ends; what is outside of them by headings and labels."""
    at = 0
    tags = list(_TAG.finditer(text))
    closing: dict[str, list[re.Match[str]]] = {}
    for tag in tags:
        if tag[1]:
            closing.setdefault(tag[2], []).append(tag)
    opening = Counter(tag[2] for tag in tags if not tag[1])
    for tag in tags:
        ends = closing.get(tag[2], [])
        # As many as begin end: they stand side by side, or in each other.
        is_listed = len(ends) == opening[tag[2]] > 1
        end = None if tag[1] or tag.start() < at else _end_of(tag, text, ends, is_listed=is_listed)
        if end is not None:
            yield from _by_lines(text[at : tag.start()])
            yield Section(tag[2], text[tag.end() : end.start()].strip(), "tag")
            at = end.end()
    yield from _by_lines(text[at:], is_last=is_last)


def _end_of(
    tag: re.Match[str], text: str, closing: Sequence[re.Match[str]], *, is_listed: bool
) -> re.Match[str] | None:
    """The tag that ends a section; None if it never ends.

    A passage may hold the end of its own tag, so the last one counts. But where a question is named right
    behind one, what follows is the user's, who may type tags as well.
    """
    after = bisect_left(closing, tag.end(), key=lambda one: one.start())
    if is_listed and after < len(closing) and f"<{tag[2]}" not in text[tag.end() : closing[after].start()]:
        return closing[after]
    for end in closing[after:-1]:
        if (below := _BELOW.match(text, end.start())) and asks(below["label"]):
            return end
    return closing[-1] if after < len(closing) else None


def _by_lines(text: str, *, is_last: bool = False) -> Iterator[Section]:
    lines = text.split("\n")
    # Of a fence with a language the end looks otherwise.
    rules = Counter(rule for line in lines if not (rule := line.strip())[-1:].isalnum())
    part = _OpenSection()
    for line in lines:
        following = part.next(line.strip(), rules)
        if following is None:
            part.lines.append(line)
            continue
        yield from part.ended()
        part = following
    yield from part.ended(is_last=is_last)


@dataclass(slots=True, repr=False)
class _OpenSection:
    """A section whose end was not seen yet."""

    label: str = ""
    form: str = ""
    lines: list[str] = field(default_factory=list)
    depth: int = 0
    fence: str = ""
    """The rule that ends it, if it began with one."""
    items: set[str] = field(default_factory=set)
    """Labels, without numbers, of what it lists."""
    is_rest: bool = False

    def next(self, line: str, rules: Mapping[str, int]) -> _OpenSection | None:
        """The part that a line begins; None if the line belongs to this one."""
        if self.fence:
            return _OpenSection() if line == self.fence else None
        opened = _opened(line)
        if opened is None or self.takes(opened):
            return None
        if opened.form:
            return _OpenSection(opened.label, opened.form, [opened.text], opened.depth)
        if fenced := self._fenced(line, rules):
            return fenced
        # A rule ends a labelled part; what follows still stands under the same name.
        return _OpenSection(self.label, self.form, items=self.items, is_rest=True) if self.label else None

    def _fenced(self, line: str, rules: Mapping[str, int]) -> _OpenSection | None:
        """What is announced right above a rule stands between it and the next one like it."""
        end = line.rstrip(_LETTERS)
        is_fence = end != line and rules[end] > 0
        if not (is_fence or rules[line] > 1) or not self.announces(twice=is_fence or rules[line] == 2):
            return None
        label = "" if self._as_section.names_question else self.above
        if self.label and label not in ("", self.label):
            del self.lines[self._last :]
        return _OpenSection(label, "fence", fence=end)

    @property
    def _as_section(self) -> Section:
        return Section(self.label, "", self.form)

    @property
    def above(self) -> str:
        """Its last words, or its label if it has none yet."""
        return (self.lines[self._last].strip() if self.lines else "") or self.label

    @property
    def _last(self) -> int:
        """The place of its last line that says something."""
        return next((at for at in reversed(range(len(self.lines))) if self.lines[at].strip()), 0)

    def announces(self, *, twice: bool) -> bool:
        """Whether it speaks of what stands between a rule right below it and the next one like it."""
        is_below = bool(self.label) and not any(self.lines) and twice
        return is_below or self._as_section.names_question or speaks_of_material(self.above)

    def takes(self, opened: Section) -> bool:
        """Whether a labelled line is a part of it: right below its label or text, or like one before it."""
        item = without_number(opened.label)
        if not opened.form or opened.names_question or may_be_asked(opened.text):
            return False
        if opened.form == "heading" and opened.names_material and not self._as_section.names_material:
            return False
        is_within = self._is_right_above(opened) or self._is_title_of(opened)
        if not (is_within or item in self.items or opened.form in self.items):
            return False
        # Below one heading within it, others are within it too.
        self.items.update((item, "heading") if opened.form == "heading" else (item,))
        return True

    def _is_title_of(self, opened: Section) -> bool:
        """Whether a heading is deeper than its own, or the first below a label that has no text itself."""
        if self.form == "label":
            return opened.depth > 0 and not any(map(str.strip, self.lines))
        return opened.depth > self.depth > 0 and self._as_section.names_material

    def _is_right_above(self, opened: Section) -> bool:
        is_new = bool(self.label) and not (self.is_rest or any(self.lines) or self.lines[1:])
        if not self._as_section.names_material:
            return is_new and bool(opened.text)
        is_below = bool(self.lines) and bool(self.lines[-1].strip())
        return is_new or (is_below and bool(opened.text))

    def ended(self, *, is_last: bool = False) -> Iterator[Section]:
        text = "\n".join(self.lines).strip()
        if text or (self.label and not self.is_rest):
            is_apart = len(self.lines) > 1 and not any(map(str.strip, self.lines[:2]))
            yield Section(self.label, text, self.form, is_apart=is_apart, is_last=is_last)


def is_label(text: str) -> bool:
    """Whether a text is one line that names what is to follow, and nothing else."""
    opened = _opened(text.strip())
    return opened is not None and opened.form == "label"


def _announced(text: str) -> Section | None:
    """The label that ends a line behind other sentences, or is one in capitals, if it names its part."""
    if text.isupper() and text[-1:].isalnum() and (speaks_of_material(text) or asks(text)):
        return Section(text, "", "heading")
    *_, last = text.rpartition(". ")
    is_named = text.endswith((":", "\uff1a")) and last != text and (speaks_of_material(last) or asks(last))
    return _opened(last) if is_named else None


def _opened(text: str) -> Section | None:
    """The label of a line that begins a section, with the rest of it; no form for a rule; None of others."""
    line = _HEADING.fullmatch(text)
    if line is None:
        return _announced(text)
    if line["rule"]:
        return Section("", "")
    if line["heading"] or line["bracket"]:
        title = (line["heading"] or line["bracket"]).strip(" :")
        return Section(title, "", "heading", depth=len(line["depth"] or ""))
    if line["bold"]:
        return Section(line["bold"].strip(), line["after"].strip(), "heading")
    label, rest = line["label"].strip(), line["rest"].strip()
    most = _MOST_LABEL if rest else MOST_LABEL_WORDS
    return Section(label, rest, "field" if rest else "label") if word_count(label) <= most else None
