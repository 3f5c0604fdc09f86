"""What a Monitor uses where nothing was said: the local judge, its suite, and the sinks that are at hand."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.judge import Embedder, Judge, LocalJudge, StaticEmbedder, judge_from
from steelyard.metrics import Metric, default_metrics
from steelyard.sinks import Sink, SQLiteSink

if TYPE_CHECKING:
    from steelyard.online.monitor import Monitor

__all__ = ["Parts", "choose_parts", "default_monitor"]

_log = logging.getLogger("steelyard.online")
_SHARE = 0.2
"""Of one core, for the local judge inside an application: it then lets go of the interpreter often enough."""
_DATABASE = Path("steelyard.db")


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Who judges what, and where it goes."""

    metrics: Sequence[Metric]
    judge: Judge | None
    embedder: Embedder | None
    sinks: Sequence[Sink]


def choose_parts(
    *,
    metrics: Sequence[Metric] | None,
    judge: Judge | str | None,
    embedder: Embedder | None,
    sinks: Sequence[Sink] | None,
) -> Parts:
    """Fill in what was not given.

    Raises:
        ConfigurationError: If the judge's name means nothing.
    """
    chosen = None
    if judge is not None or metrics is None or any(metric.judge is None for metric in metrics):
        chosen = LocalJudge(max_share=_SHARE) if judge is None or judge == "local" else judge_from(judge)
    if metrics is None:
        assert chosen is not None
        metrics = default_metrics(chosen)
    if embedder is None and metrics:
        embedder = StaticEmbedder()
    return Parts(
        metrics=tuple(metrics),
        judge=chosen,
        embedder=embedder,
        sinks=tuple(_default_sinks() if sinks is None else sinks),
    )


def _default_sinks() -> list[Sink]:
    sinks: list[Sink] = []
    folder = _DATABASE.absolute().parent
    existing = _DATABASE if _DATABASE.exists() else folder
    if os.access(folder, os.W_OK) and os.access(existing, os.W_OK):
        sinks.append(SQLiteSink(_DATABASE))
    else:
        _log.warning("%s cannot be written to; results are kept in memory and end with the process", folder)
        sinks.append(SQLiteSink(":memory:"))
    if find_spec("opentelemetry") is not None:
        from steelyard.sinks import OpenTelemetrySink

        sinks.append(OpenTelemetrySink())
    return sinks


_lock = threading.Lock()
_shared: Monitor | None = None


def default_monitor() -> Monitor:
    """The Monitor of recorders that were given none: one for the whole process, made at first use."""
    global _shared
    from steelyard.online.monitor import Monitor

    with _lock:
        if _shared is None:
            _shared = Monitor()
        return _shared
