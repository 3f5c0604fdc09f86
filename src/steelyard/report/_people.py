"""What people's labels say of the scores in a report."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from steelyard.calibration import Assessment, Refusal, assess, collect
from steelyard.errors import InvalidRecord
from steelyard.report._text import one_line
from steelyard.report.labels import Label
from steelyard.report.queries import ResultsReader, Scope
from steelyard.scores import Evaluation

_LATEST = 2_000
_PAGE = 500


def people_of(reader: ResultsReader, scope: Scope, labels: Iterable[Label]) -> tuple[Assessment, ...]:
    """The scores of a period held against people's labels, by metric and judge.

    The latest 2,000 turns stand for all of them, besides those that were labelled: what they cannot tell,
    more turns would not tell either. Nothing is read where there are no labels.
    """
    said = list(labels)
    if not said:
        return ()
    turns: dict[str, Evaluation] = {}
    place = max(reader.position() - _LATEST, 0)
    while page := reader.written_after(place, limit=_PAGE):
        place = page[-1][0]
        turns |= {evaluation.record_id: evaluation for _, evaluation in page}
    for record_id in {label.record_id for label in said} - turns.keys():
        with contextlib.suppress(InvalidRecord):
            if (evaluation := reader.evaluation(record_id)) is not None:
                turns[record_id] = evaluation
    meant = (_narrowed(turn, scope) for turn in turns.values() if _is_in(turn, scope))
    return tuple(
        assess(material)
        for material in collect(meant, said)
        if material.labelled or material.answers.contradictory
    )


def _is_in(turn: Evaluation, scope: Scope) -> bool:
    tags = turn.record.tags if turn.record else ()
    return (
        (scope.since is None or turn.evaluated_at >= scope.since)
        and (scope.until is None or turn.evaluated_at < scope.until)
        and (scope.tag is None or scope.tag in tags)
    )


def _narrowed(turn: Evaluation, scope: Scope) -> Evaluation:
    if scope.metric is None:
        return turn
    return turn.replace(scores=tuple(score for score in turn.scores if score.metric == scope.metric))


def people_lines(found: Assessment) -> list[str]:
    """One metric and judge in words: the corrected mean first."""
    metric, judge = one_line(found.key.metric, 40), one_line(found.key.judge, 60)
    known = f"{metric} by {judge}: {found.agreement.n:,} labelled turns"
    mean, raw, kappa = found.corrected_mean, found.raw_mean, found.agreement.kappa
    if mean is None or raw is None:
        return [f"{known} are too few to correct the mean by"]
    more = found.to_halve
    lines = [
        f"{known}, {mean.value:.2f} ({mean.low:.2f} to {mean.high:.2f}) of all are good; the judge's mean is "
        f"{raw.value:.2f}",
        f"about {more:,} more labels would halve that interval"
        if more is not None
        else "more labels alone would not halve that interval",
    ]
    if kappa is not None:
        lines.append(f"judge and people: kappa {kappa.value:.2f} ({kappa.low:.2f} to {kappa.high:.2f})")
    if isinstance(found.fit, Refusal):
        lines.append(f"cannot be calibrated: {found.fit.explanation}")
    if found.agreement.contradictory:
        lines.append(f"{len(found.agreement.contradictory):,} turns left out: as many say good as bad")
    return lines
