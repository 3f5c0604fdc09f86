"""What is template and what is filled in, learnt from the prompts of many turns.

Where nobody tells, prompts of one kind are held against each other: what stays alike under different
questions is instruction, heading or example; what varies was filled in. Only hashes are kept, of a bounded
number of pieces of prompts, in this process.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise
from unicodedata import east_asian_width

from steelyard._internal.forks import ForkLock
from steelyard.recording.provenance import names_speaker
from steelyard.recording.reading import is_question

_TURNS = 5
"""Different questions after which a template counts as known."""
_LEAST = 3
"""Pieces that a template has of its own; two are soon shared by prompts that differ beside them."""
_MOST_TEMPLATES = 256
_MOST_PIECES = 500
_MOST_KEPT = 64
_MOST_CHARACTERS = 100_000
_MOST_PARTS = 4000
_LEAST_REPEATED = 16
"""Width of a line that two texts do not share by chance: a wide character says as much as two letters."""
_LEAST_SAID = 40
"""The same of a sentence: people say some again and again."""
_ASKED = 1
"""Stands for the question among the hashes of pieces."""
_QUESTION = "\0"
"""Stands for the question in a prompt."""
_BEGINNING = 0
"""Stands for the beginning of a prompt among them."""
_SEVERAL = 0
"""Stands for several texts that had a part, in the place of the hash of the one that had it."""
_RECENT = 16
_OFTEN = 0.25
"""The share of other questions under which a text stands that is of a variant of the template."""
_ALIKE = 0.8
"""The share of a template's pieces that a prompt of its kind has at least."""
_OFTEN_FILLED = 0.5
"""The share of the latest turns in which something stands in a place that is filled in."""
_SENTENCE_ENDS = (".", "!", "?", "\u3002", "\uff01", "\uff1f")
_END = re.compile(r"\n|[.!?](?=\s)|[\u3002\uff01\uff1f]")
"""Where a line or a sentence ends."""
_LABEL = re.compile(r"([^\n:]{1,60}[:\uff1a])[ \t]+(?=\S)")


@dataclass(slots=True)
class _Template:
    ends: tuple[int, int]
    """Hashes of the first and the last piece of its first prompt; a template has one of the two at least."""
    pieces: set[int]
    """Hashes of what stood in every prompt so far."""
    questions: set[int] = field(default_factory=set)
    """Hashes of what was asked since a piece was last found to vary, until there are enough."""
    recent: deque[_Filled] = field(default_factory=lambda: deque(maxlen=_RECENT))
    """What stood between its pieces in the latest turns."""

    @property
    def is_learnt(self) -> bool:
        """Whether enough was asked, and enough stayed alike, to tell it from what it is filled in with."""
        return len(self.questions) >= _TURNS and len(self.pieces) >= _LEAST


@dataclass(frozen=True, slots=True)
class _Filled:
    """What one prompt has beside the template's own pieces, as hashes."""

    question: int
    pieces: frozenset[int]
    after: frozenset[int]
    """The template's pieces, or the question, that something stood behind."""


