"""Rows of SQL tables as columns: the scores of a metric, turns that a screen saw, groups by record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from steelyard.results._store import Row
from steelyard.results.queries import MetricScores, ScreenedTurns

_JUDGED: Final = "s.status, s.value, s.passed, s.inclusion_probability, s.judge"


class ScoreColumns:
    """The columns of one metric's scores, chunk by chunk."""

    def __init__(self) -> None:
        self._numbers: list[npt.NDArray[np.float64]] = []
        self._units: list[str | None] = []
        self._owners: list[str | None] = []
        self._last: Row = ()
        self._every = 1

    def add(self, rows: Sequence[Row], every: int) -> None:
        """Rows of metric, time, value, passed, inclusion, threshold, direction, unit and owner."""
        _, times, values, passed, inclusion, _, _, units, owners = zip(*rows, strict=True)
        self._numbers.append(np.array([times, values, passed, inclusion], float))
        self._units += units
        self._owners += owners
        self._last, self._every = rows[-1], every

    def joined(self) -> MetricScores:
        times, values, passed, inclusion = np.concatenate(self._numbers, axis=1)
        return MetricScores(
            times=times,
            # A metric of somebody's own may go beyond 0..1, which intervals do not.
            values=np.clip(values, 0.0, 1.0),
            passed=passed,
            inclusion=inclusion / self._every,
            units=self._units,
            owners=self._owners,
            threshold=self._last[5],
            direction=self._last[6],
            every=self._every,
        )


def groups_of(rows: Iterable[Row]) -> dict[str, tuple[str, ...]]:
    """The groups of each record; those that are the same are one object."""
    found: dict[str, tuple[str, ...]] = {}
    same: dict[tuple[str, ...], tuple[str, ...]] = {}
    for record, group in rows:
        if isinstance(group, str) and group:
            groups = (*found.get(record, ()), group)
            # Millions of turns share a few combinations of tags.
            found[record] = same.setdefault(groups, groups)
    return found


def seen_by_screen(where: str, unit: str) -> str:
    """All that a screen scored, the latest first; of a turn that was judged anew, each result."""
    return f"""SELECT q.metric, q.happened_at, q.value, q.inclusion_probability, q.judge, q.fitted, {unit},
        q.record_id, {_JUDGED} FROM screened q JOIN evaluations e ON e.record_id = q.record_id
        LEFT JOIN scores s ON s.record_id = q.record_id AND s.metric = q.metric
        WHERE q.value IS NOT NULL AND {where} ORDER BY q.happened_at DESC, q.record_id LIMIT :limit"""


def seen_by_judge_alone(where: str, unit: str) -> str:
    """What the judge scored and no screen, of the metrics that one scores: from before there was a screen."""
    return f"""SELECT s.metric, s.happened_at, NULL, 1.0, '', '', {unit}, s.record_id, {_JUDGED}
        FROM scores s JOIN evaluations e ON e.record_id = s.record_id
        WHERE s.metric IN (SELECT DISTINCT metric FROM screened) AND s.status != 'failed' AND {where}
        AND NOT EXISTS (SELECT 1 FROM screened q WHERE q.record_id = s.record_id AND q.metric = s.metric
        AND q.value IS NOT NULL) ORDER BY s.happened_at DESC, s.record_id LIMIT :limit"""


def by_metric(rows: Sequence[Sequence[Any]]) -> dict[str, ScreenedTurns]:
    """The turns of each metric in order of time; of a turn that was judged twice, one result."""
    found: defaultdict[str, dict[str, Sequence[Any]]] = defaultdict(dict)
    for metric, *rest in sorted(rows, key=lambda row: row[1]):
        record, status = rest[6], rest[7]
        # A failure counts only where nothing else is known.
        if record not in found[metric] or status == "scored":
            found[metric][record] = rest
    return {metric: _turns([*turns.values()]) for metric, turns in found.items()}


def _turns(rows: Sequence[Sequence[Any]]) -> ScreenedTurns:
    columns = [np.array(column, object) for column in zip(*rows, strict=True)]
    times, said, screened, screens, fitted, units, records, status, values, passed, inclusion, judges = (
        columns
    )
    scored = (status == "scored") & (values != None)  # noqa: E711 - of each
    answered = scored | (status == "not_applicable")
    return ScreenedTurns(
        times=times.astype(float),
        said=said.astype(float),
        screened=screened.astype(float),
        makes=np.array(
            [f"{screen} {version}".strip() for screen, version in zip(screens, fitted, strict=True)], object
        ),
        units=units,
        records=records,
        judges=np.where(answered, judges, ""),
        judged=np.where(scored, values, np.nan).astype(float),
        passed=np.where(scored, passed, np.nan).astype(float),
        inclusion=np.where(answered, inclusion, np.nan).astype(float),
    )
