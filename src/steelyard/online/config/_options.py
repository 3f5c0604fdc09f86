"""What a Monitor was asked to do, checked once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from steelyard.calibration import Calibration
from steelyard.diagnosis import Experiments
from steelyard.engine import check_names
from steelyard.errors import ConfigurationError
from steelyard.metrics import Metric
from steelyard.online._canary_options import Canaries
from steelyard.online.config._plain import PlainOptions
from steelyard.online.queue._spool_file import SpoolSettings
from steelyard.online.selection._allocation import least_share
from steelyard.online.selection._budget import Budget
from steelyard.online.selection._selection import Selection
from steelyard.questions import Embedder, Judge
from steelyard.record import Record
from steelyard.recording import check_function
from steelyard.sinks import Sink

Mask = Callable[[Record], Record]
"""Takes a Record and returns it without what must not leave the process."""


@dataclass(frozen=True, kw_only=True)
class MonitorOptions(PlainOptions):
    """A Monitor's options in force, each valid by itself and together."""

    metrics: Sequence[Metric]
    """What turns are scored with; none is legal."""
    judge: Judge | None
    """Who answers for metrics that bring no judge of their own."""
    embedder: Embedder | None
    """Who embeds."""
    sinks: Sequence[Sink]
    """Where results go."""
    selection: Selection
    """Which turns are judged."""
    mask: Mask | None
    """What takes out of a Record what nobody may see."""
    budget: Budget | None
    """What judging may use up."""
    spool: SpoolSettings | None
    """Where picked turns are kept until they are judged and delivered."""
    calibration: Calibration | None = None
    """What the judge's scores mean, by people's labels."""
    canaries: Canaries | None = None
    """Probes with a known answer that are asked beside turns."""
    screen: Judge | None = None
    """A cheaper judge that sees the turns of which the judge sees a share."""
    experiments: Experiments | None = None
    """How bad turns are answered again, to see what they suffer from."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigurationError: Naming the option.
        """
        super().__post_init__()
        check_function("mask", self.mask)
        self._check_kinds()
        self._check_limits()
        self._check_screen()
        check_names(self.metrics)
        unknown = set(self.selection.metric_rates) - {metric.name for metric in self.metrics}
        if unknown:
            raise ConfigurationError(
                f"metric_rates names {min(unknown)!r}, which is not among the metrics; "
                "add it to metrics, or leave it out"
            )

    @property
    def screened(self) -> tuple[Metric, ...]:
        """The metrics that the screen scores as well: those that bring no judge of their own."""
        return () if self.screen is None else tuple(one for one in self.metrics if one.judge is None)

    @property
    def floor(self) -> float | None:
        """No picked turn has a lower inclusion probability, for any metric; None where `choose` decides."""
        floor = self.selection.floor
        return floor if floor is None or not self.screened else floor * least_share(self.screen_floor)

    def _check_screen(self) -> None:
        if self.screen is None or not self.metrics:
            return
        if not self.screened:
            raise ConfigurationError(
                "every metric brings a judge of its own, so that there is nothing for a screen to see; "
                "leave screen out"
            )
        if self.judge is not None and self.judge.name == self.screen.name:
            raise ConfigurationError(
                f"judge and screen are both {self.screen.name!r}; a screen must be a cheaper judge"
            )

    def _check_limits(self) -> None:
        if self.experiments is not None and not isinstance(self.experiments, Experiments):
            raise ConfigurationError(
                f"experiments={self.experiments!r} is not an Experiments; write Experiments(replay=...) of "
                "steelyard.diagnosis"
            )
        if self.experiments is not None and self.spool is not None and not self.spool.evaluate:
            raise ConfigurationError(
                "experiments are made where turns are judged, which is another process; give them to "
                "`steelyard worker --replay MODULE:NAME`"
            )
        if self.budget is not None and self.spool is not None and not self.spool.evaluate:
            raise ConfigurationError(
                "a budget must know what judging used, but another process judges; give it no budget here"
            )

    def _check_kinds(self) -> None:
        if self.canaries is not None and self.judge is None:
            raise ConfigurationError(
                "canaries watch the Monitor's judge, but every metric brings its own; "
                "leave canaries out, or give judge="
            )
        if self.embedder is not None and not isinstance(self.embedder, Embedder):
            raise ConfigurationError(
                f"embedder={self.embedder!r} is not an Embedder; write OpenAIEmbedder(MODEL) of "
                "steelyard.judge, or give an object with name and embed()"
            )
        for metric in self.metrics:
            if not isinstance(metric, Metric):
                raise ConfigurationError(
                    f"metrics must be names or objects such as Faithfulness(), not {metric!r}"
                )
            if metric.judge is None and self.judge is None:
                raise ConfigurationError(f"the metric {metric.name!r} has no judge; pass judge=")
        for sink in self.sinks:
            if not isinstance(sink, Sink):
                raise ConfigurationError(
                    f"{sink!r} among the sinks is not a Sink; give a name such as 'jsonl:scores.jsonl', or "
                    "an object with name, write() and aclose()"
                )
            self._check_apart(sink)

    def _check_apart(self, sink: Sink) -> None:
        """Refuse a spool where a sink will make its file, be it there already or not."""
        path = getattr(sink, "path", None)
        if self.spool is None or not isinstance(path, str | os.PathLike):
            return
        files = [spool.path for spool in (self.spool, self.spool.beside) if spool is not None]
        # Two schemas in one file: each would refuse what the other has made.
        if os.path.realpath(path) in map(os.path.realpath, files):
            raise ConfigurationError(
                f"the spool and the sink {sink.name!r} cannot share one file; give one of them another path"
            )
