"""Drawing golden cases from stored turns, so that a mean over them still estimates production."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard._internal.text import error_place
from steelyard.errors import ConfigurationError, InvalidRecord
from steelyard.golden._results import named_judge
from steelyard.golden._set import Case, GoldenSet
from steelyard.golden.mining._population import SHARES, Drawn, Population, StoredTurn, Stratum, read_turns
from steelyard.record import Record
from steelyard.results import connect_readonly, stored_evaluation
from steelyard.scores import Evaluation
from steelyard.stats import Estimate, corrected_mean, weighted_mean


@dataclass
class Review:
    """A set under review; every decision is written to its file before the next case is shown."""

    path: Path
    """The set's file."""
    who: str
    """Who reviews."""
    golden: GoldenSet
    """The set as it stands."""

    @classmethod
    def open(cls, path: str | Path, *, who: str) -> Review:
        """Open a set.

        Raises:
            InvalidGoldenSet: If the file is not one.
        """
        return cls(Path(path), who, GoldenSet.load(path))

    @property
    def pending(self) -> tuple[Case, ...]:
        """The cases that nobody has reviewed."""
        return self.golden.unreviewed

    def accept(
        self,
        case: Case,
        *,
        label: Literal["good", "bad"] | None = None,
        reference: str | None = None,
        question: str | None = None,
    ) -> None:
        """Take a case into the set, with what was said of its answer, and corrected texts."""
        changed = _said(case, label, self.who)
        if reference is not None:
            changed = replace(changed, reference=reference or None)
        if question:
            changed = replace(changed, question=question)
        self._put(changed, case.id)

    def drop(self, case: Case) -> None:
        """Take a case out of the set. Means over a drawn set are then biased by what was taken out."""
        self._put(None, case.id)

    def _put(self, changed: Case | None, name: str) -> None:
        cases = tuple(
            one for case in self.golden if (one := changed if case.id == name else case) is not None
        )
        self.golden = GoldenSet(cases=cases, name=self.golden.name)
        self.golden.save(self.path)


def apply_labels(golden: GoldenSet, labels: Iterable[tuple[str, str, str]]) -> tuple[GoldenSet, int]:
    """What was said of whole turns elsewhere, such as in the live view, as the review of their cases.

    Args:
        golden: A set of `mine`: its cases have the ids of their turns.
        labels: Record id, `good` or `bad`, and who said so.

    Returns:
        The set with labels, and how many cases have one now.
    """
    said = {record: (value, who) for record, value, who in labels if value in ("good", "bad")}
    found = 0
    cases = []
    for case in golden:
        if case.id in said:
            value, who = said[case.id]
            found += 1
            case = _said(case, "good" if value == "good" else "bad", who)
        cases.append(case)
    return GoldenSet(cases=tuple(cases), name=golden.name), found


def _said(case: Case, label: Literal["good", "bad"] | None, who: str) -> Case:
    metadata = {**case.metadata, **({"label": label} if label else {})}
    return replace(case, reviewed_by=who, metadata=metadata)


_GRADES: Mapping[Stratum, float] = {"failing": 0.0, "uncertain": 0.5, "rest": 1.0}
"""What the judge's finding is worth as a guess at a person's; how far it is one is found from the labels."""


def production_mean(
    golden: GoldenSet,
    labels: Mapping[str, float] | None = None,
    *,
    db: str | Path | None = None,
    metric: str | None = None,
    since: float | None = None,
    level: float = 0.95,
) -> Estimate:
    """The mean of people's labels over all of production, from a mined set.

    With a database and a metric, it is used too which of all stored turns the judge found failing, uncertain
    or neither, corrected by the labels (`steelyard.stats.corrected_mean`): the interval is the narrower, the
    better the judge knows.

    Args:
        golden: A set of `mine`.
        labels: By case id, in 0..1; what reviewers said (`metadata["label"]`) where None.
        db: The file that the set was drawn from.
        metric: The metric that comes nearest to what people say; it needs a threshold.
        since: As it was given to `mine`.
        level: Nominal coverage.

    Raises:
        ConfigurationError: If there are fewer than two labels of cases that were drawn, or only one of `db`
            and `metric` is given.
    """
    if (db is None) != (metric is None):
        raise ConfigurationError("production_mean needs db and metric together")
    said = labels if labels is not None else labels_of(golden)
    inclusion = _inclusion(golden, said)
    if len(inclusion) < 2:
        raise ConfigurationError("production_mean needs the labels of at least two cases that were drawn")
    values = [float(said[name]) for name in inclusion]
    if db is None or metric is None:
        found = weighted_mean(values, list(inclusion.values()), level=level)
        assert found is not None
        return found
    turns = {turn.record_id: turn for turn in read_turns(db, metric=metric, since=since).turns}
    if gone := inclusion.keys() - turns.keys():
        raise ConfigurationError(
            f"{len(gone)} labelled cases have no score of {metric!r} in {str(db)!r}; "
            "name the results that the set was mined from"
        )
    return corrected_mean(
        [_GRADES[turn.stratum] for turn in turns.values()],
        [_GRADES[turns[name].stratum] for name in inclusion],
        values,
        judged_inclusion=[turn.inclusion for turn in turns.values()],
        labelled_inclusion=list(inclusion.values()),
        level=level,
    )


def _inclusion(golden: GoldenSet, said: Container[str]) -> dict[str, float]:
    """With what chance each labelled case was drawn, beside the likeliest one.

    A weighted mean depends on the ratios of the chances only; the share of all turns drawn cancels out.
    """
    drawn = {case.id: 1 / case.weight for case in golden if case.id in said and case.inclusion_probability}
    return {name: chance / max(drawn.values()) for name, chance in drawn.items()}


