"""What a Monitor was asked to do, checked once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_type_hints

from steelyard._internal.text import instead_of
from steelyard.alarms import AlarmSink, alarms_from
from steelyard.calibration import Calibration
from steelyard.diagnosis import Experiments
from steelyard.engine import check_names
from steelyard.errors import ConfigurationError
from steelyard.judge import LocalJudge, StaticEmbedder, judge_from
from steelyard.judge.middleware import CircuitBreaker, Wrapper
from steelyard.metrics import Metric, default_metrics, parse_metrics
from steelyard.online._budget import Budget, Price
from steelyard.online._selection import Rule, Selection, Suspicion, checked_rate
from steelyard.online._settings import PlainOptions, Settings, load_settings
from steelyard.online.queue._spool_file import SpoolSettings
from steelyard.questions import Embedder, Judge
from steelyard.record import Record
from steelyard.recording import check_function
from steelyard.sinks import Sink, sink_from

_SHARE = 0.2
"""Of one core, for the local judge inside an application: it then lets go of the interpreter often enough."""
_REQUESTS = 16
"""In flight at least: a turn may ask several at a time."""
LEAST = 20
"""Probes that a judge must answer reliably for canaries to tell anything."""
_Table = TypeVar("_Table")
_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", Path: "a text"}
"""Types of entries of a table that are looked at before it is made."""
PLAIN = frozenset(field.name for field in fields(PlainOptions))
"""What can be written down as it is; `tests/online/test_settings.py` holds the signature against it."""


Mask = Callable[[Record], Record]
"""Takes a Record and returns it without what must not leave the process."""


@dataclass(frozen=True, kw_only=True)
class Canaries:
    """Probes with a known answer, mixed in among the requests for turns.

    First the judge is asked each probe four times (`learning`); those that it answers rightly every time are
    its canaries from then on. A judge that later gets them wrong has changed, whatever the application does.
    Probes never count as turns: they have an account of their own, and no sink sees them.
    """

    share: float = 0.02
    """Probes for each judged turn, in (0, 1]: .02 is one for every fifty turns."""
    file: str | Path | None = None
    """Where the probes that a judge answers reliably are kept, so that a change is noticed across restarts
    and nothing is learned twice; None for as long as the process lives. Delete it to accept a judge as it
    is."""
    probes: int = 80
    """How many are tried while learning, each up to four times: at least 20."""
    alpha: float = 0.05
    """Probability of a false alarm within 1,000 probes."""

    def __post_init__(self) -> None:
        for name in ("share", "alpha"):
            value: object = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
                raise ConfigurationError(f"canaries: {name} must be in (0, 1], not {value!r}")
        if self.alpha >= 1:
            raise ConfigurationError(f"canaries: alpha must be below 1, not {self.alpha!r}")
        probes: object = self.probes
        if isinstance(probes, bool) or not isinstance(probes, int) or probes < LEAST:
            raise ConfigurationError(
                f"canaries: probes must be a whole number of at least {LEAST}, not {probes!r}"
            )
        file: object = self.file
        if file is not None and not (isinstance(file, str | Path) and str(file)):
            raise ConfigurationError(f"canaries: file must be a path, not {self.file!r}")


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
    def judges(self) -> bool:
        """Whether turns are judged in this process."""
        return self.spool is None or self.spool.evaluate

    @property
    def floor(self) -> float | None:
        """No picked turn has a lower inclusion probability, for any metric; None where `choose` decides."""
        floor = self.selection.floor
        return floor if floor is None or not self.screened else floor * self.least_share

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
        if self.experiments is not None and not self.judges:
            raise ConfigurationError(
                "experiments are made where turns are judged, which is another process; give them to "
                "`steelyard worker --replay MODULE:NAME`"
            )
        if self.budget is not None and not self.judges:
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


def options_from(given: Mapping[str, Any]) -> MonitorOptions:
    """A Monitor's options: what code has given, and where that is None what settings and defaults say."""
    settings = load_settings().settings
    plain = {name: getattr(settings, name) if given[name] is None else given[name] for name in PLAIN}
    concurrency = plain["concurrency"]
    judge, metrics = _judge_and_metrics(settings, given["judge"], given["metrics"], concurrency)
    screen = settings.screen if given["screen"] is None else given["screen"]
    embedder = StaticEmbedder() if given["embedder"] is None else given["embedder"]
    sinks = settings.sinks if given["sinks"] is None else given["sinks"]
    return MonitorOptions(
        metrics=tuple(metrics),
        judge=judge,
        screen=_guarded(_judge(screen, concurrency)) if screen else None,
        embedder=embedder,
        sinks=_with_alarms(settings, _sinks(sinks)),
        selection=_selection(
            settings, given["sample_rate"], _of_kind(Selection, given["selection"], "selection")
        ),
        mask=given["mask"],
        budget=_of_kind(Budget, given["budget"], "budget") or _budget(settings),
        spool=choose_spool(settings, given["spool"]),
        calibration=_calibration(settings, given["calibration"]),
        canaries=_canaries(settings, given["canaries"]),
        experiments=given["experiments"],
        **plain,
    )


