"""Score the turns in a Parquet file on a Ray cluster, with one judge in each actor.

pip install 'steelyard[backfill]' 'ray[data]'
python score_dataset.py turns.parquet scored/

Each row gets a column for each metric, and `evaluation`, all of it as JSON.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import ray.data

from steelyard import evaluate
from steelyard.backfill import Columns, record_of
from steelyard.judge import LocalJudge
from steelyard.metrics import ContextUtilization, Faithfulness
from steelyard.scores import evaluation_to_json


class ScoreBatch:
    """Scores each batch of rows. A remote judge would find its key in the actor's environment."""

    def __init__(self) -> None:
        self._judge = LocalJudge()
        self._metrics = [Faithfulness(), ContextUtilization()]

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        columns = Columns().find(list(batch), where="the dataset")
        rows = [dict(zip(batch, row, strict=True)) for row in zip(*map(_plain, batch.values()), strict=True)]
        results = evaluate(
            [record_of(row, columns) for row in rows],
            metrics=self._metrics,
            judge=self._judge,
            progress=False,
        )
        for metric in self._metrics:
            values = [result[metric.name].value for result in results]
            batch[metric.name] = np.array([np.nan if value is None else value for value in values])
        batch["evaluation"] = np.array([evaluation_to_json(result) for result in results], dtype=object)
        return batch


def _plain(column: Any) -> list[Any]:
    return [_plain(cell) if isinstance(cell, np.ndarray) else cell for cell in column.tolist()]


def main() -> None:
    source, target = sys.argv[1:3]
    turns = ray.data.read_parquet(source)
    # Less than a CPU each: reading needs some as well.
    scored = turns.map_batches(ScoreBatch, batch_size=64, num_cpus=0.5, concurrency=2)
    written = scored.materialize()
    written.write_parquet(target)
    print(f"scored {written.count()} turns into {target}")


if __name__ == "__main__":
    main()
