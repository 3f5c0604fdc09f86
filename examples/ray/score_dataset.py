"""Score the turns in a Parquet file on a Ray cluster.

pip install 'steelyard[backfill,ray]'
python score_dataset.py turns.parquet scored/
"""

from __future__ import annotations

import sys

import ray.data

from steelyard_ray import ScoreBatch


def main() -> None:
    source, target = sys.argv[1:3]
    turns = ray.data.read_parquet(source)
    scored = turns.map_batches(
        ScoreBatch,
        fn_constructor_kwargs={"metrics": ["faithfulness", "answer_relevancy"]},
        batch_size=64,
        # Less than a CPU each: reading needs some as well.
        num_cpus=0.5,
        concurrency=2,
    )
    written = scored.materialize()
    written.write_parquet(target)
    print(f"scored {written.count()} turns into {target}")


if __name__ == "__main__":
    main()
