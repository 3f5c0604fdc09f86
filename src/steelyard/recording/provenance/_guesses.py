"""What a prompt that nobody tells of seems to ask, and which of its sections seem to hold passages.

What is found here is a guess, and is said to be one. It is asked only where nothing told of passages, or of
the question. A template that marks the question marks its material alike, so that the form of the marks tells
what no known word does.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence

from steelyard.recording.provenance._find import is_printed
from steelyard.recording.provenance._sections import (
    ASKED,
    ENDED,
    MOST_LABEL_WORDS,
    MOST_QUESTION,
    Section,
    asks,
    is_label,
    may_be_asked,
    sections,
    speaks_of_material,
    without_number,
    without_rule,
)
from steelyard.recording.provenance._words import finds_nothing, names_model, word_count

_LEAST = 4
_TELLING = 8  # words of what is taken for material by the form of its marks alone
_NOTHING = "[]{}()\"' \t\n"
_GAP = re.compile(r"^([^\n]+)\n[ \t]{0,20}\n[ \t]{0,20}\n\s{0,40}[^\n]{0,40}\Z", re.MULTILINE)
"""A line with nothing but blank lines below it, up to the label of the question."""
_BULLETS = "-*\N{BULLET}"
_AROUND = "\"'`*"


def guessed_question(prompt: str) -> str:
    """The question that a prompt names, or its last line if that asks; empty if neither is there."""
    found = sections(prompt)
    if named := [one for one in _unanswered(found) if one.text and one.names_question]:
        return _asked(named[-1])
    lines = [line.strip() for line in prompt.split("\n") if line.strip()]
    label, _, rest = (lines[-1] if lines else "").rpartition(": ")
    if label and word_count(label) <= MOST_LABEL_WORDS and asks(label):
        return rest.strip()
    return (
        _asked_by_form(found)
        or next(filter(may_be_asked, lines[-1:] + lines[:1]), "")
        or _only_asked(prompt, found)
    )


def _unanswered(found: Sequence[Section]) -> list[Section]:
    """The sections without those that one with a model's words follows: an earlier exchange."""
    pairs = itertools.pairwise([*found, Section("", "")])
    return [one for one, next_ in pairs if not (next_.text and names_model(next_.label))]


def _asked_by_form(found: Sequence[Section]) -> str:
    """The question of the last section that asks, or of the only one beside what is named as passages."""
    marked = [one for one in _unanswered(found) if one.form and one.text and not one.names_material]
    asking = [one for one in marked if may_be_asked(_asked(one))]
    if not asking and len(marked) == 1 and _named(found) and word_count(marked[0].text) <= MOST_QUESTION:
        asking = marked
    return _asked(asking[-1]) if asking else ""


def labelled_question(text: str) -> str:
    """The question in a text that is nothing but a question with its label or its tags; empty if it is not.

    >>> labelled_question("<question>How many hills?</question>")
    'How many hills?'
    """
    found = sections(text)
    return _asked(found[0]) if len(found) == 1 and found[0].names_question else ""


def _asked(section: Section) -> str:
    """The question in a section: what follows it is the template's, if no tag ends it."""
    first = next((part for part in section.text.split("\n", 1)), "")
    above, _, rest = section.text.partition("\n\n")
    if section.form != "tag" and may_be_asked(first):
        return _unquoted(first)
    is_over = section.form != "tag" and bool(rest) and "\n\n" not in rest and not may_be_asked(rest)
    return _unquoted(above if is_over else section.text)


def _unquoted(text: str) -> str:
    """A text without marks that stand around the whole of it."""
    text = text.strip()
    while len(text) > 1 and text[0] in _AROUND and text[-1] == text[0]:
        text = text[1:-1].strip()
    return text


def _only_asked(prompt: str, found: Sequence[Section]) -> str:
    """The only line outside of what seem to be passages that asks something."""
    for passage in _named(found):
        prompt = prompt.replace(passage, "\n")
    asked = [line.strip() for line in prompt.split("\n") if may_be_asked(line.strip())]
    return asked[0] if len(asked) == 1 else ""


def guessed_passages(prompt: str, question: str, *, lists: bool = False) -> list[str]:
    """The sections of a prompt that seem to hold passages.

    What stands within the question is the user's, whatever it looks like.
    """
    question = question or guessed_question(prompt)
    found = sections(prompt.replace(question, ASKED) if question else prompt, lists=lists)
    return _named(found) or _numbered(found) or _in_brackets(found) or _beside_question(found)


def holds_passages(prompt: str, *, lists: bool = True) -> bool:
    """Whether a prompt has a section that is named as passages are, and no question to go with it.

    Args:
        prompt: The prompt.
        lists: Whether one counts that is a list of lines with a mark each.
    """
    found = sections(prompt)
    if any(one.text and one.names_question for one in found):
        return False  # an example
    named = [one.material for one in found if one.form and one.names_material]
    return any(_is_telling(text) and (lists or not _is_list(text)) for text in named)


def _is_list(text: str) -> bool:
    return all(line.lstrip()[:1] in _BULLETS for line in text.split("\n") if line.strip())


