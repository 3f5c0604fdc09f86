"""What people's labels say beside each other: who labelled how much, and who disagrees with whom on what."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from steelyard.report import Label
from steelyard.stats import Estimate, cohen_kappa

_SHOWN = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """Two people who labelled the same things."""

    first: str
    """One of them."""
    second: str
    """The other."""
    both: int
    """How many things both labelled."""
    same: int
    """On how many they agree."""
    kappa: Estimate | None
    """Their agreement beyond chance; None if they all say the same."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Dispute:
    """One turn or claim on which people differ."""

    record_id: str
    """The turn."""
    metric: str | None
    """The metric whose claim is meant; None for the whole turn."""
    claim: int | None
    """The claim; None for the whole turn."""
    said: tuple[tuple[str, str], ...]
    """Who says what."""
    latest: float
    """When the last of it was said, as Unix time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelAgreement:
    """All labels together."""

    people: tuple[tuple[str, int], ...]
    """Who labelled how many things, the most diligent first."""
    pairs: tuple[Pair, ...]
    """Every two who labelled something both, those who differ most first."""
    disputes: tuple[Dispute, ...]
    """What people differ on, the latest first, at most 40."""


def agreement_of(labels: Iterable[Label]) -> LabelAgreement:
    """How the labels of several people go together."""
    things: defaultdict[tuple[str, str | None, int | None], dict[str, Label]] = defaultdict(dict)
    counts: Counter[str] = Counter()
    for label in labels:
        things[label.record_id, label.metric, label.claim][label.who] = label
        counts[label.who] += 1
    return LabelAgreement(
        people=tuple(counts.most_common(_SHOWN)),
        pairs=_pairs(things)[:_SHOWN],
        disputes=_disputes(things)[:_SHOWN],
    )


def _pairs(things: Mapping[tuple[str, str | None, int | None], Mapping[str, Label]]) -> tuple[Pair, ...]:
    answers: defaultdict[tuple[str, str], list[tuple[str, str, str]]] = defaultdict(list)
    for (record, *_), said in things.items():
        for one, other in combinations(sorted(said), 2):
            answers[one, other].append((said[one].value, said[other].value, record))
    found = [_pair(names, given) for names, given in answers.items()]
    return tuple(sorted(found, key=lambda pair: (pair.same - pair.both, pair.first, pair.second)))


def _pair(names: tuple[str, str], given: Sequence[tuple[str, str, str]]) -> Pair:
    first, second, records = zip(*given, strict=True)
    kappa = None
    if len({*first, *second}) > 1:
        # What is said of several claims of one turn counts together.
        kappa = cohen_kappa(first, second, sessions=records)
    same = sum(one == other for one, other, _ in given)
    return Pair(first=names[0], second=names[1], both=len(given), same=same, kappa=kappa)


def _disputes(
    things: Mapping[tuple[str, str | None, int | None], Mapping[str, Label]],
) -> tuple[Dispute, ...]:
    found = [
        Dispute(
            record_id=record,
            metric=metric,
            claim=claim,
            said=tuple((who, label.value) for who, label in sorted(said.items())),
            latest=max(label.labelled_at for label in said.values()),
        )
        for (record, metric, claim), said in things.items()
        if len({label.value for label in said.values()}) > 1
    ]
    return tuple(sorted(found, key=lambda one: -one.latest))
