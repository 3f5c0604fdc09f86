"""Making a golden set from passages: write, verify, criticise, until there are enough or nothing is left."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from steelyard._internal.threads import run_anywhere
from steelyard.errors import ConfigurationError, JudgeError
from steelyard.golden._set import Case, GoldenSet
from steelyard.golden.making._passages import Passage, usable
from steelyard.golden.making._requests import (
    BATCH,
    KINDS,
    Candidate,
    CaseKind,
    Job,
    Journal,
    Request,
    Writer,
    candidate_from,
    closed_book,
    criticising,
    gives_itself_away,
    keys,
    mapping,
    quotas,
    writing,
)
from steelyard.judge import StaticEmbedder
from steelyard.recording import unrecorded
from steelyard.scores import Usage
from steelyard.stats import unit_rows

_COPY = 0.95
"""Questions with a larger cosine are near-duplicates."""
_OUT_TOKENS = 110
"""Tokens that a written case takes, for the plan."""
_VERDICT_TOKENS = 25
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

_Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What making is expected to take; nothing was sent."""

    cases: int
    """Cases wanted."""
    passages: int
    """Passages to make them from."""
    requests: int
    """Requests, if every sixth case is rejected."""
    usage: Usage
    """Their tokens, at 4 characters a token."""
    quotas: Mapping[CaseKind, int]
    """Cases by kind."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerationResult:
    """A set that was made, and what was rejected."""

    golden: GoldenSet
    """The cases; nobody has reviewed them yet."""
    wanted: int
    rejected: Mapping[str, int]
    """Cases that were written and not accepted, by reason."""
    usage: Usage
    resumed: int
    """Replies that were there from before."""

    @property
    def requests_per_case(self) -> float | None:
        """Requests for each accepted case; None where there is no case."""
        return self.usage.requests / len(self.golden) if len(self.golden) else None


def plan(
    passages: Sequence[Passage], *, n: int = 50, shares: Mapping[CaseKind, float] | None = None, seed: int = 0
) -> Plan:
    """What it would take to make a set; see `make`."""
    wanted = quotas(n, shares)
    # The first round as it will be made: its size is what the plan is about.
    queue = _JobQueue(usable(passages), wanted, seed=seed)
    jobs = queue.next_jobs(wanted)
    characters = 0
    for instruction, blocks, schema in map(writing, _batches(jobs)):
        characters += len(instruction) + len(str(schema))
        characters += sum(len(head) + len(text) + 30 for head, text in blocks)
    # A critic sees the sentences, about a third of the passages, and the case; the closed book the question.
    read = characters // 4 // 3 + len(jobs) * 60
    requests = 3 * ceil(len(jobs) / BATCH)
    out = len(jobs) * (_OUT_TOKENS + 2 * _VERDICT_TOKENS)
    usage = Usage(requests=requests, prompt_tokens=characters // 4 + read, completion_tokens=out)
    return Plan(cases=n, passages=len(queue.passages), requests=requests, usage=usage, quotas=wanted)


def make(
    passages: Sequence[Passage],
    *,
    writer: Writer,
    n: int = 50,
    shares: Mapping[CaseKind, float] | None = None,
    seed: int = 0,
    journal: str | Path | None = None,
    concurrency: int = 8,
    name: str = "documents",
) -> GenerationResult:
    """Make a golden set from passages.

    A model writes cases, five to a request. A case is accepted if the sentences that it rests on stand in its
    passages word for word; if a critic who sees only these finds that they answer it, that the reference
    follows, and that the question is understood alone; if the model cannot answer it without the documents;
    and if no accepted question is nearly the same. For an unanswerable question, the critic sees the nearest
    passages of all documents, and must not find an answer.

    Args:
        passages: What to ask about, see `read_passages`.
        writer: Who writes and criticises.
        n: How many cases; fewer come back if nothing more can be made, with counts by reason.
        shares: Of kinds of question, see `KINDS`.
        seed: The same seed, passages and replies make the same set.
        journal: A file for replies; with it, interrupted work resumes where it stopped.
        concurrency: Requests in flight.
        name: What the set is called.

    Raises:
        ConfigurationError: If an option cannot mean what was given, or there is nothing to ask about.
        JudgeError: If the writer cannot be used at all: every request of a round failed for good.
    """
    queue = _JobQueue(usable(passages), quotas(n, shares), seed=seed)
    book = Journal(None if journal is None else Path(journal))
    return run_anywhere(_GenerationRun(queue, writer, book, n, asyncio.Semaphore(concurrency)).run(name))


class _JobQueue:
    def __init__(self, passages: Sequence[Passage], wanted: Mapping[CaseKind, int], *, seed: int) -> None:
        if not passages:
            raise ConfigurationError(
                "there is no passage of at least 60 characters to ask about; give longer documents"
            )
        if sum(wanted.values()) < 1:
            raise ConfigurationError("n must be at least 1")
        self.passages = passages
        self.quotas = wanted
        self.exhausted: set[CaseKind] = set()
        self._vectors = run_anywhere(_embedded([passage.text for passage in passages]))
        rng = np.random.default_rng(seed)
        singles = [(passage,) for passage in passages]
        # A question over two passages that have nothing in common would be two questions.
        pairs = [(passages[i], passages[j]) for i, j in self._related()]
        self._jobs = {
            kind: self._order(kind, singles if KINDS[kind].passages == 1 else pairs, rng) for kind in wanted
        }

    def _related(self) -> Iterable[tuple[int, int]]:
        """Pairs of passages that are related: each with the three nearest, in the order of the passages."""
        low, high = _RELATED
        found: dict[tuple[int, int], None] = {}
        for index, row in enumerate(self._vectors @ self._vectors.T):
            # One more, since a passage is nearest to itself.
            near = [int(i) for i in np.argsort(-row)[: _NEAREST + 1] if i != index and low < row[i] < high]
            # A dict for its order: the same seed must give the same pairs.
            found.update({(min(index, other), max(index, other)): None for other in near})
        return found

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
        close = await _embedded(questions) @ self._vectors.T
        return [[self.passages[i].text for i in np.argsort(-row)[:_NEAREST]] for row in close]


async def _embedded(texts: Sequence[str]) -> _Vectors:
    return unit_rows((await StaticEmbedder().embed(texts))[0])


@dataclass
class _GenerationRun:
    queue: _JobQueue
    writer: Writer
    journal: Journal
    wanted: int
    slots: asyncio.Semaphore
    accepted: list[tuple[Candidate, _Vectors]] = field(default_factory=list)
    """All that was found good; more of a kind than its quota may be among them."""
    rejected: Counter[str] = field(default_factory=Counter)
    usage: Usage = field(default_factory=Usage)
    last_error: JudgeError | None = None

    async def run(self, name: str) -> GenerationResult:
        try:
            while jobs := self.queue.next_jobs(self._missing()):
                found = await asyncio.gather(*map(self._batch, _batches(jobs)))
                # One failed request is counted as rejected cases; only if nothing at all works does it end.
                if not any(replied for replied, _ in found) and not self.accepted and self.last_error:
                    raise self.last_error
                for _, candidates in found:
                    await self._accept(candidates)
        finally:
            if callable(close := getattr(self.writer, "aclose", None)):
                await close()
        return GenerationResult(
            golden=GoldenSet(cases=tuple(map(self._case, self._chosen())), name=name),
            wanted=self.wanted,
            rejected=dict(self.rejected.most_common()),
            usage=self.usage,
            resumed=self.journal.hits,
        )

    def _chosen(self) -> list[Candidate]:
        """As many of each kind as its quota; spare ones for kinds of which nothing more can be made."""
        there, chosen, spare = Counter[CaseKind](), list[Candidate](), list[Candidate]()
        for one, _ in self.accepted:
            kind = one.job.kind
            (chosen if there[kind] < self.queue.quotas[kind] else spare).append(one)
            there[kind] += 1
        open_kinds = self.queue.quotas.keys() - self.queue.exhausted
        to_come = sum(max(self.queue.quotas[kind] - there[kind], 0) for kind in open_kinds)
        return chosen + spare[: max(self.wanted - len(chosen) - to_come, 0)]

    def _missing(self) -> dict[CaseKind, int]:
        """What is missing by kind; no more than is missing altogether."""
        chosen = self._chosen()
        left = self.wanted - len(chosen)
        there = Counter(one.job.kind for one in chosen)
        missing: dict[CaseKind, int] = {}
        for kind, quota in self.queue.quotas.items():
            missing[kind] = min(max(quota - there[kind], 0), left)
            left -= missing[kind]
        return missing

    async def _batch(self, jobs: Sequence[Job]) -> tuple[bool, list[Candidate]]:
        """Write a batch and have it criticised; whether the writer replied, and what the critic let pass."""
        written = await self._asked(writing(jobs), len(jobs))
        if written is None:
            return False, []
        candidates = []
        for key, job in zip(keys(len(jobs)), jobs, strict=True):
            made = candidate_from(written.get(key), job)
            if isinstance(made, str):
                self.rejected[made] += 1
            else:
                candidates.append(made)
        if not candidates:
            return True, []
        # For all candidates at once: embedding them one by one takes many times as long.
        nearest = await self.queue.nearest([candidate.question for candidate in candidates])
        shown = [
            one.sentences if KINDS[one.job.kind].answerable else near
            for one, near in zip(candidates, nearest, strict=True)
        ]
        verdicts, known = await asyncio.gather(
            self._asked(criticising(candidates, shown), len(candidates)),
            self._asked(closed_book(candidates), 0),
        )
        if verdicts is None:
            return True, []
        good = []
        for key, candidate in zip(keys(len(candidates)), candidates, strict=True):
            problem = _objection(candidate, verdicts.get(key), (known or {}).get(key))
            if problem:
                self.rejected[problem] += 1
            else:
                # Kept in the order of the jobs, so that the same seed and replies make the same set.
                good.append(candidate)
        return True, good

    async def _asked(self, request: Request, lost: int) -> Mapping[str, Any] | None:
        """The reply; None where the request failed, which rejects so many cases."""
        async with self.slots:
            try:
                # Or a recorder that is attached would take the writer's calls for turns.
                with unrecorded():
                    written = await self.journal.write(self.writer, request)
            except JudgeError as error:
                self.last_error = error
                self.usage += Usage(requests=error.requests)
                if lost:
                    self.rejected[f"judge: {error.cause}"] += lost
                return None
        self.usage += written.usage
        return written.data

    async def _accept(self, candidates: Sequence[Candidate]) -> None:
        vectors = await _embedded([candidate.question for candidate in candidates]) if candidates else ()
        for candidate, vector in zip(candidates, vectors, strict=True):
            # Follow-ups are compared within their conversation, for "And when?" may be asked in each of them.
            same = (other for one, other in self.accepted if one.history == candidate.history)
            if any(float(vector @ other) > _COPY for other in same):
                self.rejected["near-duplicate"] += 1
            else:
                self.accepted.append((candidate, vector))

    def _case(self, candidate: Candidate) -> Case:
        return Case(
            question=candidate.question,
            history=candidate.history,
            reference=candidate.reference,
            reference_contexts=candidate.sentences,
            source="synthetic",
            kind=candidate.job.kind,
            metadata={
                "passages": [passage.id for passage in candidate.job.passages],
                "metric_provenance": self.writer.name,
            },
        )


def _objection(candidate: Candidate, verdict: object, known: object) -> str | None:
    said = mapping(verdict)
    # A critic that left a field out has not looked, and silence is no consent.
    if not all(isinstance(said.get(name), bool) for name in ("answerable", "right", "alone")):
        return "not criticised"
    if not said["alone"]:
        return "not understandable alone"
    if not KINDS[candidate.job.kind].answerable:
        return "answerable after all" if said["answerable"] else None
    if not said["answerable"]:
        return "not answerable from its sentences"
    if not said["right"]:
        return "reference does not follow"
    unaided = mapping(known)
    answer = unaided.get("answer") if unaided.get("known") is True else None
    # That the model says it knows is not enough; its answer must be the reference.
    if isinstance(answer, str) and gives_itself_away(candidate, answer):
        return "answerable without the documents"
    return None


def _batches(jobs: Sequence[Job]) -> Iterable[Sequence[Job]]:
    return (jobs[start : start + BATCH] for start in range(0, len(jobs), BATCH))
