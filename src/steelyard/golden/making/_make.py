"""Making a golden set from passages: write, verify, criticise, until there are enough or nothing is left."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from steelyard._internal.threads import run_anywhere
from steelyard.errors import JudgeError
from steelyard.golden._set import Case, GoldenSet
from steelyard.golden.making._jobs import JobQueue, embedded, unit
from steelyard.golden.making._passages import Passage, usable
from steelyard.golden.making._requests import (
    BATCH,
    KINDS,
    Blocks,
    Candidate,
    CaseKind,
    Job,
    closed_book,
    criticising,
    keys,
    quotas,
    writing,
)
from steelyard.golden.making._verify import candidate_from, gives_itself_away, is_copy
from steelyard.golden.making._writer import Journal, Writer
from steelyard.recording import unrecorded
from steelyard.scores import Usage

_COPY = 0.95
"""Questions with a larger cosine are near-duplicates."""
_OUT_TOKENS = 110
"""Tokens that a written case takes, for the plan."""
_VERDICT_TOKENS = 25


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
    queue = JobQueue(usable(passages), wanted, seed=seed)
    jobs = queue.next_jobs(dict(wanted))
    characters = sum(_size(*writing(batch)) for batch in _batches(jobs))
    written = len(jobs)
    # A critic sees the sentences, about a third of the passages, and the case; the closed book the question.
    read = characters // 4 // 3 + written * 60
    requests = 3 * ceil(written / BATCH)
    out = written * (_OUT_TOKENS + 2 * _VERDICT_TOKENS)
    usage = Usage(requests=requests, prompt_tokens=characters // 4 + read, completion_tokens=out)
    return Plan(cases=n, passages=len(queue.passages), requests=requests, usage=usage, quotas=wanted)


def _size(instruction: str, blocks: Blocks, schema: Mapping[str, Any]) -> int:
    return len(instruction) + sum(len(head) + len(text) + 30 for head, text in blocks) + len(str(schema))


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
    queue = JobQueue(usable(passages), quotas(n, shares), seed=seed)
    book = Journal(None if journal is None else Path(journal))
    return run_anywhere(_GenerationRun(queue, writer, book, n, concurrency, name).run())


@dataclass
class _GenerationRun:
    """One making under way."""

    queue: JobQueue
    writer: Writer
    journal: Journal
    wanted: int
    concurrency: int
    name: str
    accepted: list[Candidate] = field(default_factory=list)
    vectors: list[npt.NDArray[np.float32]] = field(default_factory=list)
    surplus: list[Candidate] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    usage: Usage = field(default_factory=Usage)
    last_error: JudgeError | None = None

    async def run(self) -> GenerationResult:
        """Round after round."""
        slots = asyncio.Semaphore(self.concurrency)
        try:
            while jobs := self.queue.next_jobs(self._missing()):
                batches = list(_batches(jobs))
                found = await asyncio.gather(*(self._batch(batch, slots) for batch in batches))
                # One failed request is counted as rejected cases; only if nothing at all works does it end
                # here.
                if not any(replied for replied, _ in found) and not self.accepted and self.last_error:
                    raise self.last_error
                for _, candidates in found:
                    await self._accept(candidates)
                # After a round only: places are given away where a kind has nothing more to ask about.
                await self._fill_up()
        finally:
            if callable(close := getattr(self.writer, "aclose", None)):
                await close()
        return GenerationResult(
            golden=GoldenSet(cases=tuple(map(self._case, self.accepted)), name=self.name),
            wanted=self.wanted,
            rejected=dict(self.rejected.most_common()),
            usage=self.usage,
            resumed=self.journal.hits,
        )

    def _missing(self) -> dict[CaseKind, int]:
        """What is missing by kind; no more than is missing altogether."""
        left = self.wanted - len(self.accepted)
        there = Counter(candidate.job.kind for candidate in self.accepted)
        missing: dict[CaseKind, int] = {}
        for kind, quota in self.queue.quotas.items():
            missing[kind] = min(max(quota - there[kind], 0), left)
            left -= missing[kind]
        return missing

    async def _batch(self, jobs: Sequence[Job], slots: asyncio.Semaphore) -> tuple[bool, list[Candidate]]:
        """Write a batch and have it criticised; whether the writer replied, and what the critic let pass."""
        written = await self._asked(writing(jobs), slots, len(jobs))
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
            self._asked(criticising(candidates, shown), slots, len(candidates)),
            self._asked(closed_book(candidates), slots, 0),
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

    async def _asked(
        self, request: tuple[str, Blocks, Mapping[str, Any]], slots: asyncio.Semaphore, lost: int
    ) -> Mapping[str, Any] | None:
        """The reply; None where the request failed, which rejects so many cases."""
        async with slots:
            try:
                # Or a recorder that is attached would take the writer's calls for turns.
                with unrecorded():
                    written = await self.journal.write(self.writer, *request)
            except JudgeError as error:
                self.last_error = error
                self.usage += Usage(requests=error.requests)
                if lost:
                    self.rejected[f"judge: {error.cause}"] += lost
                return None
        self.usage += written.usage
        return written.data

    async def _fill_up(self) -> None:
        """Let other kinds take the places of those that nothing more can be made of."""
        there = Counter(one.job.kind for one in self.accepted)
        quotas = self.queue.quotas
        to_come = sum(
            max(quotas[kind] - there[kind], 0) for kind in quotas if kind not in self.queue.exhausted
        )
        lacking = max(self.wanted - len(self.accepted) - to_come, 0)
        if not (lacking and self.surplus):
            return
        spare, self.surplus = self.surplus[:lacking], self.surplus[lacking:]
        await self._accept(spare, quotas=dict.fromkeys(quotas, self.wanted))

    async def _accept(
        self, candidates: Sequence[Candidate], *, quotas: Mapping[CaseKind, int] | None = None
    ) -> None:
        """Take candidates in order, unless they are near-duplicates; of a full kind only later, if ever."""
        if not candidates:
            return
        there = Counter(one.job.kind for one in self.accepted)
        quotas = self.queue.quotas if quotas is None else quotas
        vectors = unit(await embedded([candidate.question for candidate in candidates]))
        for candidate, vector in zip(candidates, vectors, strict=True):
            full = len(self.accepted) >= self.wanted
            # A full kind goes on to be written to: what is left over may fill the places of another.
            if full or there[candidate.job.kind] >= quotas[candidate.job.kind]:
                self.surplus.append(candidate)
                continue
            # Follow-ups are compared within their conversation, for "And when?" may be asked in each of them.
            same = [one.question for one in self.accepted if one.history == candidate.history]
            near = any(
                float(vector @ other) > _COPY
                for one, other in zip(self.accepted, self.vectors, strict=True)
                if one.history == candidate.history
            )
            if near or is_copy(candidate.question, same):
                self.rejected["near-duplicate"] += 1
            else:
                there[candidate.job.kind] += 1
                self.accepted.append(candidate)
                self.vectors.append(vector)

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
    """Why a case is not accepted."""
    said = _mapping(verdict)
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
    unaided = _mapping(known)
    answer = unaided.get("answer") if unaided.get("known") is True else None
    # That the model says it knows is not enough; its answer must be the reference.
    if isinstance(answer, str) and gives_itself_away(candidate, answer):
        return "answerable without the documents"
    return None


def _mapping(data: object) -> Mapping[str, Any]:
    return data if isinstance(data, Mapping) else {}


def _batches(jobs: Sequence[Job]) -> Iterable[Sequence[Job]]:
    return (jobs[start : start + BATCH] for start in range(0, len(jobs), BATCH))
