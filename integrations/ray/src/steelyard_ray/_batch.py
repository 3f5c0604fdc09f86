"""`ScoreBatch`: what `ray.data` maps over the batches of a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steelyard.backfill import Columns, record_of
from steelyard.errors import InvalidRecord
from steelyard.questions import Fuse
from steelyard.record import Record
from steelyard.scores import evaluation_to_json
from steelyard_ray._judging import JudgeSettings, Judging


class ScoreBatch:
    """Scores the turns of a batch: `dataset.map_batches(ScoreBatch, concurrency=2)`.

    Every batch comes back with its own columns and three kinds more: `record_id`; one column by metric, with
    its value or NaN where there is none; and `evaluation`, all of it as JSON, which
    `steelyard.scores.evaluation_from_json` reads. Result ids are those of a backfill, so that the sinks know
    the results again. A row that holds no turn has an empty `record_id` and its reason in `evaluation_error`.

    Args:
        metrics: Names; none for the judge's default suite.
        judge: `local`, `openai:MODEL` or `decisions:MODEL`.
        columns: Column by part of a turn, where the usual names do not fit: `{"question": "prompt"}`.
        base_url: The judge's server.
        key_variable: The environment variable with its key, on the machines of the cluster.
        fuse: How questions share requests.
        deadline: Seconds for one turn.
        concurrency: Turns in flight in one actor.

    Raises:
        ConfigurationError: If an option cannot mean what was given, or a batch lacks a column.
    """

    def __init__(
        self,
        *,
        metrics: Sequence[str] = (),
        judge: str = "local",
        columns: Mapping[str, str] | None = None,
        base_url: str | None = None,
        key_variable: str | None = None,
        fuse: Fuse = "view",
        deadline: float = 120.0,
        concurrency: int = 8,
    ) -> None:
        self._columns = Columns(columns or {})
        self._judging = Judging(
            JudgeSettings(
                metrics=tuple(metrics),
                judge=judge,
                base_url=base_url,
                key_variable=key_variable,
                fuse=fuse,
                deadline=deadline,
                concurrency=concurrency,
            )
        )

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Score one batch of columns."""
        found = self._columns.find(list(batch), where="the dataset")
        size = len(next(iter(batch.values()), ()))
        ids, made = np.full(size, "", dtype=object), np.full(size, "", dtype=object)
        values = {metric.name: np.full(size, np.nan) for metric in self._judging.metrics}
        rows = [{name: _plain(column[at]) for name, column in batch.items()} for at in range(size)]
        records, errors = _records(rows, found)
        for at, result in zip(records, self._judging.score(list(records.values())), strict=True):
            ids[at], made[at] = result.record_id, evaluation_to_json(result)
            for name, column in values.items():
                value = result[name].value
                column[at] = np.nan if value is None else value
        return {**batch, "record_id": ids, "evaluation": made, "evaluation_error": errors, **values}


def _records(
    rows: Sequence[Mapping[str, Any]], found: Mapping[str, str]
) -> tuple[dict[int, Record], np.ndarray[Any, Any]]:
    """The turns by the place of their row, and why each other row holds none."""
    records: dict[int, Record] = {}
    errors = np.full(len(rows), "", dtype=object)
    for at, row in enumerate(rows):
        try:
            records[at] = record_of(row, found)
        except InvalidRecord as error:
            errors[at] = str(error)
    return records, errors


def _plain(value: Any) -> Any:
    """A cell as plain Python: arrays become lists."""
    if isinstance(value, np.ndarray):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value
