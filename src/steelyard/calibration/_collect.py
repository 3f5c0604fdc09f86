"""Labels and the scores they are about, put together, and what of a score can be calibrated."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol

from steelyard.scores import Evaluation, Score

_GOOD_WORDS = """
good correct yes true pass passed supported faithful factual relevant positive thumbs_up thumbs-up up 👍 ok
grounded
"""
_BAD_WORDS = """
bad incorrect no false fail failed not_supported unfaithful irrelevant negative thumbs_down thumbs-down down
👎 wrong hallucinated hallucination unsupported ungrounded
"""
_WORDS = {
    **dict.fromkeys(_GOOD_WORDS.split(), True),
    **dict.fromkeys([*_BAD_WORDS.split(), "not supported"], False),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class PersonLabel:
    """What one person says of a turn, or of one metric's score of it."""

    record_id: str
    value: Literal["good", "bad"]
    who: str
    metric: str | None = None
    """The metric that is meant; None for the whole turn."""
    claim: None = None
    """These tools have no labels of single claims."""
    drawn: None = None
    """They do not say how turns were chosen."""


def read_annotations(
    data: Any,
    *,
    records: Mapping[str, str],
    metrics: Iterable[str] = (),
    problems: list[str] | None = None,
) -> list[PersonLabel]:
    """Labels out of a reply of Phoenix (`span_annotations`) or Langfuse (`scores`), read from JSON.

    Only what people gave counts: in Phoenix `annotator_kind` HUMAN, in Langfuse `source` ANNOTATION. An
    annotation with the name of a metric is of that metric, any other of the whole turn. It is good by its
    label (`good`, `correct`, `yes` ...), and without one by a score of at least one half.

    Args:
        data: The reply, or the list in its `data`.
        records: Record ids by trace id and by span id.
        metrics: Names of metrics there are.
        problems: Where annotations that cannot be used are reported.

    Returns:
        One label for each annotation that could be used; of the same person on the same thing the last one.
    """
    rows = data.get("data") if isinstance(data, Mapping) else data
    known = frozenset(metrics)
    told = problems if problems is not None else []
    if not isinstance(rows, list):
        told.append("this is not a list of annotations, nor a reply with one in 'data'")
        return []
    found: dict[tuple[str, str | None, str], PersonLabel] = {}
    for place, row in enumerate(rows):
        label = _label(row, records, known) if isinstance(row, Mapping) else "it is not an object"
        if isinstance(label, str):
            told.append(f"annotation {place + 1}: {label}")
        elif label is not None:
            found[(label.record_id, label.metric, label.who)] = label
    return list(found.values())


def _label(
    row: Mapping[str, Any], records: Mapping[str, str], metrics: frozenset[str]
) -> PersonLabel | str | None:
    """The label, or why there is none; None for what no person gave."""
    # The span comes before its trace: it says more of the turn.
    if "annotator_kind" in row:
        kind, person, places, who = "annotator_kind", "HUMAN", ("span_id", "trace_id"), "user_id"
        result = row["result"] if isinstance(row.get("result"), Mapping) else row
        word, number = result.get("label"), result.get("score")
    elif all(("source" in row, row.keys() & {"traceId", "observationId"})):
        kind, person, places, who = "source", "ANNOTATION", ("observationId", "traceId"), "authorUserId"
        word, number = row.get("stringValue"), row.get("value")
    else:
        return "it is neither of Phoenix nor of Langfuse"
    if row[kind] != person:
        return None
    ids = (one for one in map(row.get, places) if isinstance(one, str))
    record = next((records[one] for one in ids if one in records), None)
    if record is None:
        return "no evaluated turn has its trace or span"
    good = _is_good(word, number)
    if good is None:
        return f"neither its label nor its score says good or bad: {str(word)[:40]!r}"
    return PersonLabel(
        record_id=record,
        value="good" if good else "bad",
        who=str(row.get(who) or "somebody"),
        metric=next((name for name in metrics if name == row.get("name")), None),
    )


def _is_good(word: object, number: object) -> bool | None:
    if isinstance(word, str) and word.strip():
        return _WORDS.get(word.strip().casefold())
    # True is an int to Python.
    if isinstance(number, bool):
        return number
    # Other scales, such as one to five stars, do not say where good begins.
    if isinstance(number, int | float) and 0 <= number <= 1:
        return number >= 0.5
    return None


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
    """What turns resemble each other by; see `Evaluation.unit`."""

    def signal(self, name: Signal) -> float | None:
        """One of the numbers that may be calibrated."""
        return self.value if name == "value" else self.worst


def judged_scores(evaluation: Evaluation) -> Iterator[tuple[Score, Judged]]:
    """The Scores of an Evaluation that can be calibrated: those with a value in 0..1 and a judge."""
    for score in evaluation.scores:
        if (judged := judged_of(evaluation.record_id, score)) is not None:
            yield score, replace(judged, unit=evaluation.unit)


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
    """What one person says of a turn, a metric's score or a claim; a label of the results room is one."""

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
