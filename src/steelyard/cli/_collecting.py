"""What `steelyard collect` does, and what `steelyard serve --collect` shares with it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from steelyard._internal.redact import redacted_url
from steelyard.cli._serving import check_uvicorn, required_token, serve_until_stopped
from steelyard.cli._words import counted
from steelyard.errors import ConfigurationError

if TYPE_CHECKING:
    from steelyard.collect import Collector
    from steelyard.online import Monitor

TOKEN = "STEELYARD_COLLECT_TOKEN"
_SPOOL = "steelyard.spool"
_SHARE = 0.5
"""Of one core, for the local judge beside the endpoint."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectOptions:
    """One call of `steelyard collect`, as it was typed."""

    host: str = "127.0.0.1"
    port: int = 4318
    spool: str = ""
    journal: Path = Path("steelyard.spans")
    judge: str | None = None
    evaluate: bool = True
    quiet: float = 6.0
    ttl: float = 60.0
    max_bytes: int = 1024**3


def run(options: CollectOptions) -> None:
    """Serve until stopped.

    Raises:
        ConfigurationError: If an option cannot mean what was given.
    """
    from steelyard.collect import app

    token = token_for(options.host)
    check_uvicorn("collect")

    def ready(address: str) -> None:
        typer.echo(f"collecting spans at {address}v1/traces (Ctrl-C ends it)", err=True)
        obey_once()

    with collecting(options) as (collector, monitor):
        served = app(collector, token=token)
        serve_until_stopped(served, host=options.host, port=options.port, ready=ready, lifespan=False)
        _say(collector, monitor)


@contextmanager
def collecting(options: CollectOptions) -> Iterator[tuple[Collector, Monitor]]:
    """A collector at work, and the Monitor that judges what it finds; both are closed in the end."""
    from steelyard.collect import Collector, Journal
    from steelyard_opentelemetry.received import ReceivedSpans

    monitor = _monitor(options)
    reader = ReceivedSpans(quiet=options.quiet, ttl=options.ttl)
    reader.check()
    collector = Collector(
        journal=Journal(options.journal, max_bytes=options.max_bytes), reader=reader, monitor=monitor
    )
    collector.start()
    try:
        yield collector, monitor
    finally:
        left = collector.close()
        monitor.close(0)
        if left:
            typer.echo(
                f"{counted(left, 'piece')} of unfinished traces wait in {options.journal} for the next start",
                err=True,
            )


def token_for(host: str) -> str | None:
    """The token that senders must give.

    Raises:
        ConfigurationError: If others can reach the address, and there is none.
    """
    return required_token(TOKEN, host, others_can="send spans")


def obey_once() -> None:
    """Have signals end uvicorn and do nothing else: it raises them again, and there is something to close."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _ignore)


def _ignore(*_: object) -> None:
    """A signal that has been obeyed."""


def _monitor(options: CollectOptions) -> Monitor:
    from steelyard.judge import LocalJudge
    from steelyard.online import Monitor, SpoolSettings, load_settings

    settings = load_settings().settings
    chosen = options.judge or settings.judge
    place = options.spool or str(settings.spool.get("path") or _SPOOL)
    rest = {name: value for name, value in settings.spool.items() if name not in ("path", "evaluate")}
    if "://" in place:
        if options.evaluate:
            raise ConfigurationError(
                f"with the broker {redacted_url(place)} `steelyard worker` judges turns: add --no-judge"
            )
        # A file's settings are none of a broker's.
        rest = rest if "://" in str(settings.spool.get("path") or "") else {}
    spool = SpoolSettings(path=place, evaluate=options.evaluate, **rest)
    return Monitor(judge=LocalJudge(max_share=_SHARE) if chosen == "local" else options.judge, spool=spool)


def _say(collector: Collector, monitor: Monitor) -> None:
    counts, stats = collector.counts, monitor.stats()
    sinks = ", ".join(f"{name} {sink.written}" for name, sink in stats.sinks.items())
    taken = counted(counts.spans, "span")
    if counts.log_records:
        taken += f" and {counted(counts.log_records, 'log record')}"
    typer.echo(
        f"{taken} in {counted(counts.requests, 'request')}, "
        f"{counted(counts.assembled.get('turns', 0), 'turn')}; written: {sinks or 'nothing'}",
        err=True,
    )
