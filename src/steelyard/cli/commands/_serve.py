"""`steelyard collect` and `serve`: an endpoint that scores the turns it is sent; results in a browser."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import Option

from steelyard._internal.text import LOOPBACK, counted, redacted_url
from steelyard.cli._options import CONFIGURED_JUDGE, RESULTS
from steelyard.cli._say import say
from steelyard.errors import ConfigurationError, MissingDependency
from steelyard.judge import LocalJudge
from steelyard.online import Monitor, SpoolSettings, load_settings
from steelyard.sinks import SQLiteSink

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from steelyard.alarms import Alarm
    from steelyard.collect import Collector

_LOOK = 15.0
"""Seconds in which a connection has to ask something, and between further looks at what it does."""


def required_token(variable: str, host: str, *, others_can: str) -> str | None:
    """The token that has to be given with each request; none is needed where only this machine can ask."""
    token = os.environ.get(variable) or None
    if token is None and host not in LOOPBACK:
        raise ConfigurationError(f"on {host!r} others can {others_can}: set {variable} to a secret")
    return token


def check_uvicorn(extra: str) -> None:
    """See that there is a server before anything is opened."""
    try:
        import uvicorn  # noqa: F401 - only whether it is there
    except ImportError:
        raise MissingDependency("uvicorn", extra=extra) from None


def serve_until_stopped(
    app: ASGIApp,
    *,
    host: str,
    port: int,
    ready: Callable[[str], None],
    lifespan: bool = True,
    done: threading.Event | None = None,
) -> None:
    """Serve until a signal, Ctrl-C or `done`; `ready` is told the address once connections are accepted."""
    import uvicorn

    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=bounded_protocol(),
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="auto" if lifespan else "off",
    )
    # Bound before it is said where: with `--port 0` the system chooses.
    with closing(config.bind_socket()) as listening, suppress(KeyboardInterrupt):
        listening.listen(config.backlog)
        shown = f"[{host}]" if ":" in host else host
        ready(f"http://{shown}:{listening.getsockname()[1]}/")
        server = uvicorn.Server(config)
        if done is not None:
            threading.Thread(target=_stop_after, args=(done, server), daemon=True).start()
        server.run(sockets=[listening])


def obey_once() -> None:
    """Have signals end uvicorn and do nothing else: it raises them again, and there is something to close."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)


def _stop_after(done: threading.Event, server: Any) -> None:
    done.wait()
    server.should_exit = True


def bounded_protocol() -> type[Any]:
    """The HTTP of uvicorn that closes connections on which nothing comes, or a refused body without end.

    Each holds a file descriptor, and where they are used up nobody is answered any more.
    """
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    base: Any = AutoHTTPProtocol

    class BoundedProtocol(base):  # type: ignore[misc]  # which of two classes it is, uvicorn finds out
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._refused: object = None
            self._next_look = self.loop.call_later(_LOOK, self._look)

        def connection_lost(self, exc: Exception | None) -> None:
            self._next_look.cancel()
            super().connection_lost(exc)

        def _look(self) -> None:
            cycle = self.cycle
            before, self._refused = self._refused, None
            # What is still sent after the reply is read for a while, or the sender would not see the reply.
            if cycle is not None and cycle.response_complete and cycle.more_body:
                self._refused = cycle
            if cycle is None or (before is not None and before is self._refused):
                self.transport.close()
            else:
                self._next_look = self.loop.call_later(_LOOK, self._look)

    return BoundedProtocol


_JOURNAL = Path("steelyard.spans")
# Without a spool, turns that wait to be judged would keep their spans in the journal.
_SPOOL = "steelyard.spool"
_SHARE = 0.5
"""Of one core, for the local judge beside the endpoint."""


def collect(
    host: str = Option("127.0.0.1", help="The address to listen on."),
    port: int = Option(4318, min=0, max=65535, help="The port to listen on."),
    spool: str = Option("", metavar="FILE|URL", help="Where turns wait to be judged: a file, or a broker."),
    journal: Path = Option(_JOURNAL, metavar="FILE", help="Where spans wait for the rest of their turn."),
    judge: str = CONFIGURED_JUDGE,
    no_judge: bool = Option(
        False, "--no-judge", help="Only store the turns; `steelyard worker` judges them."
    ),
    quiet: float = Option(
        6.0, min=0.01, metavar="SECONDS", help="Without a new span, after which a trace is complete."
    ),
    ttl: float = Option(60.0, min=0.01, metavar="SECONDS", help="How long missing spans are waited for."),
    max_mb: int = Option(1024, min=16, metavar="MB", help="Size of the spans in the journal."),
) -> None:
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

    token = _senders_token(host)
    check_uvicorn("collect")

    def ready(address: str) -> None:
        say(f"collecting spans at {address}v1/traces (Ctrl-C ends it)", err=True)
        obey_once()

    monitor = _collecting_monitor(judge, spool, no_judge=no_judge)
    with _collecting(monitor, journal, max_mb, quiet=quiet, ttl=ttl) as collector:
        served = app(collector, token=token)
        serve_until_stopped(served, host=host, port=port, ready=ready, lifespan=False)
        _sum_up(collector, monitor)


def _senders_token(host: str) -> str | None:
    return required_token("STEELYARD_COLLECT_TOKEN", host, others_can="send spans")


