"""Which passages to ask about next, in which way; and what lies near what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import ceil

import numpy as np
import numpy.typing as npt

from steelyard._internal.threads import run_anywhere
from steelyard.errors import ConfigurationError
from steelyard.golden.making._passages import Passage
from steelyard.golden.making._requests import KINDS, CaseKind, Job
from steelyard.judge import StaticEmbedder

_SPARE = 1.15
"""So many times the cases that are missing are written in a round."""
_ATTEMPTS = 3
"""So often the same passages are asked about in the same way."""
_TRIES, _FEW_TRIES = 3, 10
"""Of a kind that most cases are rejected of, so many times its cases are written, and so many more."""
_RELATED = (0.3, 0.97)
"""Cosines between which two passages are related, and not the same."""
_NEAREST = 3
"""So many passages the critic sees of a question that should have no answer."""


class JobQueue:
    """Which passages to ask about next, and in which way."""

    def __init__(self, passages: Sequence[Passage], wanted: Mapping[CaseKind, int], *, seed: int) -> None:
        """Order the passages."""
        if not passages:
            raise ConfigurationError(
                "there is no passage of at least 60 characters to ask about; give longer documents"
            )
        if sum(wanted.values()) < 1:
            raise ConfigurationError("n must be at least 1")
        self.passages = passages
        self.quotas = dict(wanted)
        self.exhausted: set[CaseKind] = set()
        self.vectors = unit(run_anywhere(embedded([passage.text for passage in passages])))
        rng = np.random.default_rng(seed)
        singles = [(passage,) for passage in passages]
        # A question over two passages that have nothing in common would be two questions.
        pairs = [(passages[i], passages[j]) for i, j in _related(self.vectors)]
        self._jobs = {
            kind: self._order(kind, singles if KINDS[kind].passages == 1 else pairs, rng) for kind in wanted
        }

    def _order(
        self, kind: CaseKind, groups: Sequence[tuple[Passage, ...]], rng: np.random.Generator
    ) -> Iterator[Job]:
        orders = [rng.permutation(len(groups)) for _ in range(_ATTEMPTS)]
        jobs = (
            Job(kind=kind, passages=groups[index], attempt=attempt)
            # All passages once before any a second time: cases spread over the documents.
            for attempt, order in enumerate(orders)
            for index in order
        )
        return islice(jobs, _TRIES * max(self.quotas[kind], 1) + _FEW_TRIES)

    def next_jobs(self, missing: Mapping[CaseKind, int]) -> list[Job]:
        """Some more jobs than cases are missing; what a kind has no passages for goes to the others."""
        jobs: list[Job] = []
        for kind, count in missing.items():
            jobs += self._take(kind, ceil(count * _SPARE))
        short = ceil(sum(missing.values()) * _SPARE) - len(jobs)
        # Unanswerable questions take no places of others: too many of them would make declining pay.
        for kind in self.quotas if short > 0 else ():
            if KINDS[kind].answerable and self.quotas[kind]:
                found = self._take(kind, short)
                jobs += found
                short -= len(found)
        return jobs

    def _take(self, kind: CaseKind, count: int) -> list[Job]:
        found = list(islice(self._jobs[kind], max(count, 0)))
        if len(found) < count:
            self.exhausted.add(kind)
        return found

    async def nearest(self, questions: Sequence[str]) -> list[list[str]]:
        """The passages nearest to each question."""
        if not questions:
            return []
        close = unit(await embedded(questions)) @ self.vectors.T
        return [[self.passages[i].text for i in np.argsort(-row)[:_NEAREST]] for row in close]


def _related(vectors: npt.NDArray[np.float32]) -> list[tuple[int, int]]:
    """Pairs of passages that are related: each with the three nearest, in the order of the passages."""
    low, high = _RELATED
    found: dict[tuple[int, int], None] = {}
    for index, row in enumerate(vectors @ vectors.T):
        # One more, since a passage is nearest to itself.
        near = [int(i) for i in np.argsort(-row)[: _NEAREST + 1] if i != index and low < row[i] < high]
        # A dict for its order: the same seed must give the same pairs.
        found.update({(min(index, other), max(index, other)): None for other in near})
    return list(found)


async def embedded(texts: Sequence[str]) -> Sequence[Sequence[float]]:
    """Static vectors of texts."""
    vectors, _ = await StaticEmbedder().embed(texts)
    return vectors


def unit(vectors: Sequence[Sequence[float]]) -> npt.NDArray[np.float32]:
    """Vectors of length 1; zeros stay zeros."""
    rows = np.asarray(vectors, np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)
