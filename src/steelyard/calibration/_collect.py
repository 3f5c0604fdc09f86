"""Labels and the scores they are about, put together, and what of a score can be calibrated."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, Protocol

from steelyard.scores import Evaluation, Score

Signal = Literal["value", "worst_verdict"]
"""`value` is the score itself; `worst_verdict` the lowest probability among its verdicts that speaks for the
answer. A share of few claims has few values; the probability tells more where there is one."""

SIGNALS: tuple[Signal, ...] = ("value", "worst_verdict")


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """What one judge says of one turn by one metric."""

    record_id: str
    value: float
    """The score in 0..1, turned so that higher is better."""
    worst: float | None
    """The lowest probability, among its yes/no verdicts, of the answer that speaks for the turn; None where a
    verdict has no probability, or there are none."""
    inclusion: float
    """The probability with which the turn was picked for this metric."""
    claims: int
    unit: str | None = None
    """The turn's user, or else its session: such turns resemble each other."""

    def signal(self, name: Signal) -> float | None:
        """One of the numbers that may be calibrated."""
        return self.value if name == "value" else self.worst


def judged_scores(evaluation: Evaluation) -> Iterator[tuple[Score, Judged]]:
    """The Scores of an Evaluation that can be calibrated: those with a value in 0..1 and a judge."""
    unit = evaluation.user or evaluation.session
    for score in evaluation.scores:
        if (judged := judged_of(evaluation.record_id, score)) is not None:
            yield score, replace(judged, unit=unit)


def judged_of(record_id: str, score: Score) -> Judged | None:
    """What a Score says; None where it has no value in 0..1 or nobody knows who made it."""
    if score.value is None or score.provenance is None or not 0 <= score.value <= 1:
        return None
    return Judged(
        record_id=record_id,
        value=score.value if score.direction == "higher" else 1 - score.value,
        worst=_worst(score),
        inclusion=score.inclusion_probability,
        claims=len(score.verdicts),
    )


def _worst(score: Score) -> float | None:
    found = []
    for verdict in score.verdicts:
        if verdict.good is None or verdict.probability_of_good is None:
            return None
        found.append(verdict.probability_of_good)
    return min(found, default=None)


_GOOD: Mapping[str, bool] = {"good": True, "bad": False, "supported": True, "not_supported": False}


class LabelLike(Protocol):
    """What one person says of a turn, a metric's score or a claim; `steelyard.report.Label` is one."""

    # Properties, since labels are frozen.
    @property
    def record_id(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def who(self) -> str: ...
    @property
    def metric(self) -> str | None: ...
    @property
    def claim(self) -> int | None: ...
    @property
    def drawn(self) -> float | None: ...


class Key(NamedTuple):
    """Scores that one map may serve: the same metric by the same judge in the same words."""

    metric: str
    judge: str
    prompt_version: str


class Labelled(NamedTuple):
    """A judged turn and what people say of it."""

    judged: Judged
    good: bool
    drawn: bool = True
    """Whether the turn was drawn to be labelled, not picked by a person."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answers:
    """What several people say of the same turns."""

    pairs: Sequence[tuple[bool, bool, str]]
    """Two people's answers, for every turn and every two who labelled it, and what such pairs are alike by:
    the turn's user or session, or the turn itself."""
    contradictory: Sequence[str]
    """Records on which as many say good as bad: they are left out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Material:
    """Everything there is about one metric and judge."""

    key: Key
    judged: Sequence[Judged]
    """All turns that were judged."""
    labelled: Sequence[Labelled]
    answers: Answers
    of_turns: int
    """How many of the labelled ones rest on labels of whole turns, not of this metric or its claims."""


def collect(evaluations: Iterable[Evaluation], labels: Iterable[LabelLike]) -> list[Material]:
    """Bring labels and scores together, for each metric and judge.

    A person's word on a metric's score counts first, then their words on its claims (bad if one claim is not
    supported, good if all are), then their word on the whole turn. Where people differ, most win; where as
    many say good as bad, the turn is left out and named.

    Args:
        evaluations: What was judged; read once.
        labels: What people say, of these turns and perhaps of others.

    Returns:
        Metrics and judges in order of name; also those without a label.
    """
    by_record: defaultdict[str, list[LabelLike]] = defaultdict(list)
    for label in labels:
        by_record[label.record_id].append(label)
    found: dict[Key, _Gathered] = {}
    for evaluation in evaluations:
        for score, judged in judged_scores(evaluation):
            made = score.provenance
            assert made is not None
            gathered = found.setdefault(Key(score.metric, made.judge, made.prompt_version), _Gathered())
            gathered.judged.append(judged)
            if said := by_record.get(evaluation.record_id):
                _add(gathered, judged, score.metric, said)
    return [
        Material(
            key=key,
            judged=one.judged,
            labelled=one.labelled,
            answers=Answers(pairs=one.pairs, contradictory=one.contradictory),
            of_turns=one.of_turns,
        )
        for key, one in sorted(found.items())
    ]


@dataclass
class _Gathered:
    """What a `Material` is made of, while it comes in."""

    judged: list[Judged] = field(default_factory=list)
    labelled: list[Labelled] = field(default_factory=list)
    pairs: list[tuple[bool, bool, str]] = field(default_factory=list)
    contradictory: list[str] = field(default_factory=list)
    of_turns: int = 0


def _add(gathered: _Gathered, judged: Judged, metric: str, labels: Sequence[LabelLike]) -> None:
    by_person: defaultdict[str, list[LabelLike]] = defaultdict(list)
    for label in labels:
        by_person[label.who].append(label)
    votes: list[bool] = []
    of_turn = False
    # In order of name: `pairs` must not depend on the order in which labels were read.
    for _, said in sorted(by_person.items()):
        vote, from_turn = _vote(said, metric, judged.claims)
        if vote is not None:
            votes.append(vote)
            of_turn = of_turn or from_turn
    if not votes:
        return
    unit = judged.unit or judged.record_id
    gathered.pairs += [(one, other, unit) for place, one in enumerate(votes) for other in votes[place + 1 :]]
    counts = Counter(votes)
    if counts[True] == counts[False]:
        gathered.contradictory.append(judged.record_id)
        return
    gathered.of_turns += of_turn
    drawn = any(label.drawn is not None for label in labels)
    gathered.labelled.append(Labelled(judged, counts[True] > counts[False], drawn))


def _vote(labels: Sequence[LabelLike], metric: str, claims: int) -> tuple[bool | None, bool]:
    """One person's word on one metric's score of a turn, and whether it is of the whole turn."""
    known = [(label, _GOOD[label.value]) for label in labels if label.value in _GOOD]
    # The last one counts: it is the person's later word.
    of_turn = next((good for label, good in reversed(known) if label.metric is None), None)
    of_parts = {label.claim: good for label, good in known if label.metric == metric}
    of_metric = of_parts.pop(None, None)
    # A label may be of an earlier scoring that found more claims.
    of_claims = {claim: good for claim, good in of_parts.items() if claim is not None and claim < claims}
    if of_metric is not None:
        return of_metric, False
    if of_claims and not all(of_claims.values()):
        return False, False
    if claims and len(of_claims) == claims:
        return True, False
    return of_turn, of_turn is not None
