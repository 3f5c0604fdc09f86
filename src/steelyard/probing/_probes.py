"""Probes: texts and pairs of claims about them, known by their hash, and how a judge is asked them."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal

from steelyard.errors import ConfigurationError
from steelyard.questions import (
    Fuse,
    Judge,
    MetricRun,
    Noncommittal,
    Question,
    QuestionBatcher,
    Relevant,
    Supported,
    Unanswered,
    YesNo,
)
from steelyard.record import Context, Record
from steelyard.scores import Score, Usage

PUBLISHED = "b7196cf694e99ed7d0552a1c04b5d6534b8e0d61eb98e469a5467c6388ca2edf"
"""SHA-256 of the set that ships with this version. Change it together with the files, and never alone."""

_FILES = ("texts.jsonl", "pairs.jsonl")
_ADDRESSABLE = ("contexts", "claim")


@dataclass(frozen=True, kw_only=True, slots=True)
class Probe:
    """One question to a judge whose right answer is known."""

    id: str
    """Unique in the set: the pair's id, then `-true` or `-false` for which of the twins it is."""
    pair: str
    """The pair it belongs to; its twin differs in the tested point alone."""
    kind: str
    """What is tested: `number`, `negation`, `role_swap`, ..."""
    language: str
    """ISO 639-1 code of the text."""
    contexts: tuple[str, ...]
    question: str
    claim: str
    """The claim to be judged; of an `evades` probe the whole answer."""
    asks: Literal["supported", "evades"] = "supported"
    """Whether the passages support the claim, or whether the answer evades the question."""
    expected: bool
    address: str = ""
    """Text in it that speaks to the judge; empty where there is none."""
    plain: tuple[tuple[str, ...], str] | None = None
    """Contexts and claim without the address."""

    def without_address(self) -> Probe:
        """The same probe with nothing in it that speaks to the judge."""
        if self.plain is None:
            return self
        contexts, claim = self.plain
        return replace(self, contexts=contexts, claim=claim, address="", plain=None)


@dataclass(frozen=True, kw_only=True)
class ProbeSet:
    """Probes and the hash of the files they were read from."""

    probes: tuple[Probe, ...]
    """In the order of the file, twins side by side."""
    sha256: str
    """Content hash of both files: the set's version. Figures from different sets are not comparable."""

    @property
    def published(self) -> bool:
        """Whether it is the set that ships with this version."""
        return self.sha256 == PUBLISHED

    @property
    def version(self) -> str:
        """The first 12 characters of the hash, as results show it."""
        return self.sha256[:12]


def load_probes(folder: str | Path | None = None) -> ProbeSet:
    """Read a probe set.

    Args:
        folder: A folder with `texts.jsonl` and `pairs.jsonl` of your own; None for the set that ships with
            this version.

    Raises:
        ConfigurationError: If a file cannot be read, a line is not what it should be, or the files of this
            version were edited.
    """
    place: Traversable = Path(folder) if folder is not None else files("steelyard.probing") / "data"
    try:
        content = [(place / name).read_bytes() for name in _FILES]
    except OSError as error:
        raise ConfigurationError(
            f"no probe set in {str(place)!r}: {error.strerror or error}; name a folder that has one"
        ) from None
    digest = _digest(content)
    # Figures are published for this set: an edited one would give others under the same name.
    if folder is None and digest != PUBLISHED:
        raise ConfigurationError(
            f"the probe set in {str(place)!r} was edited: its hash is {digest[:12]}, this version ships "
            f"{PUBLISHED[:12]}; reinstall steelyard, or give a set of your own as a folder"
        )
    texts = {
        row["id"]: row for row in _rows(content[0], _FILES[0], ("id", "language", "question", "contexts"))
    }
    pairs = _rows(content[1], _FILES[1], ("id", "kind", "text", "true", "false"))
    probes = tuple(probe for row in pairs for probe in _twins(row, texts))
    _check_unique(probes)
    return ProbeSet(probes=probes, sha256=digest)


def _digest(content: list[bytes]) -> str:
    """A hash over both files that does not depend on how a checkout ends its lines."""
    hashed = hashlib.sha256()
    for name, data in zip(_FILES, content, strict=True):
        data = data.replace(b"\r\n", b"\n")
        hashed.update(f"{name} {len(data)}\n".encode() + data)
    return hashed.hexdigest()


def _rows(data: bytes, name: str, fields: tuple[str, ...]) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(data.splitlines(), start=1):
        where = f"{name}, line {number}"
        try:
            row = json.loads(line)
        except ValueError:
            raise ConfigurationError(f"{where}: not JSON; write one JSON object a line") from None
        if lacking := [repr(field) for field in fields if not isinstance(row, dict) or not row.get(field)]:
            raise ConfigurationError(f"{where}: no {' and no '.join(lacking)}; add what is missing")
        yield row


def _twins(row: Mapping[str, Any], texts: Mapping[str, Mapping[str, Any]]) -> Iterator[Probe]:
    text = texts.get(row["text"])
    if text is None:
        raise ConfigurationError(f"pair {row['id']!r}: there is no text {row['text']!r}; add it to the texts")
    for truth in (True, False):
        probe = Probe(
            id=f"{row['id']}-{str(truth).lower()}",
            pair=row["id"],
            kind=row["kind"],
            language=text["language"],
            contexts=tuple(text["contexts"]),
            question=row.get("question") or text["question"],
            claim=row["true"] if truth else row["false"],
            asks="evades" if row["kind"] == "evasive" else "supported",
            expected=truth,
        )
        yield _addressed(probe, row) if row.get("address") else probe


