"""What the collection lacks: the questions that found nothing, alike ones together."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from steelyard._internal.text import shorten
from steelyard.errors import JudgeError
from steelyard.judge import StaticEmbedder
from steelyard.results import ResultsReader
from steelyard.results.queries import TurnFilter, TurnRow
from steelyard.scores import Cause, Usage
from steelyard.stats import unit_rows

if TYPE_CHECKING:
    from steelyard.judge.chat import ChatWriter

LACKING: Final[tuple[Cause, ...]] = ("outside_collection", "passage_not_found", "nothing_retrieved")
"""Causes of turns whose question the collection, or what was found in it, did not answer."""
_ALIKE = 0.6
"""Cosine from which two questions count as alike. Of unlike questions one pair in a thousand has more."""
_PAGE = 500
_LATEST = 2_000
_NAME = (
    "Users asked these questions, and the collection of documents did not answer them. name: what a document "
    "would be called that does, in at most six words, in the language of the questions."
)
_NAME_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
_LONGEST = 80
_SENT = 20
"""Questions of a group that its name is made from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gap:
    """Questions that are alike and found nothing."""

    question: str = field(repr=False)
    """The one that is most like the others, in its user's words."""
    turns: int
    """How many turns asked it, in whatever words."""
    causes: Mapping[str, int]
    record_ids: tuple[str, ...]
    questions: tuple[str, ...] = field(default=(), repr=False)
    """Up to twenty different questions, the latest first."""
    name: str = field(default="", repr=False)
    """What a model calls them; empty if none was asked, or it gave no name."""


def find_gaps(reader: ResultsReader, *, since: float | None = None) -> list[Gap]:
    """Questions that the collection did not answer, the most frequent first; those not stored are left out.

    The latest 2,000 turns of each cause are looked at. Questions are grouped one after the other: each joins
    the group whose first question is most like it, by the cosine of their static vectors, if that is at least
    .6; else it begins a group. No text leaves this machine.
    """
    rows = [
        (row, cause) for cause in LACKING for row in _rows(reader, cause, since=since) if row.question.strip()
    ]
    rows.sort(key=lambda one: one[0].key, reverse=True)
    if not rows:
        return []
    vectors = unit_rows(asyncio.run(StaticEmbedder().embed([row.question for row, _ in rows]))[0])
    groups = [_gap([rows[at] for at in group], vectors[group]) for group in _alike(vectors)]
    return sorted(groups, key=lambda gap: -gap.turns)


async def name_gaps(gaps: Sequence[Gap], writer: ChatWriter) -> tuple[list[Gap], Usage]:
    """Have a chat model name groups of questions, one request each.

    Args:
        gaps: The groups; their questions are sent, as data.
        writer: The model. It stays open.

    Returns:
        The groups in their order, and what naming them took. A group whose request fails has no name.
    """
    made = await asyncio.gather(*(_named(gap, writer) for gap in gaps))
    return [gap for gap, _ in made], sum((usage for _, usage in made), Usage())


async def _named(gap: Gap, writer: ChatWriter) -> tuple[Gap, Usage]:
    blocks = [(f"question q{at}", question) for at, question in enumerate(gap.questions, start=1)]
    try:
        written = await writer.write(_NAME, blocks, _NAME_SCHEMA)
    except JudgeError as error:
        return gap, Usage(requests=error.requests)
    name = written.data.get("name")
    return replace(gap, name=shorten(name, _LONGEST) if isinstance(name, str) else ""), written.usage


def _rows(reader: ResultsReader, cause: Cause, *, since: float | None) -> Iterable[TurnRow]:
    before, left = None, _LATEST
    while left > 0:
        page = reader.turns(TurnFilter(cause=cause), before=before, limit=min(_PAGE, left))
        for row in page:
            if since is not None and row.happened_at < since:
                return
            yield row
        if len(page) < _PAGE:
            return
        before, left = page[-1].key, left - len(page)


def _alike(vectors: npt.NDArray[np.float32]) -> list[list[int]]:
    """Indices by group, in order of their first."""
    groups: list[list[int]] = []
    for at, vector in enumerate(vectors):
        likeness = vectors[[group[0] for group in groups]] @ vector if groups else np.zeros(0)
        best = int(likeness.argmax()) if groups else -1
        if groups and likeness[best] >= _ALIKE:
            groups[best].append(at)
        else:
            groups.append([at])
    return groups


def _gap(rows: Sequence[tuple[TurnRow, Cause]], vectors: npt.NDArray[np.float32]) -> Gap:
    middle = int((vectors @ vectors.sum(axis=0)).argmax())
    return Gap(
        question=rows[middle][0].question,
        turns=len(rows),
        causes=Counter(cause for _, cause in rows),
        record_ids=tuple(row.record_id for row, _ in rows),
        questions=tuple(dict.fromkeys(row.question for row, _ in rows))[:_SENT],
    )
