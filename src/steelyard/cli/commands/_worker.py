"""`steelyard worker`: judging what applications have put into a spool, in a process of its own."""

from __future__ import annotations

import signal
import sqlite3
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.errors import ConfigurationError

if TYPE_CHECKING:
    from steelyard.online import Monitor

_LOOK = 0.2
_BRIEFLY = 2.0
_PATIENCE = 60.0


def worker(
    spool: Annotated[Path, typer.Option(help="The spool file that the applications write to.")],
    judge: Annotated[
        str | None, typer.Option(help="`local`, `openai:MODEL` or `decisions:MODEL`; else as configured.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Leave when the spool is empty.")] = False,
) -> None:
    """Judge the turns in a spool until stopped (SIGTERM or Ctrl-C); several workers may share one spool.

    In the application: `Monitor(spool=SpoolSettings(path=FILE, evaluate=False))`. Metrics, judge and sinks
    are those of `steelyard config`, seen from here.

    A spool that fails (a full disk, say) is tried again until it works. The exit status is 1 where it did not
    work at the end; with --once the worker gives up after a minute.
    """
    from steelyard.judge import LocalJudge
    from steelyard.online import Monitor, SpoolSettings, load_settings

    _try(spool)
    chosen = judge or load_settings().settings.judge
    monitor = Monitor(
        judge=LocalJudge() if chosen == "local" else judge,
        spool=SpoolSettings(path=spool, evaluate=True),
    )
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    monitor.start()
    _wait_until_open(monitor)
    typer.echo(f"judging what comes into {spool}", err=True)
    seen = time.monotonic()
    while not stopped.wait(_LOOK) and not (once and _empty(monitor)):
        if monitor.stats().spool is not None:
            seen = time.monotonic()
        elif once and time.monotonic() - seen > _PATIENCE:
            break
    if not _leave(monitor):
        typer.echo(f"the spool {spool} cannot be used; what is in it waits for the next worker", err=True)
        raise typer.Exit(1)


def _try(spool: Path) -> None:
    """Open the file once: a worker without a spool has nothing to fall back on."""
    from steelyard.online import Spool

    try:
        Spool(spool).close()
    except (sqlite3.Error, OSError) as error:
        raise ConfigurationError(f"the spool {str(spool)!r} cannot be used: {error}") from None


def _wait_until_open(monitor: Monitor) -> None:
    started = time.monotonic()
    while monitor.stats().spool is None and time.monotonic() - started < _BRIEFLY:
        time.sleep(0.02)


def _empty(monitor: Monitor) -> bool:
    counts = monitor.stats().spool
    return counts is not None and counts.pending == counts.undelivered == 0


def _leave(monitor: Monitor) -> bool:
    """Stop; says whether the spool worked until then."""
    started = time.monotonic()
    before = monitor.stats()
    monitor.close(0)
    sinks = ", ".join(f"{name} {counts.written}" for name, counts in before.sinks.items())
    typer.echo(
        f"stopped after {before.usage.requests} requests; written: {sinks or 'nothing'}"
        f" ({time.monotonic() - started:.1f} s to stop)",
        err=True,
    )
    return before.spool is not None