def labels_of(golden: GoldenSet) -> dict[str, float]:
    """What reviewers said of the answers from production: 1 for good, 0 for bad."""
    values = {"good": 1.0, "bad": 0.0}
    said = {case.id: case.metadata.get("label") for case in golden}
    return {name: values[label] for name, label in said.items() if isinstance(label, str) and label in values}


_warn_once = WarnOnce(SafeLogger("steelyard.golden"))

Mask = Callable[[Record], Record]
"""Takes a Record and returns it without what must not be in the set, as the Monitor's `mask`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mined:
    """A set drawn from production, and what was left out."""

    golden: GoldenSet
    """The cases; nobody has reviewed them yet."""
    turns: int
    """Turns that could have been drawn."""
    questions: int
    """Distinct questions among them."""
    strata: Mapping[Stratum, tuple[int, int]]
    """Distinct questions and cases, by stratum."""
    clusters: Mapping[str, int]
    """Cases by cluster of questions."""
    left_out: Mapping[str, int]
    """Turns that are not in the set, by reason."""


def mine(
    db: str | Path,
    *,
    n: int = 50,
    metric: str | None = None,
    since: float | None = None,
    shares: Mapping[Stratum, float] | None = None,
    mask: Mask | None = None,
    seed: int = 0,
    name: str = "production",
) -> Mined:
    """Draw cases from a results file.

    Turns with the same question (whatever its case and punctuation) count as one; one of them is taken.
    Failing turns, uncertain ones (near a threshold, or with a wide standard error) and the rest get their
    shares of the cases, spread over clusters of questions. A case's `inclusion_probability` is the
    probability with which its turn was picked for judging, times the one with which it was drawn here; so
    sums and means weighted by its inverse estimate all of production without bias, as long as no case is
    taken out.

    Args:
        db: A file that `SQLiteSink` wrote.
        n: How many cases; all distinct questions if there are fewer.
        metric: Only this metric decides what fails or is uncertain.
        since: Only turns evaluated at or after this Unix time.
        shares: Other shares than .3, .15 and .55.
        mask: Applied to every case; if it raises, the case is left out.
        seed: The same seed and file draw the same cases.
        name: What the set is called.

    Raises:
        ConfigurationError: If an option cannot mean what was given, or no turn can be drawn.
    """
    population = Population.read(db, metric=metric, since=since, seed=seed)
    drawn = population.draw(n, shares=shares, seed=seed)
    cases, failed = [], dict.fromkeys(("mask failed", "unreadable"), 0)
    clusters: dict[str, int] = {}
    for one in drawn:
        made = _case(db, one, mask)
        if isinstance(made, str):
            failed[made] += 1
        else:
            cases.append(made)
            clusters[one.cluster] = clusters.get(one.cluster, 0) + 1
    taken = [one.turn.stratum for one in drawn]
    kinds = [group[0].stratum for group in population.groups]
    stored = population.stored
    return Mined(
        golden=GoldenSet(cases=tuple(cases), name=name),
        turns=len(stored.turns),
        questions=len(kinds),
        strata={kind: (kinds.count(kind), taken.count(kind)) for kind in SHARES},
        clusters=clusters,
        left_out={
            "same question as another": sum(len(group) - 1 for group in population.groups),
            "stored without texts": stored.without_content,
            "no score": stored.without_score,
            **failed,
        },
    )


def _case(db: str | Path, drawn: Drawn, mask: Mask | None) -> Case | str:
    turn = drawn.turn
    with closing(connect_readonly(db)) as connection:
        try:
            evaluation = stored_evaluation(connection.execute, turn.record_id)
        except InvalidRecord:
            return "unreadable"
    if evaluation is None or evaluation.record is None:
        return "unreadable"
    record = evaluation.record
    if mask is not None:
        try:
            record = mask(record)
        except Exception as error:  # noqa: BLE001 - the user's function may raise anything
            _warn_once("mask", "the mask raised %s; such cases are left out", error_place(error))
            return "mask failed"
        if not isinstance(record, Record):
            return "mask failed"
    return Case(
        id=turn.record_id,
        question=record.question,
        reference=record.reference,
        reference_contexts=tuple(context.text for context in record.reference_contexts),
        contexts=tuple(context.text for context in record.contexts),
        answer=record.answer,
        tags=record.tags,
        source="production",
        # Products of probabilities may come out above 1 in the last place.
        inclusion_probability=min(drawn.probability, 1.0),
        metadata={
            "stratum": turn.stratum,
            # The name of a cluster is made of words of the questions, which a mask may have taken out.
            "cluster": drawn.cluster if mask is None else "",
            # The bar that the set brings along, and whose it is.
            "scores": {name: round(value, 6) for name, value in turn.scores.items()},
            "judges": _judges(evaluation, turn),
            **_why(evaluation, turn),
        },
    )


def _judges(evaluation: Evaluation, turn: StoredTurn) -> dict[str, str]:
    return {
        score.metric: named_judge(score.provenance.judge, score.provenance.prompt_version)
        for score in evaluation.scores
        if score.metric in turn.scores and score.provenance is not None
    }


def _why(evaluation: Evaluation, turn: StoredTurn) -> dict[str, str]:
    """What its worst score says, for whoever reviews it; the judge's words quote the turn."""
    failing = [score for score in evaluation.scores if score.passed is False and score.metric in turn.scores]
    return {"failed": ", ".join(score.metric for score in failing)} if failing else {}