def names_both(prompt: str) -> bool:
    """Whether a prompt names a question and, in another section, passages."""
    found = [one for one in sections(prompt) if one.form and one.text]
    return any(one.names_question for one in found) and any(
        one.names_material and _is_telling(one.material) for one in found if not one.names_question
    )


def names_question_within(text: str) -> bool:
    r"""Whether a text of several lines names its question, after other words: a template of the caller's own.

    >>> names_question_within("Today is Monday.\nQuestion: How many hills?")
    True
    """
    found = [one.names_question for one in sections(text) if one.text] if "\n" in text else ()
    return any(found) and not all(found)


def has_empty_place(prompt: str, question: str) -> bool:
    r"""Whether a prompt has a place for passages, by its name or its form, and nothing in it.

    >>> has_empty_place("Use the context.\nContext:\n\nQuestion: How many?", "How many?")
    True
    """
    if not question or question not in prompt:
        return False
    found = sections(prompt.replace(question, ASKED))
    places = _places(found)
    if places:
        is_open = bool(places[-1].text) or places != found[-1:]
        # A label with nothing behind it is the next place: "Context:\nAnswer:".
        told = (one.material.strip(_NOTHING) for one in places if not is_label(one.material))
        return is_open and not any(text and not finds_nothing(text) for text in told)
    if beside := _tags_beside_question(found):
        return not any(one.text.strip(_NOTHING) for one in beside)
    gap = _GAP.search(prompt[: prompt.rindex(question)][-1000:])
    return gap is not None and speaks_of_material(gap[1])


def _tags_beside_question(found: Sequence[Section]) -> list[Section]:
    tags = [one for one in found if one.form == "tag"]
    return [one for one in tags if ASKED not in one.text] if any(ASKED in one.text for one in tags) else []


def _named(found: Sequence[Section]) -> list[str]:
    """The sections with a usual name for passages, those that tags end before others."""
    headed = [one for one in _places(found) if _is_telling(one.material)]
    marked = {one.form for one in found if one.form == "heading" and ASKED in one.text}
    headed = [one for one in headed if one.form in marked] or headed
    texts = [one.material for one in headed if one.form == "tag"] or _last_of_each(headed, found)
    plain = [one.text for one in found if not one.form]
    return texts or [text for one in plain if (text := _below_instruction(one) or _above_instruction(one))]


def _places(found: Sequence[Section]) -> list[Section]:
    """The sections named as passages are, without a heading right above another: it says what for."""
    pairs = itertools.pairwise([*found, Section("", "")])
    named = ((one, below) for one, below in pairs if one.form and one.names_material)
    return [
        one
        for one, below in named
        if not (one.form == "heading" and below.form == "label" and below.names_material)
    ]


def _is_telling(text: str) -> bool:
    return len(text) > 30 or word_count(text) >= _LEAST


def _last_of_each(headed: Sequence[Section], found: Sequence[Section]) -> list[str]:
    """The texts; where a template shows how it is done, with a question each time, those of the last time."""
    asked = Counter(one.label for one in found if one.names_question)
    labels = [one.label for one in headed]
    is_shown = bool(asked) and max(asked.values()) > 1 and len(set(labels)) < len(labels)
    return [one.material for at, one in enumerate(headed) if not (is_shown and one.label in labels[at + 1 :])]


def _numbered(found: Sequence[Section]) -> list[str]:
    """Sections whose labels differ in a number alone: pages, items."""
    numbered = [one for one in found if without_number(one.label) != one.label and one.material]
    kinds = Counter(without_number(one.label) for one in numbered)
    kind, count = kinds.most_common(1)[0] if kinds else ("", 0)
    texts = [one.material for one in numbered if without_number(one.label) == kind]
    return texts if count > 1 and all(word_count(text) >= _TELLING for text in texts) else []


def _in_brackets(found: Sequence[Section]) -> list[str]:
    """The section below a label of any language that is nothing but parts with their number in brackets."""
    blocks = (one.text for one in found if one.form == "label" and _BRACKETED.match(one.text))
    return next(([block] for block in blocks if len(numbered_parts(block)) > 1), [])


def _beside_question(found: Sequence[Section]) -> list[str]:
    """The longest section that is marked like that of the question, or by tags, with those of its label."""
    asked = next((one for one in reversed(found) if one.form and ASKED in one.text), None)
    if asked is None:
        return []
    forms = {"tag": ("tag",), "heading": (*ENDED, "heading")}.get(asked.form, (*ENDED, "heading", "label"))
    alike = [one for one in found if one.form in forms and one.label != asked.label]
    # A list of lines is mostly one of instructions.
    longest = max(alike, key=lambda one: (not _is_list(one.material), len(one.material)), default=asked)
    same = [one.material for one in alike if without_number(one.label) == without_number(longest.label)]
    least = _LEAST if is_printed(longest.material) else _TELLING
    return same if longest is not asked and word_count(longest.material) >= least else []


