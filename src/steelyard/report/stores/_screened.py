"""Turns that a screen saw, with what the judge said of those that it saw too, out of SQL tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from steelyard.report.queries import ScreenedTurns

_JUDGED: Final = "s.status, s.value, s.passed, s.inclusion_probability, s.judge"


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
