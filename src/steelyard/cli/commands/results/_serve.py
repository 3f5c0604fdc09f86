"""`steelyard serve`: the results in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard._internal.redact import redacted_url
from steelyard.cli._options import Results
from steelyard.cli._say import say
from steelyard.errors import ConfigurationError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from steelyard.alarms import Alarm

_TOKEN = "STEELYARD_VIEW_TOKEN"


def serve(
    db: Results = "steelyard.db",
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on.")] = 8321,
    read_only: Annotated[bool, typer.Option("--read-only", help="Accept no labels.")] = False,
    spool: Annotated[str, typer.Option(metavar="FILE", help="Show the state of this spool file too.")] = "",
    collect: Annotated[
        bool, typer.Option("--collect", help="Receive spans too, as `steelyard collect` does.")
    ] = False,
    trace_url: Annotated[
        str,
        typer.Option(
            "--trace-url",
            metavar="URL",
            help="Link each turn to its trace: an address with {trace_id}, of Phoenix or Langfuse, say.",
        ),
    ] = "",
    alarms: Annotated[
        bool, typer.Option("--alarms", help="Report falls, by the alarms of steelyard.toml.")
    ] = False,
) -> None:
    """Show the results in a browser: figures, turns, claims with their evidence, labels.

    New turns appear automatically. On an address other than 127.0.0.1 a token is required: set
    `STEELYARD_VIEW_TOKEN` to at least 16 characters; if it is set, 127.0.0.1 asks for it, too.

    **Examples**

    - `steelyard serve`
    - `steelyard serve --collect`, with `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:8321/v1/traces`
    - `steelyard serve --db prod.db --port 9000 --read-only`
    """
    from steelyard.cli._server import check_uvicorn, required_token, serve_until_stopped

    token = required_token(_TOKEN, host, others_can="reach the results")
    check_uvicorn("serve")
    with (
        _collecting(host) if collect else nullcontext(None) as endpoint,
        _following(db) if alarms else nullcontext(),
    ):
        from steelyard.online import load_settings
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
def _collecting(host: str) -> Iterator[ASGIApp]:
    """The endpoint of `steelyard collect`, with its defaults, while this server runs."""
    from steelyard.cli._server import obey_once
    from steelyard.cli.commands.recording._collect import CollectOptions, collecting, token_for
    from steelyard.collect import app
    from steelyard.sinks import SQLiteSink

    token = token_for(host)
    with collecting(CollectOptions()) as (collector, monitor):
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
    from steelyard.online import load_settings
    from steelyard.report import open_results

    settings = load_settings().settings
    if not settings.alarm:
        raise ConfigurationError(
            "--alarms: there is no [[alarm]] in steelyard.toml; `steelyard alarms` shows one"
        )
    results = open_results(db)
    watcher = AlarmWatcher(alarms_from(settings.alarm), file=settings.alarm_file)
    watcher.people = partial(people_of_alarm, db)
    follower = Follower(watcher, results)
    follower.start()
    try:
        yield
    finally:
        follower.close()


def people_of_alarm(db: str, alarm: Alarm) -> str:
    """What people's labels say of an alarm's metric, over the latest scores."""
    from steelyard import report
    from steelyard.report import build_figures, describe_agreement, human_agreement, open_labels, open_results

    scope = report.Scope(metric=alarm.metric, tag=alarm.where.get("tag"))
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
