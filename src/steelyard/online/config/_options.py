"""What a Monitor was asked to do, checked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from steelyard.engine import check_names
from steelyard.errors import ConfigurationError
from steelyard.metrics import Metric
from steelyard.online._masking import Mask
from steelyard.online.queue._spool_settings import SpoolSettings
from steelyard.online.selection._budget import Budget
from steelyard.online.selection._selection import Selection
from steelyard.questions import Embedder, Fuse, Judge
from steelyard.sinks import Sink


@dataclass(frozen=True, kw_only=True)
class MonitorOptions:
    """A Monitor's options, each valid by itself and together."""

    metrics: Sequence[Metric]
    judge: Judge | None
    embedder: Embedder | None
    sinks: Sequence[Sink]
    selection: Selection
    mask: Mask | None
    mask_timeout: float
    store_content: bool
    fuse: Fuse
    concurrency: int
    deadline: float
    sink_timeout: float
    max_queue: int
    max_queue_bytes: int
    exit_timeout: float
    throttle: float | None
    budget: Budget | None
    spool: SpoolSettings | None

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigurationError: Naming the option.
        """
        for name in ("concurrency", "max_queue", "max_queue_bytes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigurationError(f"{name} must be a whole number of at least 1, not {value!r}")
        for name in ("deadline", "sink_timeout", "mask_timeout", "exit_timeout"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
                raise ConfigurationError(f"{name} must be a number of seconds, not {value!r}")
        if self.fuse not in get_args(Fuse):
            raise ConfigurationError(f"fuse must be one of {', '.join(get_args(Fuse))}, not {self.fuse!r}")
        if self.mask is not None and not callable(self.mask):
            raise ConfigurationError(f"mask must be a function of a Record, not {self.mask!r}")
        self._check_kinds()
        self._check_limits()
        check_names(self.metrics)
        unknown = set(self.selection.metric_rates) - {metric.instance for metric in self.metrics}
        if unknown:
            raise ConfigurationError(f"metric_rates names {min(unknown)!r}, which is not among the metrics")

    def _check_limits(self) -> None:
        if self.throttle is not None and (isinstance(self.throttle, bool) or not self.throttle > 0):
            raise ConfigurationError(f"throttle must be a number of turns a minute, not {self.throttle!r}")
        if self.budget is not None and self.spool is not None and not self.spool.evaluate:
            raise ConfigurationError(
                "a budget must know what judging used, but another process judges; give it no budget here"
            )

    def _check_kinds(self) -> None:
        for metric in self.metrics:
            if not isinstance(metric, Metric):
                raise ConfigurationError(
                    f"metrics must be Metric objects such as Faithfulness(), not {metric!r}"
                )
            if metric.judge is None and self.judge is None:
                raise ConfigurationError(f"the metric {metric.instance!r} has no judge; pass judge=")
        for sink in self.sinks:
            if not isinstance(sink, Sink):
                raise ConfigurationError(
                    f"a sink needs a name, write() and aclose(), unlike {sink!r}; see steelyard.sinks.Sink"
                )