def _judge_and_metrics(
    settings: Settings, judge: Judge | str | None, metrics: Sequence[Metric | str] | None, concurrency: int
) -> tuple[Judge | None, Sequence[Metric]]:
    suite = _bringing_judges(metrics)
    if judge is None and suite is not None:
        return None, suite
    # An address in settings belongs to the judge in settings, and not to one that code names.
    named, base_url = (settings.judge, settings.base_url) if judge is None else (judge, "")
    chosen = _guarded(_judge(named, concurrency, base_url))
    suite = parse_metrics(settings.metrics if metrics is None else metrics, chosen)
    return chosen, (suite or default_metrics(chosen)) if metrics is None else suite


def _bringing_judges(metrics: Sequence[Metric | str] | None) -> list[Metric] | None:
    """The metrics, if nobody needs the Monitor's judge; None if one does."""
    if metrics is None or isinstance(metrics, str | Metric):
        return None
    suite = [one for one in metrics if isinstance(one, Metric) and one.judge is not None]
    return suite if len(suite) == len(metrics) else None


def _judge(name: Judge | str, concurrency: int, base_url: str = "") -> Judge:
    if not isinstance(name, str):
        return judge_from(name)
    if name == "local":
        return LocalJudge(max_share=_SHARE)
    # Turns judged at the same time would otherwise wait for each other's requests.
    return judge_from(name, base_url=base_url or None, concurrency=max(_REQUESTS, concurrency))


def _guarded(judge: Judge) -> Judge:
    """The judge behind a breaker, unless it has one or is part of this process."""
    inner = judge
    while isinstance(inner, Wrapper):
        if isinstance(inner, CircuitBreaker):
            return judge
        inner = inner.judge
    return judge if isinstance(inner, LocalJudge) else CircuitBreaker(judge)


def _sinks(given: Sequence[Sink | str]) -> list[Sink]:
    if isinstance(given, str | Sink):
        raise ConfigurationError(f"sinks must be a list, not a single sink; write sinks=[{given!r}]")
    return [sink for one in given for sink in (sink_from(one) if isinstance(one, str) else [one])]


def _with_alarms(settings: Settings, sinks: Sequence[Sink]) -> tuple[Sink, ...]:
    """The sinks, and the alarms of settings where code did not bring its own."""
    if not settings.alarm or any(isinstance(sink, AlarmSink) for sink in sinks):
        return tuple(sinks)
    return (*sinks, AlarmSink(alarms_from(settings.alarm), file=settings.alarm_file))


