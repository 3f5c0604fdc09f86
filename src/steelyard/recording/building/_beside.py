"""What a prompt shows beside the passages that are known, and whether a state keeps any of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from steelyard.record import Context
from steelyard.recording.building._steps import Steps, is_telling
from steelyard.recording.provenance import (
    guessed_passages,
    is_spaceless,
    json_strings,
    place_of,
    plain,
    word_count,
    words,
)
from steelyard.recording.reading import contexts_of, state_of

About = Callable[[], Iterable[str]]
"""What tells of passages beside their texts: ids, titles, addresses."""
_LONGEST = 100_000  # characters
MUCH = 8
"""Words that no label has."""
MUCH_SHARE = 0.4
"""From this share of what is known on, other words are much."""
MORE = "contexts: text beside the retrieved passages came from a place that was not seen; see turn.contexts"
"""Note of a prompt that shows more than the known passages: a window around them, a neighbour, a parent."""
CUT = (
    "contexts: a passage goes on in the prompt where the text that is known of it was cut; see turn.contexts"
)
"""Note of a passage of which only the beginning was told, a preview: its line is taken from the prompt."""
_ELLIPSES = ("...", "\u2026")
_ENDS = re.compile(r"\n|</|\\n|[\"'](?=\s?[,}\]])")
"""What ends the line of a passage in a prompt: a tag, or what ends a text in JSON."""
_LAST = 40
"""Characters of a passage by whose end it is found again."""
_MOST_BETWEEN = 32
"""Passages beside which other texts are looked for: each takes a search through the prompts."""
_MOST_BEHIND = 1_000
"""Characters behind a passage in which its line may go on."""
_LEAST_BESIDE = 0.3
"""From this share of what the known passages take, the rest of a prompt may be their surroundings."""


def numbered_once(contexts: Iterable[Context], found: Iterable[Context]) -> list[Context]:
    """Passages without what has only another number above it: a step that numbers them does so each time."""
    whole, once = [one.text.strip() for one in found], dict[str, Context]()
    for one in contexts:
        head, _, rest = one.text.strip().partition("\n")
        is_numbered = bool(rest) and not is_telling(head) and one.text.strip() not in whole
        once.setdefault(rest if is_numbered and any(rest in text for text in whole) else one.text, one)
    return list(once.values())


def prompts_with_room(texts: Sequence[str], prompts: Sequence[str]) -> list[str]:
    """The prompts in which much may stand beside the known passages; none if some are in another form there.

    Those may have it all around them, too.
    """
    roomy = [prompt for prompt in prompts if len(prompt) <= _LONGEST and _has_room(prompt, texts)]
    return roomy if roomy and all(any(text in prompt for prompt in prompts) for text in texts) else []


def is_widened(
    texts: Sequence[str], roomy: Sequence[str], turn: Steps, question: str, *, about: About = tuple
) -> bool:
    """Whether prompts hold much beside the known passages: between them, or in parts with their name.

    Args:
        texts: The passages.
        roomy: The prompts in which there is room beside them.
        turn: The turn.
        question: What was asked.
        about: What is told about the passages: that is printed beside them, and says no more.
    """
    known = [*map(plain, texts), *_replied(turn)]
    named = [part for one in roomy for part in guessed_passages(one, question)]
    parts = (*_around(roomy, texts, question), *named)
    return any(surrounds(plain(part), known, about=about) for part in parts) or _has_more_behind(named, known)


def _has_more_behind(named: Sequence[str], known: Sequence[str]) -> bool:
    """Whether behind the parts with a name for passages that hold known ones another says something else.

    What stands before them may be a template's example.
    """
    held = [any(one in plain(part) or plain(part) in one for one in known) for part in named]
    last = max((at for at, is_held in enumerate(held) if is_held), default=len(named))
    return any(map(is_telling, named[last + 1 :]))


def surrounds(text: str, known: Sequence[str], *, about: About = tuple) -> bool:
    """Whether a text that holds known passages says much besides: a window around them, say.

    Labels repeat each other, and say little beside what they stand before.

    Args:
        text: The text, as `plain` writes it.
        known: The passages, as `plain` writes them.
        about: What is told about them; it is read only where the text says much.
    """
    inside, rest = _parted(text, known)
    more = set(words(rest))
    if not inside or len(more) < MUCH:
        return False
    told = {word for one in inside for word in words(one)}
    least = max(MUCH, MUCH_SHARE * len(told))
    if len(more - told) < least:
        return False
    return len(set(words(_parted(rest, list(map(plain, about())))[1])) - told) >= least


def _parted(text: str, known: Sequence[str]) -> tuple[list[str], str]:
    """The known passages that a text holds, and the rest of it."""
    inside: list[str] = []
    between: list[str] = []
    others: list[str] = []
    end = 0
    # Mostly they stand there in their order, and one search through the text finds them all.
    for one in filter(None, known):
        at = text.find(one, end)
        if at < 0:
            others.append(one)
            continue
        inside.append(one)
        between.append(text[end:at])
        end = at + len(one)
    rest = " ".join((*between, text[end:]))
    held = [one for one in others if one in text]
    for one in sorted((*inside, *held), key=len, reverse=True) if others else ():
        rest = rest.replace(one, " ")
    return inside + held, rest


def _replied(turn: Steps) -> list[str]:
    """What models replied, whole and the texts in it: what a prompt shows of that, they brought there."""
    replies = (reply for call in (*turn.earlier, *turn.calls) for reply in call.replies)
    texts = (text for reply in replies for text in json_strings(reply) if word_count(text) > 1)
    return list(dict.fromkeys(map(plain, texts)))


def _around(prompts: Iterable[str], texts: Sequence[str], question: str) -> Iterator[str]:
    """What stands from the first known passage of each prompt to the end of the last, and behind it."""
    for prompt in prompts if len(texts) <= _MOST_BETWEEN else ():
        found = sorted((at, at + len(text)) for text in texts if (at := prompt.find(text)) >= 0)
        end = max((end for _, end in found), default=0)
        more = _on_its_line(prompt[end : end + _MOST_BEHIND], question) if found else ""
        if more or len(found) > 1:
            yield prompt[found[0][0] : end + len(more)]


def _on_its_line(rest: str, question: str) -> str:
    """The words that go on behind a passage in its line, up to the question: no marks, no labels."""
    line = rest.split("\n", 1)[0].split(question or "\n", 1)[0]
    words = line.lstrip(".!?,;")
    return line if words[:1] == " " and words.lstrip()[:1].isalnum() else ""


def cut_off(texts: Sequence[str], prompts: Sequence[str]) -> dict[str, str]:
    """How the line of each of these known passages goes on that a prompt shows more of."""
    rests = ((text, _rest(text, prompts)) for text in texts[:_MOST_BETWEEN])
    return {text: rest for text, rest in rests if rest is not None}


def completed(contexts: Iterable[Context], rests: Mapping[str, str]) -> tuple[Context, ...]:
    """The passages with the rest of their line in a prompt, if they were surely told cut: a mark says so."""
    return tuple(
        replace(one, text=_whole(one.text, rests[one.text])) if one.text in rests else one for one in contexts
    )


def _whole(text: str, rest: str) -> str:
    mark = _mark(text)
    is_cut = mark or (text[-1:].isalnum() and rest[:1].isalnum())
    return f"{text.rstrip().removesuffix(mark)}{rest}" if is_cut else text


def _mark(text: str) -> str:
    return next((mark for mark in _ELLIPSES if text.rstrip().endswith(mark)), "")


def _rest(text: str, prompts: Sequence[str]) -> str | None:
    """How the line of a text goes on in a prompt: where its mark says that it was cut, or within a word."""
    mark, text = _mark(text), text.rstrip()
    end = text.removesuffix(mark)[-_LAST:]
    if not end.strip() or not (mark or (end[-1].isalnum() and not is_spaceless(end[-1]))):
        return None
    if mark and any(text in prompt for prompt in prompts):
        return None
    rests = (prompt.partition(end)[2][:_MOST_BEHIND] for prompt in prompts)
    # A passage that was left without a stop may be followed by anything but the rest of its sentence.
    found = (rest for rest in rests if (rest.strip() if mark else _goes_on_with(rest.lstrip(" "))))
    return next((_ENDS.split(rest, maxsplit=1)[0].rstrip() for rest in found), None)


def _goes_on_with(rest: str) -> bool:
    """Whether what follows a text without a stop is of the same sentence, or its stop and the next one."""
    return rest[:1].islower() or (rest[:2] == ". " and rest[2:].lstrip()[:1].isupper())


def _has_room(prompt: str, texts: Sequence[str]) -> bool:
    """Whether much may stand beside the passages it holds: mostly the rest is a few lines of a template."""
    size = sum(len(text) for text in set(texts) if place_of(text, prompt) >= 0)
    return size > 0 and len(prompt) - size >= _LEAST_BESIDE * size


def is_emptied(turn: Steps) -> bool:
    """Whether a place of the state that held what was found, or a part of it, holds nothing in the end."""
    empty = [name for name, value in (state_of(turn.returned) or {}).items() if value == []]
    found = {one.text for step in turn.retrievals for one in step.contexts or ()} if empty else set[str]()
    return bool(found) and any(_holds(state_of(step.returned), empty, found) for step in turn.steps)


def _holds(state: Mapping[str, Any] | None, names: Iterable[str], texts: Collection[str]) -> bool:
    lists = (one for name in names if isinstance(one := (state or {}).get(name), list))
    return any(one.text in texts for held in lists for one in contexts_of(held))