class PromptTemplates:
    """The templates of a process, learnt turn by turn; safe to use from several threads."""

    def __init__(self) -> None:
        self._templates: OrderedDict[int, _Template] = OrderedDict()
        self._by_end: dict[int, list[int]] = {}
        self._parts: dict[int, int] = {}
        self._apart: set[int] = set()
        self._next = 0
        self._lock = ForkLock()

    def filled_in(self, prompt: str, *, question: str) -> list[str] | None:
        """What a prompt's template was filled in with beside the question; None until it is known.

        The prompt is learnt from, whatever is returned.

        Args:
            prompt: What a model was sent.
            question: What was asked; a template is known after five different ones.
        """
        if not question or len(prompt) > _MOST_CHARACTERS:
            return None
        # A question with a colon in it is not parted at it.
        pieces = _pieces(prompt.replace(question, _QUESTION))
        hashes = [_ASKED if piece in question or _QUESTION in piece else hash(piece) for piece in pieces]
        own = [one for one in hashes if one != _ASKED]
        if not own or len(pieces) > _MOST_PIECES:
            return None
        with self._lock:
            template = self._learn(own, hash(question))
            filled = _filled(template, hashes, hash(question))
            repeated = _repeated(template, filled)
            fixed = {_ASKED, *template.pieces}
            is_known = template.is_learnt and not _is_new(template, hashes, repeated)
            template.recent.append(filled)
        if not is_known:
            return None
        return _between(pieces, hashes, fixed, repeated)

    def in_parts(self, text: str) -> list[tuple[str, bool]]:
        """A text in parts, each with whether another text had it, by itself or with the one beside it.

        Of what roots are given those are a template's of the application: a reminder above the question.
        All parts are remembered.
        """
        parts = _parts(text)
        own, told = hash(text), _units(parts)
        with self._lock:
            known = {at for unit, row in told.items() if self._parts.get(unit, own) != own for at in row}
            for one in told:  # what comes again stays longest
                self._parts[one] = own if self._parts.pop(one, own) == own else _SEVERAL
            for one in list(self._parts)[: max(0, len(self._parts) - _MOST_PARTS)]:
                del self._parts[one]
        return [(part, at in known) for at, part in enumerate(parts)]

    def tells_typed(self, text: str) -> bool:
        """Whether a text of several lines or sentences, none of which came before, is all the user's own.

        Nobody knows at first. Once users have typed several such texts, code puts no words around them.
        """
        is_doubtful = "\n" in text or bool(_units(_parts(text)))
        with self._lock:
            if len(self._apart) < _TURNS and is_doubtful:
                self._apart.add(hash(text))
            return not is_doubtful or len(self._apart) >= _TURNS

    def forget(self) -> None:
        """Begin anew, as a new process does."""
        with self._lock:
            self._apart.clear()
            self._parts.clear()
            self._templates.clear()
            self._by_end.clear()

    def _learn(self, row: list[int], question: int) -> _Template:
        key, hashes = self._like(row), set(row)
        if key is None:
            key, self._next = self._next, self._next + 1
            self._templates[key] = _Template(ends=(row[0], row[-1]), pieces=set(hashes))
            for end in {row[0], row[-1]}:
                self._by_end.setdefault(end, []).append(key)
            self._forget()
        template = self._templates[key]
        self._templates.move_to_end(key)
        if not template.pieces <= hashes:
            template.pieces &= hashes
            # The passages of the first prompt were taken for a part of it; a later change begins anew.
            if len(template.recent) > 1:
                template.questions.clear()
                template.recent.clear()
        if len(template.questions) < _TURNS:
            template.questions.add(question)
        return template

    def _like(self, row: list[int]) -> int | None:
        """The template that begins or ends like a prompt and shares most with it, if that is enough."""
        hashes = set(row)
        keys = {key for end in (row[0], row[-1]) for key in self._by_end.get(end, ())}
        shared = {key: len(self._templates[key].pieces & hashes) for key in keys}
        best = max(shared, key=shared.__getitem__, default=None)
        if best is None:
            return None
        template = self._templates[best]
        # The first prompt of a kind has its own passages among its pieces still.
        is_first = len(template.questions) < 2
        needed = min(2, len(template.pieces)) if is_first else _ALIKE * len(template.pieces)
        return best if shared[best] >= needed else None

    def _forget(self) -> None:
        while len(self._templates) > _MOST_TEMPLATES:
            oldest, template = self._templates.popitem(last=False)
            for end in set(template.ends):
                self._by_end[end].remove(oldest)
                if not self._by_end[end]:
                    del self._by_end[end]


def _parts(text: str) -> list[str]:
    """The sentences of a text, and lines without any."""
    ends = [found.end() for found in _END.finditer(text[:_MOST_CHARACTERS])]
    return [text[begin:end] for begin, end in pairwise((0, *ends, len(text)))]


def _lines(parts: list[str]) -> list[tuple[int, ...]]:
    """The parts of each line that has words."""
    number = list(accumulate((part[-1:] == "\n" for part in parts), initial=0))
    said = (at for at, part in enumerate(parts) if any(map(str.isalnum, part)))
    return [tuple(row) for _, row in groupby(said, number.__getitem__)]


def _width(text: str) -> int:
    return len(text) if text.isascii() else len(text) + sum(east_asian_width(one) in "WF" for one in text)


def _is_head(line: str) -> bool:
    """Whether a line is a tag, a heading or a label."""
    is_marked = line[0] in "#*=[" or line.rstrip("*")[-1:] in (":", "\uff1a")
    return is_marked or line[0] + line[-1] == "<>"


def _units(parts: list[str]) -> dict[int, tuple[int, ...]]:
    """What two texts do not share by chance: the hash of each, and which parts it has.

    Lines, long sentences, and a tag, a heading or a label with the line beside it. Not of a text that is all
    one part. A question that is asked again is no template's.
    """
    lines = _lines(parts)
    said = [at for row in lines for at in row]
    if len(said) < 2:
        return {}

    def form(row: Iterable[int]) -> str:
        return "".join(parts[at] for at in row).strip()

    tags = {row for row in lines if _is_head(form(row))}
    pairs = [(*one, *other) for one, other in pairwise(lines) if tags & {one, other}]
    long = [(at,) for at in said if _width(parts[at].strip()) >= _LEAST_SAID]
    # What stands behind a long sentence on its line may be typed.
    whole = [row for row in lines if not any((at,) in long for at in row)]
    rows = [*long, *(row for row in (*whole, *pairs) if _width(form(row)) >= _LEAST_REPEATED)]
    return {hash(one): row for row in rows if not is_question(one := form(row))}


