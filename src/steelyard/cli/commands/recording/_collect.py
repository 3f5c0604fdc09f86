"""`steelyard collect`: an OTLP endpoint that scores the RAG turns in the spans it is sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard._internal.redact import redacted_url
from steelyard.cli._options import ConfiguredJudge, takes
from steelyard.cli._say import counted, say
from steelyard.cli._server import check_uvicorn, obey_once, required_token, serve_until_stopped
from steelyard.errors import ConfigurationError

if TYPE_CHECKING:
    from steelyard.collect import Collector
    from steelyard.online import Monitor


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectOptions:
    """One call of `steelyard collect`, as it was typed."""

    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1"
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on.")] = 4318
    spool: Annotated[
        str, typer.Option(metavar="FILE|URL", help="Where turns wait to be judged: a file, or a broker.")
    ] = ""
    journal: Annotated[
        Path, typer.Option(metavar="FILE", help="Where spans wait for the rest of their turn.")
    ] = Path("steelyard.spans")
    judge: ConfiguredJudge = ""
    no_judge: Annotated[
        bool, typer.Option("--no-judge", help="Only store the turns; `steelyard worker` judges them.")
    ] = False
    quiet: Annotated[
        float,
        typer.Option(
            min=0.01, metavar="SECONDS", help="Without a new span, after which a trace is complete."
        ),
    ] = 6.0
    ttl: Annotated[
        float, typer.Option(min=0.01, metavar="SECONDS", help="How long missing spans are waited for.")
    ] = 60.0
    max_mb: Annotated[int, typer.Option(min=1, metavar="MB", help="Size of the spans in the journal.")] = 1024


@takes(CollectOptions)
def collect(options: CollectOptions) -> int:
    """Receive OpenTelemetry spans from programs in any language, and score the RAG turns in them.

    Point an exporter (OTLP over HTTP, protobuf or JSON) or a Collector to it. A request is answered when its
    spans are stored; a crash loses none of them. Results go where a Monitor's go: into `steelyard.db`, unless
    `steelyard config` says otherwise.

    On an address other than 127.0.0.1 a token is required: set `STEELYARD_COLLECT_TOKEN` to at least 16
    characters; senders give it as `Authorization: Bearer ...`.

    **Examples**

    - `steelyard collect`
    - `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:4318/v1/traces node app.js`
    - `steelyard collect --no-judge --spool turns.spool`, and beside it `steelyard worker --spool turns.spool`
    """
    from steelyard.collect import app

    token = token_for(options.host)
    check_uvicorn("collect")

    def ready(address: str) -> None:
        say(f"collecting spans at {address}v1/traces (Ctrl-C ends it)", err=True)
        obey_once()

    with collecting(options) as (collector, monitor):
        served = app(collector, token=token)
        serve_until_stopped(served, host=options.host, port=options.port, ready=ready, lifespan=False)
        _say(collector, monitor)
    return 0


TOKEN = "STEELYARD_COLLECT_TOKEN"
# Without a spool, turns that wait to be judged would keep their spans in the journal.
_SPOOL = "steelyard.spool"
_SHARE = 0.5
"""Of one core, for the local judge beside the endpoint."""


@contextmanager
def collecting(options: CollectOptions) -> Iterator[tuple[Collector, Monitor]]:
    """A collector at work, and the Monitor that judges what it finds; both are closed in the end."""
    from steelyard.collect import Collector, SpanJournal
    from steelyard_opentelemetry.received import ReceivedSpans

    monitor = _monitor(options)
    reader = ReceivedSpans(quiet=options.quiet, ttl=options.ttl)
    # At the start, and not at the first request in protobuf.
    reader.check()
    collector = Collector(
        journal=SpanJournal(options.journal, max_bytes=options.max_mb * 1024**2),
        reader=reader,
        monitor=monitor,
    )
    collector.start()
    try:
        yield collector, monitor
    finally:
        left = collector.close()
        # Without waiting: what is not judged is in the spool, for the next start.
        monitor.close(0)
        if left:
            say(
                f"{counted(left, 'piece')} of unfinished traces wait in {options.journal} for the next start",
                err=True,
            )


def token_for(host: str) -> str | None:
    """The token that senders must give."""
    return required_token(TOKEN, host, others_can="send spans")


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
    say(
        f"{taken} in {counted(counts.requests, 'request')}, "
        f"{counted(counts.assembled.get('turns', 0), 'turn')}; written: {sinks or 'nothing'}",
        err=True,
    )
