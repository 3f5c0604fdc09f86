"""What `steelyard collect` does, and what `steelyard serve --collect` shares with it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from steelyard._internal.redact import redacted_url
from steelyard.cli._words import counted
from steelyard.cli.commands.recording._collect import CollectOptions
from steelyard.cli.serving._server import check_uvicorn, required_token, serve_until_stopped
from steelyard.errors import ConfigurationError

if TYPE_CHECKING:
    from steelyard.collect import Collector
    from steelyard.online import Monitor

TOKEN = "STEELYARD_COLLECT_TOKEN"
# Without a spool, turns that wait to be judged would keep their spans in the journal.
_SPOOL = "steelyard.spool"
_SHARE = 0.5
"""Of one core, for the local judge beside the endpoint."""


def run(options: CollectOptions) -> int:
    """Serve until stopped; returns the exit status.

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
    return 0


@contextmanager
def collecting(options: CollectOptions) -> Iterator[tuple[Collector, Monitor]]:
    """A collector at work, and the Monitor that judges what it finds; both are closed in the end."""
    from steelyard.collect import Collector, Journal
    from steelyard_opentelemetry.received import ReceivedSpans

    monitor = _monitor(options)
    reader = ReceivedSpans(quiet=options.quiet, ttl=options.ttl)
    # At the start, and not at the first request in protobuf.
    reader.check()
    collector = Collector(
        journal=Journal(options.journal, max_bytes=options.max_mb * 1024**2), reader=reader, monitor=monitor
    )
    collector.start()
    try:
        yield collector, monitor
    finally:
        left = collector.close()
        # Without waiting: what is not judged is in the spool, for the next start.
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
        if not options.no_judge:
            raise ConfigurationError(
                f"with the broker {redacted_url(place)} `steelyard worker` judges turns: add --no-judge"
            )
        # A file's settings are none of a broker's.
        rest = rest if "://" in str(settings.spool.get("path") or "") else {}
    spool = SpoolSettings(path=place, evaluate=not options.no_judge, **rest)
    return Monitor(
        judge=LocalJudge(max_share=_SHARE) if chosen == "local" else options.judge or None, spool=spool
    )


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
