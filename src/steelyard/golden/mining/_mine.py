"""Drawing golden cases from stored turns, so that a mean over them still estimates production."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from steelyard._internal.logs import SafeLogger
from steelyard._internal.redact import error_place
from steelyard._internal.warn_once import WarnOnce
from steelyard.errors import InvalidRecord
from steelyard.golden._results import named_judge
from steelyard.golden._set import Case, GoldenSet
from steelyard.golden.mining._population import SHARES, Drawn, Population, StoredTurn, Stratum
from steelyard.record import Record
from steelyard.scores import Evaluation
from steelyard.sinks import connect_readonly, evaluation_of

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
    """The case, or why there is none."""
    turn = drawn.turn
    with closing(connect_readonly(db)) as connection:
        try:
            evaluation = evaluation_of(connection, turn.record_id)
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
