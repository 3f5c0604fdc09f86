"""Finding passages in prompts: those that stand there whole at once, all others by their shingles."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence

from steelyard.recording.provenance._evidence import (
    MOST_PASSAGES,
    MOST_PLACES,
    MOST_PROMPT,
    UNDECIDED,
    PassageMatch,
    decide,
)
from steelyard.recording.provenance._words import words

_SMALL = 50_000
"""Characters of passages and prompts up to which passages are looked for in any order, however many."""
_HEAD = 60
_PRINTED = re.compile(r"[\[({][\s\S]{2,198}[\])}]")
_LEAST = 4
"""Words that are not there by chance when they stand in a row; fewer have to be set off (see `_evidence`)."""


def find_passages(
    passages: Sequence[str], prompts: Sequence[str], *, question: str = ""
) -> tuple[PassageMatch, ...]:
    r"""Find each passage in the prompts, as text, Python repr, JSON, XML, wrapped, cut, or in sentences.

    Args:
        passages: The candidates. Equal ones are found or missed together.
        prompts: The texts that the model was sent, in order; one is read once, however often it is given.
        question: What was asked. It stands in the prompt anyway, so words that a passage shares with it
            prove nothing.

    Returns:
        One PassageMatch for each passage, in the order given.

    Example:
        >>> prompt = "Context: [Document(page_content='Rome has\\nseven hills.')]"
        >>> [s.found for s in find_passages(["Rome has\nseven hills.", "Paris is in France."], [prompt])]
        [True, False]
    """
    unique, read = _within(passages, MOST_PASSAGES), _cut(prompts)
    if not unique:
        return (UNDECIDED,) * len(passages)
    is_large = len(unique) > MOST_PLACES and sum(map(len, (*unique, *read))) > _SMALL
    if _begin_in(read, unique):
        whole = _whole(unique, read, question, is_in_order=is_large)
        if whole is not None:
            return tuple(whole.get(text) or _short(text, unique, read, question) for text in passages)
    sightings = decide(unique, read, question)
    found = _with_short(sightings, unique, read, question)
    return tuple(found.get(text, UNDECIDED) for text in passages)


def _with_short(
    sightings: Mapping[str, PassageMatch], passages: Sequence[str], prompts: Sequence[str], question: str
) -> dict[str, PassageMatch]:
    """The sightings, those of texts of too few words looked at again."""
    found = {text: sightings.get(text, UNDECIDED) for text in passages}
    for text, one in found.items():
        # Data as a database prints it is set off by its own brackets, wherever it stands by itself.
        is_missed = one.found is False and is_printed(text) and not _is_shown_within(text, sightings)
        if one.found is None or is_missed or (one.found and _is_part_of_another(text, passages)):
            again = _short(text, passages, prompts, question)
            found[text] = one if is_missed and not again.found else again
    return found


def _is_shown_within(text: str, sightings: Mapping[str, PassageMatch]) -> bool:
    """Whether a passage that was found holds a text, such as the same under a label."""
    return any(seen.found and text != one and text.strip() in one for one, seen in sightings.items())


def _is_part_of_another(text: str, passages: Sequence[str]) -> bool:
    """Whether a text of few words stands in another passage, which then shows it wherever it stands."""
    own = words(text[:_HEAD])
    if len(own) >= _LEAST or len(passages) > MOST_PLACES:
        return False
    form = f" {' '.join(own)} "
    return any(text.strip() in one != text and form in f" {' '.join(words(one))} " for one in passages)


def _short(text: str, passages: Sequence[str], prompts: Sequence[str], question: str) -> PassageMatch:
    """The sighting of a text of too few words: other than data as a database prints it, chance may do it."""
    form = text.strip()
    if form in question or not is_printed(form) or _is_part_of_another(text, passages):
        return UNDECIDED
    before = 0
    for prompt in prompts:
        if (at := prompt.find(form)) >= 0:
            return PassageMatch(found=True, seen=1.0, position=before + len(words(prompt[:at])))
        before += len(words(prompt))
    return UNDECIDED


def is_printed(text: str) -> bool:
    """Whether a short text is data as Python or JSON prints it: `[(12,)]`."""
    return _PRINTED.fullmatch(text.strip()) is not None and any(map(str.isalnum, text))


def _within(texts: Sequence[str], most: int) -> list[str]:
    """Each text once, but for those that would pass the bound."""
    found: list[str] = []
    for text in dict.fromkeys(texts):
        if len(text) <= most:
            most -= len(text)
            found.append(text)
    return found


def _cut(prompts: Sequence[str]) -> list[str]:
    """Each prompt once, up to the bound."""
    found: list[str] = []
    # The bound is on all prompts together: an agent's hundred calls repeat each other.
    left = MOST_PROMPT
    for text in dict.fromkeys(prompts):
        found.append(text[:left])
        left -= len(found[-1])
    return found


def _begin_in(prompts: Sequence[str], passages: Sequence[str]) -> bool:
    """Whether the first, middle and last passage begin somewhere in a prompt, as they are.

    Where one does not, reading all prompts as words would most likely be in vain.
    """
    some = {passages[at].strip().partition("\n")[0][:_HEAD] for at in (0, len(passages) // 2, -1)}
    return all(any(head in text for text in prompts) for head in some)


def _whole(
    passages: Sequence[str], prompts: Sequence[str], question: str, *, is_in_order: bool
) -> dict[str, PassageMatch] | None:
    """The sightings where every passage stands whole in a prompt and apart from the others; else None.

    That is so for most turns, mostly letter for letter, and takes a fifth of the time.
    """
    # A passage no longer than the question may be found in the question itself.
    least = max(_LEAST, len(words(question)) + 1)
    if not all(_has_words(text, least) for text in passages):
        return None
    placed = _placed(passages, prompts, _in_one_line, is_in_order=is_in_order)
    return placed or _placed(passages, prompts, _in_words, is_in_order=is_in_order)


def _has_words(text: str, least: int) -> bool:
    """Whether a text has so many words. Mostly its beginning tells, where no tag is cut."""
    head = text[: _HEAD * least]
    return ("<" not in head and len(words(head)) > least) or len(words(text)) >= least


def _in_one_line(text: str) -> str:
    return f" {text.strip()} ".replace("\n", " ").replace("\0", " ")


def _in_words(text: str) -> str:
    return f" {' '.join(words(text))} "


def _placed(
    passages: Sequence[str], prompts: Sequence[str], form: Callable[[str], str], *, is_in_order: bool
) -> dict[str, PassageMatch] | None:
    """The sightings of passages that all stand in the prompts in one form, each apart; else None."""
    # The zero character parts the prompts: no passage can begin in one and end in the next.
    row = "\0".join(map(form, prompts))
    found: dict[str, int] = {}
    taken: list[tuple[int, int]] = []
    end = 0
    for text in passages:
        looked_for = form(text)
        # Many passages are looked for where the one before ends: each from the beginning would take too long.
        at = place_of(looked_for, row, end if is_in_order else 0)
        if at < 0:
            return None
        found[text] = at
        end = at + len(looked_for) - 1
        taken.append((at, end))
    taken.sort()
    # Passages that overlap in the prompt share words, and which of them was there takes the slow way.
    if any(start < end for (_, end), (start, _) in itertools.pairwise(taken)):
        return None
    positions = _word_numbers(row, [at for at, _ in taken])
    return {text: PassageMatch(found=True, seen=1.0, position=positions[at]) for text, at in found.items()}


def _word_numbers(row: str, places: Sequence[int]) -> dict[int, int]:
    """How many words stand before each of these places, which go up; marks part the prompts."""
    numbers: dict[int, int] = {}
    before = counted = 0
    for at in places:
        counted += row.count(" ", before, at) - row.count("\0", before, at)
        numbers[at] = counted
        before = at
    return numbers


def place_of(looked_for: str, row: str, start: int = 0) -> int:
    """Where a text stands in another, like `row.find`, without the preparations that a long one takes."""
    head = looked_for[:_HEAD]
    at = row.find(head, start)
    for _ in range(MOST_PLACES):
        if at < 0 or row.startswith(looked_for, at):
            return at
        at = row.find(head, at + 1)
    # After so many false starts the built-in search, which is linear whatever the text, takes over.
    return row.find(looked_for, at) if at >= 0 else at