@contextmanager
def _collecting(
    monitor: Monitor, journal: Path = _JOURNAL, max_mb: int = 1024, *, quiet: float = 6.0, ttl: float = 60.0
) -> Iterator[Collector]:
    """A collector at work, closed in the end with the Monitor that judges what it finds."""
    from steelyard.collect import Collector, SpanJournal
    from steelyard_opentelemetry.received import ReceivedSpans

    reader = ReceivedSpans(quiet=quiet, ttl=ttl)
    # At the start, and not at the first request in protobuf.
    reader.check()
    stored = SpanJournal(journal, max_bytes=max_mb * 1024**2)
    collector = Collector(journal=stored, reader=reader, monitor=monitor)
    collector.start()
    try:
        yield collector
    finally:
        left = collector.close()
        # Without waiting: what is not judged is in the spool, for the next start.
        monitor.close(0)
        if left:
            waits = f"{counted(left, 'piece')} of unfinished traces wait in {journal} for the next start"
            say(waits, err=True)


def _collecting_monitor(judge: str = "", spool: str = "", *, no_judge: bool = False) -> Monitor:
    settings = load_settings().settings
    place = spool or str(settings.spool.get("path") or _SPOOL)
    rest: dict[str, Any] = {
        name: value for name, value in settings.spool.items() if name not in ("path", "evaluate")
    }
    if "://" in place:
        if not no_judge:
            raise ConfigurationError(
                f"with the broker {redacted_url(place)} `steelyard worker` judges turns: add --no-judge"
            )
        # A file's settings are none of a broker's.
        rest = rest if "://" in str(settings.spool.get("path") or "") else {}
    is_local = (judge or settings.judge) == "local"
    return Monitor(
        judge=LocalJudge(max_share=_SHARE) if is_local else judge or None,
        spool=SpoolSettings(path=place, evaluate=not no_judge, **rest),
    )


def _sum_up(collector: Collector, monitor: Monitor) -> None:
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


def serve(
    db: str = RESULTS,
    host: str = Option("127.0.0.1", help="The address to listen on."),
    port: int = Option(8321, min=0, max=65535, help="The port to listen on."),
    read_only: bool = Option(False, "--read-only", help="Accept no labels."),
    spool: str = Option("", metavar="FILE", help="Show the state of this spool file too."),
    collect: bool = Option(False, "--collect", help="Receive spans too, as `steelyard collect` does."),
    trace_url: str = Option(
        "",
        "--trace-url",
        metavar="URL",
        help="Link each turn to its trace: an address with {trace_id}, of Phoenix or Langfuse, say.",
    ),
    alarms: bool = Option(False, "--alarms", help="Report falls, by the alarms of steelyard.toml."),
) -> None:
    """Show the results in a browser: figures, turns, claims with their evidence, labels.

    New turns appear automatically. On an address other than 127.0.0.1 a token is required: set
    `STEELYARD_VIEW_TOKEN` to at least 16 characters; if it is set, 127.0.0.1 asks for it, too.

    **Examples**

    - `steelyard serve`
    - `steelyard serve --collect`, with `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:8321/v1/traces`
    - `steelyard serve --db prod.db --port 9000 --read-only`
    """
    token = required_token("STEELYARD_VIEW_TOKEN", host, others_can="reach the results")
    check_uvicorn("serve")
    with (
        _endpoint(host) if collect else nullcontext(None) as endpoint,
        _following(db) if alarms else nullcontext(),
    ):
        from steelyard.view import app

        pages = app(
            db,
            token=token,
            read_only=read_only,
            spool=spool or None,
            trace_url=trace_url,
            settings=load_settings().settings,
        )
        results = redacted_url(db) if "://" in db else db
        serve_until_stopped(
            pages if endpoint is None else _beside(pages, endpoint),
            host=host,
            port=port,
            ready=lambda address: say(f"results of {results} at {address} (Ctrl-C ends it)", err=True),
        )


@contextmanager
def _endpoint(host: str) -> Iterator[ASGIApp]:
    from steelyard.collect import app

    token = _senders_token(host)
    monitor = _collecting_monitor()
    with _collecting(monitor) as collector:
        # The pages need the results file, which the first result would make.
        for sink in monitor.options.sinks:
            if isinstance(sink, SQLiteSink):
                sink.open()
        # Before uvicorn sets its handlers, which raise the signal again when they are through.
        obey_once()
        yield app(collector, token=token)


@contextmanager
def _following(db: str) -> Iterator[None]:
    """The alarms of `steelyard.toml` over what is written to the results, while this server runs."""
    from steelyard.alarms import AlarmWatcher, Follower, alarms_from

    settings = load_settings().settings
    if not settings.alarm:
        raise ConfigurationError(
            "--alarms: there is no [[alarm]] in steelyard.toml; `steelyard alarms` shows one"
        )
    watcher = AlarmWatcher(alarms_from(settings.alarm), file=settings.alarm_file)
    watcher.people = partial(people_of_alarm, db)
    follower = Follower(watcher, db)
    follower.start()
    try:
        yield
    finally:
        follower.close()


def people_of_alarm(db: str, alarm: Alarm) -> str:
    """What people's labels say of an alarm's metric, over the latest scores."""
    from steelyard.report import build_figures, describe_agreement, human_agreement
    from steelyard.results import open_labels, open_results
    from steelyard.results.queries import Scope

    scope = Scope(metric=alarm.metric, tag=alarm.where.get("tag"))
    with closing(open_results(db)) as results:
        metrics = build_figures(results, scope, brief=True).metrics
        found = human_agreement(results, open_labels(db), scope, metrics)
    return describe_agreement(found[0]) if found else ""


def _beside(pages: ASGIApp, endpoint: ASGIApp) -> ASGIApp:
    """Both under one address: what is sent to `/v1/traces` or `/v1/logs` goes to the endpoint."""

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        chosen = endpoint if scope.get("path") in ("/v1/traces", "/v1/logs") else pages
        await chosen(scope, receive, send)

    return served
