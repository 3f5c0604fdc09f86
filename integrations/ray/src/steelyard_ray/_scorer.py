"""A backfill's Scorer on a cluster: tasks go out to actors in batches, Evaluations come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from itertools import islice
from typing import Any, Final

from steelyard.backfill import Task
from steelyard.errors import MissingDependency
from steelyard.questions import Fuse
from steelyard.record import record_from_json, record_to_json
from steelyard.scores import Evaluation, evaluation_from_json, evaluation_to_json
from steelyard_ray._judging import JudgeSettings, Judging

_BATCH: Final = 32
_AHEAD: Final = 2


class RayScorer:
    """Judges a backfill's tasks in Ray actors.

    An actor that dies is started again, and the batches it had are scored again: nothing is lost, and result
    ids are the same wherever a turn is scored.

    Args:
        metrics: Names of the metrics.
        judge: `local`, `openai:MODEL` or `decisions:MODEL`.
        base_url: The judge's server.
        key_variable: The environment variable with its key, on the machines of the cluster.
        fuse: How questions share requests.
        deadline: Seconds for one turn.
        concurrency: Turns in flight in one actor.
        actors: How many actors, each with one CPU.
        address: The cluster; one on this machine is started where there is none.
    """

    def __init__(
        self,
        *,
        metrics: Sequence[str] = (),
        judge: str = "local",
        base_url: str | None = None,
        key_variable: str | None = None,
        fuse: Fuse = "view",
        deadline: float = 120.0,
        concurrency: int = 8,
        actors: int = 2,
        address: str | None = None,
    ) -> None:
        self._settings = JudgeSettings(
            metrics=tuple(metrics),
            judge=judge,
            base_url=base_url,
            key_variable=key_variable,
            fuse=fuse,
            deadline=deadline,
            concurrency=concurrency,
        )
        self._actors = actors
        self._address = address

    async def score(self, tasks: Iterable[Task]) -> AsyncGenerator[Evaluation, None]:
        """Evaluations as they come, in no order."""
        ray = _load()
        started = await asyncio.to_thread(_connect, ray, self._address)
        made = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=-1)(_Actor)
        actors = [made.remote(self._settings) for _ in range(self._actors)]
        coming = iter(tasks)
        under_way: dict[Any, Any] = {}
        try:
            for actor in actors * _AHEAD:
                _send(actor, coming, under_way)
            while under_way:
                done, _ = await asyncio.to_thread(ray.wait, list(under_way), num_returns=1)
                for reference in done:
                    actor = under_way.pop(reference)
                    _send(actor, coming, under_way)
                    for line in await asyncio.to_thread(ray.get, reference):
                        yield evaluation_from_json(line)
        finally:
            for actor in actors:
                ray.kill(actor)
            if started:
                ray.shutdown()


def _send(actor: Any, coming: Iterable[Task], under_way: dict[Any, Any]) -> None:
    """Give an actor the next batch, if there is one."""
    batch = list(islice(coming, _BATCH))
    if batch:
        lines = [(record_to_json(task.record), task.metrics, task.inclusion) for task in batch]
        under_way[actor.score.remote(lines)] = actor


class _Actor:
    """One of the processes that judge."""

    def __init__(self, settings: JudgeSettings) -> None:
        self._judging = Judging(settings)

    def score(self, batch: list[tuple[str, tuple[str, ...], float]]) -> list[str]:
        """Score a batch: records and Evaluations travel as JSON."""
        records = [record_from_json(line) for line, _, _ in batch]
        names = [metrics for _, metrics, _ in batch]
        found = self._judging.score(records, names, batch[0][2])
        return [evaluation_to_json(evaluation) for evaluation in found]


def _load() -> Any:
    try:
        import ray
    except ImportError:
        raise MissingDependency("ray", extra="ray") from None
    return ray


def _connect(ray: Any, address: str | None) -> bool:
    """Join the cluster; whether this was not done before."""
    if ray.is_initialized():
        return False
    ray.init(address=address, log_to_driver=False, include_dashboard=False, logging_level="ERROR")
    return True
