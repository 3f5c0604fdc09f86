"""From settings to parts: judge, suite, sinks, selection and limits, where code did not bring its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

from steelyard.alarms import AlarmSink, alarms_from
from steelyard.calibration import Calibration
from steelyard.errors import ConfigurationError
from steelyard.judge import LocalJudge, StaticEmbedder, judge_from
from steelyard.judge.middleware import CircuitBreaker, Wrapper
from steelyard.metrics import Metric, default_metrics, parse_metrics
from steelyard.online._canary_options import Canaries
from steelyard.online.config._options import MonitorOptions
from steelyard.online.config._plain import PlainOptions
from steelyard.online.config._settings import Settings, load
from steelyard.online.queue._spool_file import SpoolSettings
from steelyard.online.selection._budget import Budget
from steelyard.online.selection._price import Price
from steelyard.online.selection._rules import Rule
from steelyard.online.selection._sampling import checked_rate
from steelyard.online.selection._selection import Selection
from steelyard.online.selection._suspicion import Suspicion
from steelyard.questions import Judge
from steelyard.sinks import Sink, sink_from

_SHARE = 0.2
"""Of one core, for the local judge inside an application: it then lets go of the interpreter often enough."""
_REQUESTS = 16
"""In flight at least: a turn may ask several at a time."""
_Table = TypeVar("_Table")
PLAIN = frozenset(field.name for field in fields(PlainOptions))
"""What can be written down as it is; `tests/online/test_settings.py` holds the signature against it."""


def options_from(given: Mapping[str, Any]) -> MonitorOptions:
    """A Monitor's options: what code has given, and where that is None what settings and defaults say."""
    settings = load().settings
    plain = {name: getattr(settings, name) if given[name] is None else given[name] for name in PLAIN}
    concurrency = plain["concurrency"]
    judge, metrics = _judge_and_metrics(settings, given["judge"], given["metrics"], concurrency)
    screen = settings.screen if given["screen"] is None else given["screen"]
    embedder = StaticEmbedder() if given["embedder"] is None and metrics else given["embedder"]
    sinks = settings.sinks if given["sinks"] is None else given["sinks"]
    return MonitorOptions(
        metrics=tuple(metrics),
        judge=judge,
        screen=_guarded(_judge(screen, concurrency)) if screen else None,
        embedder=embedder,
        sinks=_with_alarms(settings, _sinks(sinks)),
        selection=_selection(settings, given["sample_rate"], given["selection"]),
        mask=given["mask"],
        budget=_budget(settings) if given["budget"] is None else given["budget"],
        spool=choose_spool(settings, given["spool"]),
        calibration=_calibration(settings, given["calibration"]),
        canaries=_canaries(settings, given["canaries"]),
        experiments=given["experiments"],
        **plain,
    )


def _judge_and_metrics(
    settings: Settings,
    judge: Judge | str | None,
    metrics: Sequence[Metric | str] | None,
    concurrency: int,
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
    """The budget that settings describe."""
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
    return _made(SpoolSettings, entries, "spool") if "path" in entries else None


def spool_settings(given: str | Path | None = None) -> SpoolSettings | None:
    """The spool for a worker, which judges what is in it; see `choose_spool`.

    Raises:
        ConfigurationError: If an entry means nothing.
    """
    chosen = choose_spool(load().settings, given)
    return replace(chosen, evaluate=True, fallback=None) if chosen is not None else None


def _calibration(settings: Settings, given: str | Path | Calibration | None) -> Calibration | None:
    """The calibration that code or settings name."""
    if isinstance(given, Calibration):
        return given
    if given is not None and not isinstance(given, str | Path):
        raise ConfigurationError(f"calibration must be a file or a Calibration, not {given!r}")
    path = settings.calibration if given is None else given
    return Calibration.load(path) if str(path) else None


def _canaries(settings: Settings, given: Canaries | float | None) -> Canaries | None:
    """The canaries that code brought, or those that settings describe."""
    if given is not None:
        return given if isinstance(given, Canaries) else Canaries(share=given)
    return _made(Canaries, settings.canaries, "canaries") if settings.canaries else None


def _made(kind: type[_Table], entries: Mapping[str, Any], name: str) -> _Table:
    try:
        return kind(**entries)
    except TypeError as error:
        raise ConfigurationError(f"{name}: {error}; correct its entries") from None
