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
    typer.echo(f"judging what comes into {spool}", err=True)
    while not stopped.wait(_LOOK) and not (once and _empty(monitor)):
        pass
    _leave(monitor)


def _try(spool: Path) -> None:
    """Open the file once: a worker without a spool has nothing to fall back on."""
    from steelyard.online import Spool

    try:
        Spool(spool).close()
    except (sqlite3.Error, OSError) as error:
        raise ConfigurationError(f"the spool {str(spool)!r} cannot be used: {error}") from None


def _empty(monitor: Monitor) -> bool:
    counts = monitor.stats().spool
    return counts is not None and counts.pending == counts.undelivered == 0


def _leave(monitor: Monitor) -> None:
    started = time.monotonic()
    before = monitor.stats()
    monitor.close(0)
    sinks = ", ".join(f"{name} {counts.written}" for name, counts in before.sinks.items())
    typer.echo(
        f"stopped after {before.usage.requests} requests; written: {sinks or 'nothing'}"
        f" ({time.monotonic() - started:.1f} s to stop)",
        err=True,
    )