def _filled(template: _Template, hashes: list[int], question: int) -> _Filled:
    last, pieces, after = _BEGINNING, set[int](), set[int]()
    for one in hashes:
        if one == _ASKED or one in template.pieces:
            last = one
        else:
            pieces.add(one)
            after.add(last)
    # The same ones of the same pieces each time, so that long prompts take no more memory than short ones.
    return _Filled(question, frozenset(sorted(pieces)[:_MOST_KEPT]), frozenset(after))


def _repeated(template: _Template, filled: _Filled) -> set[int]:
    """Pieces that stood under many other questions too: words of a variant of the template."""
    others = [one for one in template.recent if one.question != filled.question]
    counts = Counter(piece for one in others for piece in one.pieces & filled.pieces)
    return {piece for piece, count in counts.items() if count >= max(2, _OFTEN * len(others))}


def _is_new(template: _Template, hashes: list[int], repeated: set[int]) -> bool:
    """Whether something stands where mostly nothing stood, or before all that stays alike.

    Both may be words of a variant of the template: prompts of several kinds that share their end, each with
    instructions of its own, have nothing alike before these.
    """
    own = _filled(template, [one for one in hashes if one not in repeated], 0)
    places = Counter(place for one in template.recent for place in one.after)
    least = max(1, _OFTEN_FILLED * len(template.recent))
    return any(place == _BEGINNING or places[place] < least for place in own.after)


def _pieces(prompt: str) -> list[str]:
    """The lines of a prompt; a label at the beginning of one is a piece of its own."""
    found: list[str] = []
    for line in prompt.split("\n"):
        label = _LABEL.match(line)
        if label:
            found += (label[1], line[label.end() :].strip())
        elif line.strip():
            found.append(line.strip())
    return found


def _between(pieces: list[str], hashes: list[int], fixed: set[int], repeated: set[int]) -> list[str]:
    """What stands between the pieces of a template, but for what one of them says that somebody said.

    Pieces of other prompts, or that this one has several times, belong to what they are within: names of
    fields, common values.
    """
    counts = Counter(hashes)
    slots: list[list[tuple[str, bool]]] = [[]]
    is_said = False
    for at, (piece, one) in enumerate(zip(pieces, hashes, strict=True), 1):
        # What ends the prompt is the template's, although passages may hold the like; a rule may be theirs.
        is_single = counts[one] == 1 and _has_words(piece)
        is_own = one in fixed and (is_single or one == _ASKED or at == len(pieces))
        if is_own or (names_speaker(piece) and one in fixed | repeated):
            if one == _ASKED and _is_heading(slots[-1]):
                slots[-1].pop()
            slots.append([])
            is_said = names_speaker(piece)
        elif not is_said:
            slots[-1].append((piece, one in fixed | repeated))
    return ["\n".join(filled) for slot in slots if (filled := _within(slot))]


def _is_heading(slot: list[tuple[str, bool]]) -> bool:
    """Whether words of many prompts that end no sentence stand right above the question: its own heading."""
    piece, repeated = slot[-1] if slot else ("", False)
    return repeated and _has_words(piece) and not piece.endswith(_SENTENCE_ENDS)


def _within(slot: list[tuple[str, bool]]) -> list[str]:
    """What fills a place: from what varies first to what varies last, and on if others are within already."""
    varies = [at for at, (_, repeated) in enumerate(slot) if not repeated]
    if not varies:
        return []
    is_whole = len(varies) == varies[-1] - varies[0] + 1
    found = [piece for piece, _ in slot[varies[0] : varies[-1] + 1 if is_whole else None]]
    while found and _only_ends(found[-1], found):
        found.pop()
    return found


def _has_words(piece: str) -> bool:
    return any(map(str.isalnum, piece))


def _only_ends(last: str, pieces: list[str]) -> bool:
    """Whether a last line is a rule, or the end of a tag that began before."""
    if not _has_words(last):
        return True
    return last[:2] == "</" and last[-1] == ">" and not any(f"<{last[2:-1]}" in one for one in pieces)


TEMPLATES = PromptTemplates()
"""The templates of this process."""
