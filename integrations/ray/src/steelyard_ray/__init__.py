"""Steelyard on a Ray cluster: score a dataset with `map_batches`, or a whole backfill with actors.

>>> import ray.data
>>> from steelyard_ray import ScoreBatch
>>> turns = ray.data.read_parquet("turns.parquet")  # doctest: +SKIP
>>> turns.map_batches(ScoreBatch, concurrency=2).write_parquet("scored")  # doctest: +SKIP
"""

from steelyard_ray._batch import ScoreBatch
from steelyard_ray._scorer import RayScorer

__all__ = ["RayScorer", "ScoreBatch"]