def _selection(settings: Settings, sample_rate: float | None, selection: Selection | None) -> Selection:
    """The selection that code brought, or the one that settings describe; a rate that was given wins."""
    if selection is None:
        selection = Selection(
            rate=checked_rate(settings.sample_rate, "sample_rate"),
            rules=[_made(Rule, entries, "rules") for entries in settings.rules],
            suspicion=_made(Suspicion, settings.suspicion, "suspicion") if settings.suspicion else None,
            metric_rates=settings.metric_rates,
        )
    if sample_rate is None:
        return selection
    return replace(selection, rate=checked_rate(sample_rate, "sample_rate"))


def _budget(settings: Settings) -> Budget | None:
    entries = dict(settings.budget)
    match entries.get("price"):
        case str(model):
            entries["price"] = Price.named(model, base_url=settings.base_url or None)
        case Mapping() as price:
            entries["price"] = _made(Price, price, "budget.price")
    return _made(Budget, entries, "budget") if entries else None


def choose_spool(settings: Settings, given: str | Path | SpoolSettings | None) -> SpoolSettings | None:
    """The spool that code or settings name; its other entries are those of settings if code gave a path."""
    if isinstance(given, SpoolSettings):
        return given
    entries = dict(settings.spool) if given is None else {**settings.spool, "path": given}
    if entries and "path" not in entries:
        # Or turns would go through memory where somebody thinks that they are kept.
        _check_entries(SpoolSettings, entries, "spool")
        raise ConfigurationError("spool: path is missing; name a file or a broker, or leave the table out")
    return _made(SpoolSettings, entries, "spool") if entries else None


def spool_settings(given: str | Path | None = None) -> SpoolSettings | None:
    """The spool for a worker, which judges what is in it; see `choose_spool`.

    Raises:
        ConfigurationError: If an entry means nothing.
    """
    chosen = choose_spool(load_settings().settings, given)
    return replace(chosen, evaluate=True, fallback=None) if chosen is not None else None


def _calibration(settings: Settings, given: str | Path | Calibration | None) -> Calibration | None:
    if isinstance(given, Calibration):
        return given
    if given is not None and not isinstance(given, str | Path):
        raise ConfigurationError(f"calibration must be a file or a Calibration, not {given!r}")
    path = settings.calibration if given is None else given
    return Calibration.load(path) if str(path) else None


def _canaries(settings: Settings, given: Canaries | float | None) -> Canaries | None:
    if given is not None:
        return given if isinstance(given, Canaries) else Canaries(share=given)
    return _made(Canaries, settings.canaries, "canaries") if settings.canaries else None


def _made(kind: type[_Table], entries: Mapping[str, Any], name: str) -> _Table:
    _check_entries(kind, entries, name)
    try:
        return kind(**entries)
    except TypeError as error:
        raise ConfigurationError(f"{name}: {error}; correct its entries") from None


def _check_entries(kind: type, entries: object, name: str) -> None:
    hints, known = get_type_hints(kind), [field.name for field in fields(kind) if field.init]
    if not isinstance(entries, Mapping):
        raise ConfigurationError(f"{name}: write a table of entries, not {entries!r}")
    for entry, value in entries.items():
        if entry not in known:
            raise ConfigurationError(f"{name}: there is no entry {entry!r}; {instead_of(entry, known)}")
        hint = hints[entry]
        kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
        wanted = [one for one in kinds if one is not NoneType]
        if all(one in _WORDS for one in wanted) and not any(_is_a(one, value) for one in wanted):
            words = " or ".join(dict.fromkeys(_WORDS[one] for one in wanted))
            raise ConfigurationError(f"{name}: {entry} must be {words}, not {value!r}")


def _is_a(kind: type, value: object) -> bool:
    """As TOML has it: whole numbers are numbers, and switches are not."""
    kinds = (int, float) if kind is float else kind
    return isinstance(value, kinds) and isinstance(value, bool) == (kind is bool)


def _of_kind(kind: type[_Table], given: _Table | None, name: str) -> _Table | None:
    if given is not None and not isinstance(given, kind):
        raise ConfigurationError(
            f"{name}={given!r} is not a {kind.__name__}; write {kind.__name__}(...) of steelyard.online"
        )
    return given