def _addressed(probe: Probe, row: Mapping[str, Any]) -> Probe:
    """The probe with the text that speaks to the judge where the row wants it.

    In the passages it stands for both twins. In the claim it stands for the false twin alone: whether a true
    sentence with an unsupported request behind it counts as supported is a matter of taste.
    """
    place, address = row.get("address_in"), row["address"]
    plain = (probe.contexts, probe.claim)
    if place == "contexts":
        return replace(probe, contexts=(*probe.contexts, address), address=address, plain=plain)
    if place != "claim":
        wanted = " or ".join(map(repr, _ADDRESSABLE))
        raise ConfigurationError(
            f"pair {row['id']!r}: address_in={place!r} is not {wanted}; correct one of them"
        )
    if probe.expected:
        return probe
    return replace(probe, claim=f"{probe.claim} {address}", address=address, plain=plain)


def _check_unique(probes: tuple[Probe, ...]) -> None:
    seen: set[str] = set()
    for probe in probes:
        if probe.id in seen:
            raise ConfigurationError(f"two pairs have the id {probe.pair!r}; give one of them another")
        seen.add(probe.id)
    if not probes:
        raise ConfigurationError(f"{_FILES[1]} holds no pairs; add some, one a line")


CLAIMS = 8
"""Claims about one text that share a request, as the claims of one answer do."""

_REPEAT = 2
"""The number of an independent repeat; chat judges draw it anew from 2 on, in the same words."""


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """What a judge said to one probe."""

    probe: Probe
    value: bool | None = None
    """Yes or no; None where there was no answer."""
    probability: float | None = None
    """The judge's probability of yes."""
    cause: str | None = None

    @property
    def right(self) -> bool:
        """Whether it is what the set expects; no answer is not right."""
        return self.value is self.probe.expected


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedProbes:
    """One pass over some probes."""

    given: tuple[ProbeAnswer, ...]
    """One per probe, in the order given."""
    usage: Usage

    @property
    def causes(self) -> Counter[str]:
        return Counter(given.cause for given in self.given if given.cause)


@dataclass
class _Turn:
    """Probes that share a record; the metric that asks them, as far as the batcher is concerned."""

    record: Record
    probes: list[Probe]
    sample: int
    company: bool
    given: list[ProbeAnswer] = field(default_factory=list)
    name: str = "probes"

    def ask(self, record: Record) -> MetricRun:
        """Ask all of them in one round, and keep what comes back."""
        questions: list[Question] = [
            Noncommittal(sample=self.sample)
            if probe.asks == "evades"
            else Supported(claim=probe.claim, sample=self.sample)
            for probe in self.probes
        ]
        # What other metrics would ask in the same request where nothing is kept apart.
        company = [Relevant(text=record.contexts[0].text)] if self.company else []
        answers = yield [*questions, *company]
        for probe, answer in zip(self.probes, answers, strict=False):
            if isinstance(answer, YesNo):
                self.given.append(ProbeAnswer(probe, answer.value, answer.probability))
            else:
                cause = answer.cause if isinstance(answer, Unanswered) else "malformed_answer"
                self.given.append(ProbeAnswer(probe, cause=cause))
        return Score.not_applicable(self.name, cause="probe", explanation="asked for its verdicts alone")


async def ask(
    judge: Judge,
    probes: Sequence[Probe],
    *,
    fuse: Fuse = "view",
    again: bool = False,
    concurrency: int = 16,
    done: Callable[[int], None] = lambda _: None,
) -> AskedProbes:
    """Put probes to a judge. What fails is accounted for by its cause, and the rest goes on.

    With `fuse`, claims about one text share a record, eight at most and never both twins of a pair, so that
    neither gives the other away. With `again`, no cache answers with what it has.
    """
    slots = asyncio.Semaphore(concurrency)
    finished = 0

    async def run(turn: _Turn) -> Usage:
        nonlocal finished
        async with slots:
            batcher = QuestionBatcher(judge, fuse=fuse)
            await batcher.run(turn.record, [turn])
        finished += len(turn.probes)
        done(finished)
        return batcher.usage

    turns = list(_turns(probes, sample=_REPEAT if again else 0, company=fuse == "record"))
    usages = await asyncio.gather(*map(run, turns))
    # Records were made of probes in another order.
    by_id = {given.probe.id: given for turn in turns for given in turn.given}
    return AskedProbes(given=tuple(by_id[probe.id] for probe in probes), usage=sum(usages, Usage()))


def _turns(probes: Iterable[Probe], *, sample: int, company: bool) -> Iterable[_Turn]:
    """Records with their probes: the same material, twins apart, true and false ones mixed."""
    groups: dict[tuple[tuple[str, ...], str, str, int], list[Probe]] = {}
    pairs: dict[str, int] = {}
    for probe in probes:
        half = (pairs.setdefault(probe.pair, len(pairs)) + probe.expected) % 2
        answer = probe.claim if probe.asks == "evades" else ""
        groups.setdefault((probe.contexts, probe.question, answer, half), []).append(probe)
    for (texts, question, answer, _), members in groups.items():
        contexts = tuple(Context(text=text) for text in texts)
        record = Record(question=question, contexts=contexts, answer=answer)
        for start in range(0, len(members), CLAIMS):
            yield _Turn(record, members[start : start + CLAIMS], sample, company)
