"""`steelyard worker`: judging what applications have put into a spool, in a process of its own."""

from __future__ import annotations

import asyncio
import gc
import signal
import sqlite3
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli._options import ConfiguredJudge, Replay, Retrieve, experiments
from steelyard.cli._say import say
from steelyard.errors import ConfigurationError

if TYPE_CHECKING:
    from steelyard.online import Monitor, SpoolSettings

# How late the worker may notice that nothing is left.
_LOOK = 0.2
_BRIEFLY = 2.0
# A broker that restarts is back by then; with --once somebody waits for the exit.
_PATIENCE = 60.0
_NO_QUEUE = 1
_LOST = 3


def worker(
    spool: Annotated[Path | None, typer.Option(help="The spool file that the applications write to.")] = None,
    queue: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="The broker that they publish to: `nats://HOST:4222`, `amqp://HOST`."
        ),
    ] = None,
    judge: ConfiguredJudge = "",
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="Turns judged at the same time; else as configured.")
    ] = None,
    replay: Replay = "",
    retrieve: Retrieve = "",
    once: Annotated[bool, typer.Option("--once", help="Exit when nothing is left to do.")] = False,
) -> None:
    """Judge turns from a spool until stopped (SIGTERM or Ctrl-C); several workers may share one.

    A spool is a file of this machine (--spool) or a queue on a broker (--queue), for workers on any number of
    machines; without either, it is the one of `STEELYARD_SPOOL` or `steelyard.toml`. In the application:
    `Monitor(spool=SpoolSettings(path=FILE_OR_URL, evaluate=False))`. Metrics, judge and sinks are those of
    `steelyard config`, seen from here.

    With `--replay`, bad turns are answered again under other conditions, six times each and 200 times a day
    at most, to see what they suffer from; `steelyard explain` shows what was tried.

    A queue that fails (a full disk, a broker that is away) is tried again until it works, and so is a sink:
    its results wait in the queue. At its end the worker reports what was written, waits and was lost for each
    sink. The exit status is 1 if the queue did not work at the end, and 3 if results were lost; with --once
    the worker gives up after a minute in which nothing moved.

    **Examples**

    - `steelyard worker --spool steelyard-spool.db`
    - `steelyard worker --queue nats://127.0.0.1:4222`
    - `steelyard worker --replay app:replay`
    """
    from steelyard.judge import LocalJudge
    from steelyard.online import Monitor, load_settings

    settings = queue_settings(spool, queue)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    _try(settings)
    chosen = judge or load_settings().settings.judge
    monitor = Monitor(
        judge=LocalJudge() if chosen == "local" else judge or None,
        spool=settings,
        concurrency=concurrency,
        experiments=experiments(replay, retrieve) if replay else None,
    )
    monitor.start()
    _wait_until_open(monitor)
    # Modules and options stay: looking through them again and again costs as much as a turn in ten does.
    gc.collect()
    gc.freeze()
    shown = spool or settings.shown
    say(f"judging what comes into {shown}", err=True)
    _work(monitor, stopped, once)
    if status := _leave(monitor):
        if status == _NO_QUEUE:
            say(f"the spool {shown} cannot be used; what is in it waits for the next worker", err=True)
        raise typer.Exit(status)


def _work(monitor: Monitor, stopped: threading.Event, once: bool) -> None:
    """Wait until it is stopped; with `once` until nothing is left, or nothing has moved for a minute."""
    if not once:
        stopped.wait()
        return
    seen = time.monotonic()
    before: tuple[int, ...] | None = None
    while not stopped.wait(_LOOK):
        stats = monitor.stats()
        counts = stats.spool
        if counts is not None and counts.pending == counts.undelivered == 0:
            return
        now = None if counts is None else (counts.pending, counts.undelivered, stats.usage.requests)
        # What waits for a sink that is away, or in a queue that cannot be read, does not move.
        if counts is not None and (now != before or counts.pending):
            seen, before = time.monotonic(), now
        elif time.monotonic() - seen > _PATIENCE:
            return


def queue_settings(spool: Path | None, queue: str | None) -> SpoolSettings:
    """What to work on."""
    from steelyard.online import spool_settings

    if spool is not None and queue is not None:
        raise ConfigurationError("give --spool or --queue, not both")
    if queue is not None and "://" not in queue:
        raise ConfigurationError(f"--queue needs a broker's URL such as nats://127.0.0.1:4222, not {queue!r}")
    settings = spool_settings(queue or spool)
    if settings is None:
        raise ConfigurationError("there is nothing to work on; give --spool FILE or --queue URL")
    return settings


def _try(settings: SpoolSettings) -> None:
    """Open the queue once: a worker has nothing to fall back on. A broker that is away is waited for."""
    from steelyard.online import QueueFailed, Spool, try_queue

    if settings.address is None:
        try:
            Spool(settings.path).close()
        except (sqlite3.Error, OSError) as error:
            raise ConfigurationError(
                f"the spool {settings.shown!r} cannot be used: {error}; "
                "check its address, and that it can be written to"
            ) from None
        return
    try:
        asyncio.run(try_queue(settings))
    except QueueFailed as error:
        say(f"waiting for {settings.shown}: {error}", err=True)


def _wait_until_open(monitor: Monitor) -> None:
    started = time.monotonic()
    while monitor.stats().spool is None and time.monotonic() - started < _BRIEFLY:
        time.sleep(0.02)


def _leave(monitor: Monitor) -> int:
    """Stop, and tell what has become of the results; returns the exit status."""
    started = time.monotonic()
    monitor.close(0)
    # Read after closing: sinks give back then what they were about to write.
    stats = monitor.stats()
    seconds = time.monotonic() - started
    say(f"stopped after {stats.usage.requests} requests ({seconds:.1f} s to stop)", err=True)
    for name, counts in stats.sinks.items():
        refused = f", {sum(counts.refused.values())} refused" if counts.refused else ""
        causes = f" ({', '.join(sorted(counts.lost_by))})" if counts.lost_by else ""
        waiting = "?" if stats.spool is None else stats.spool.waiting.get(name, 0)
        said = f"{counts.written} written, {waiting} waiting, {counts.lost} lost{causes}{refused}"
        say(f"{name}: {said}", err=True)
    if stats.spool is None:
        return _NO_QUEUE
    if stats.spool.dead:
        causes = ", ".join(f"{cause} {count}" for cause, count in sorted(stats.spool.dead.items()))
        say(f"could not be evaluated: {causes}; `steelyard queue list` tells which", err=True)
    return _LOST if any(counts.lost for counts in stats.sinks.values()) else 0