def _below_instruction(text: str) -> str:
    """What stands below a first paragraph that speaks of it, such as "Use only this context."."""
    first, _, rest = text.partition("\n\n")
    rest = rest.partition(ASKED)[0].strip()
    return rest if speaks_of_material(first) and word_count(rest) >= _TELLING else ""


def _above_instruction(text: str) -> str:
    """What stands above the question, if what follows it speaks of that: "Use the provided context only."."""
    above, asked, rest = text.partition(f"\n{ASKED}\n")
    above = above.strip()
    return above if asked and speaks_of_material(rest) and word_count(above) >= _TELLING else ""


_OPENING, _CLOSING = "[(<{\u3010", "])>}\u3011"
_BRACKETED = re.compile(r"[\[(\u3010][^\[\]\n]{1,200}[\])\u3011](?!\()")
_MOST_BEFORE = 24  # characters before a part's number
_MOST_HEAD = 8  # words of a line that stands above a passage


def numbered_parts(block: str) -> list[str]:
    r"""The parts of a block that begin alike, but for a number that counts, without what is above each.

    >>> numbered_parts("[Source 1: law.pdf]\nRome.\n\n[Source 2: map.pdf]\nParis.\n\nUse these only.")
    ['Rome.', 'Paris.']
    """
    lines = block.split("\n")
    before, first, _ = _marked(lines[0])
    parts: list[list[str]] = []
    for line in lines if first in (0, 1) else ():
        begins, number, rest = _marked(line)
        if begins == before and number == first + len(parts):
            parts.append([rest])
        else:
            parts[-1].append(line)
    texts = _below_heads([(part[0], without_rule("\n".join(part[1:]))) for part in parts], before)
    if len(texts) > 1 and not any("\n\n" in text for text in texts[:-1]):
        texts[-1] = texts[-1].partition("\n\n")[0]  # what follows a list of paragraphs is the template's
    return texts or _headed(lines) or [block]


def parts_of_blocks(blocks: Sequence[str]) -> list[str]:
    """The parts of some blocks of one prompt; rules may stand between parts whose numbers go on."""
    is_one = len(blocks) > 1 and all(_marked(block.partition("\n")[0])[1] >= 0 for block in blocks)
    whole = ["\n\n".join(blocks)] if is_one else blocks
    return [part for block in whole for part in tagged_parts(block) or numbered_parts(block)]


def _headed(lines: list[str]) -> list[str]:
    """The parts of a block that each begin in brackets, of which the first begins the block."""
    heads = [
        at
        for at, line in enumerate(lines)
        if _BRACKETED.match(line) and not "".join(lines[at - 1 : at]).strip()
    ]
    pairs = itertools.pairwise([*heads, len(lines)]) if heads[:1] == [0] and len(heads) > 1 else ()
    parts = ((lines[at], without_rule("\n".join(lines[at + 1 : end])), lines[at][:1]) for at, end in pairs)
    return [text for part in parts if (text := _below_head(*part))]


def tagged_parts(block: str) -> list[str]:
    """The parts of a block that is nothing but elements of one name with a text each; none of another."""
    if not block.lstrip().startswith("<"):
        return []
    found = sections(block)
    is_listed = len({(one.form, one.label) for one in found}) == 1 and found[0].form == "tag"
    return [one.text for one in found] if is_listed and not any("</" in one.text for one in found) else []


def _marked(line: str) -> tuple[str, int, str]:
    """What stands before the number of a line that begins a part, the number, and the rest; -1 of others."""
    at = next((at for at, one in enumerate(line[:_MOST_BEFORE]) if "0" <= one <= "9"), 0)
    number = "".join(itertools.takewhile(str.isdecimal, line[at : at + 4]))
    before, rest = line[:at].lstrip(), line[at + len(number) :]
    is_mark = before[:2].strip() not in ("", *_BULLETS) and (
        not rest.strip() or rest.lstrip()[0] in ":.-*|([])>\u3011"
    )
    return (before, int(number), rest) if is_mark and number else ("", -1, "")


def _below_heads(parts: Sequence[tuple[str, str]], before: str) -> list[str]:
    """Parts without what stands above each: all are titles if a blank line stands below every one."""
    is_apart = len(parts) > 1 and all(text.startswith("\n") and text.strip() for _, text in parts)
    return [_below_head(head, text.strip() if is_apart else text, before) for head, text in parts]


def _below_head(head: str, text: str, before: str) -> str:
    """A part without its mark, and without a title, a source or a score that stands behind that."""
    if open_ := [one for one in before if one in _OPENING]:
        head = head.partition(_CLOSING[_OPENING.index(open_[-1])])[2]
    head = head.lstrip(" \t:.-*|])>\u3011")
    if head.startswith("(") and word_count(head.partition(")")[0]) <= _MOST_HEAD:
        head = head.partition(")")[2].lstrip(" :")
    is_short = all(word_count(one) <= _MOST_HEAD for one in head.split(" | "))
    is_title = is_short and head.rstrip()[-1:] not in (".", "!", "?", "\u3002")
    is_above = bool(text) and not (head and text.startswith("\n"))
    return (text if is_title and is_above else f"{head}\n{text}").strip()
