"""`steelyard worker` and `queue`: judging what applications have put into a spool, and what waits there."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer
from typer import Argument, Option

from steelyard._internal.text import printable
from steelyard.cli._options import CONFIGURED_JUDGE, REPLAY, RETRIEVE, experiments
from steelyard.cli._say import say
from steelyard.errors import ConfigurationError

if TYPE_CHECKING:
    from steelyard.online import DeadLetter, Fate, Monitor, SpoolSettings, StoredQueue

# How late the worker may notice that nothing is left.
_LOOK = 0.2
_BRIEFLY = 2.0
# A broker that restarts is back by then; with --once somebody waits for the exit.
_PATIENCE = 60.0
_NO_QUEUE = 1
_LOST = 3


def worker(
    spool: Path | None = Option(None, help="The spool file that the applications write to."),
    queue: str | None = Option(
        None, metavar="URL", help="The broker that they publish to: `nats://HOST:4222`, `amqp://HOST`."
    ),
    judge: str = CONFIGURED_JUDGE,
    concurrency: int | None = Option(None, min=1, help="Turns judged at the same time; else as configured."),
    replay: str = REPLAY,
    retrieve: str = RETRIEVE,
    once: bool = Option(False, "--once", help="Exit when nothing is left to do."),
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

    settings = _settings(spool, queue)
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
    started = time.monotonic()
    while monitor.stats().spool is None and time.monotonic() - started < _BRIEFLY:
        time.sleep(0.02)
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


def _settings(spool: Path | None, queue: str | None) -> SpoolSettings:
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


Action = Literal["show", "list", "replay", "drop", "move"]
_FATES: Mapping[Action, Fate] = {"list": "keep", "replay": "replay", "drop": "drop"}
_LETTERS = 1000
"""Dead letters to look at, the oldest first."""


def queue(
    action: Action = Argument(
        "show", help="`show` counts; `list`, `replay` or `drop` dead letters; `move` results."
    ),
    spool: Path | None = Option(None, help="The spool file."),
    queue: str | None = Option(None, metavar="URL", help="The broker: `nats://HOST:4222`, `amqp://HOST`."),
    cause: str = Option("", help="Only dead letters with this cause."),
    sink: str = Option("", help="With `drop` and `move`: the results that wait for it."),
    to: str = Option("", help="With `move`: the sink that gets them."),
) -> None:
    """Show what waits in a queue, and list, replay or drop its dead letters, a thousand at a time.

    Without --spool and --queue it is the one of `STEELYARD_SPOOL` or `steelyard.toml`. A dead letter is a
    turn that could not be evaluated; `replay` has it judged again, `drop` deletes its text. A file keeps the
    texts of dead letters within a tenth of its bound.

    Results wait for a sink by its name. If the sink has another one now, or is gone, `move --sink OLD --to
    NEW` hands them on and `drop --sink OLD` deletes them.

    **Examples**

    - `steelyard queue --spool steelyard-spool.db`
    - `steelyard queue replay --queue nats://127.0.0.1:4222`
    """
    if (action == "move") != bool(to) or (bool(sink) != bool(to) and action != "drop"):
        raise ConfigurationError("write `move --sink OLD --to NEW`, or `drop --sink OLD`")
    settings = _settings(spool, queue)
    if settings.address is None and not Path(settings.path).exists():
        raise ConfigurationError(f"there is no spool {settings.shown!r}; name it with --spool or --queue")
    asyncio.run(_run(action, settings, cause, sink, to))


async def _run(action: Action, settings: SpoolSettings, cause: str, sink: str, to: str) -> None:
    async with _opened(settings) as queue:
        if sink:
            moved = await queue.move(sink, to)
            return say(f"{'moved' if to else 'dropped'}: {moved} that waited for {printable(sink)}")
        if action == "show":
            return _show(queue)
        chosen: list[DeadLetter] = []

        def decide(letter: DeadLetter) -> Fate:
            if cause not in ("", letter.cause):
                return "keep"
            chosen.append(letter)
            return _FATES[action]

        await queue.dead_letters(decide, _LETTERS)
    if action == "list":
        for letter in chosen:
            record = printable(letter.record_id) or "unreadable"
            say(f"{printable(letter.cause)}\t{letter.attempts}\t{record}")
    else:
        done = "replayed" if action == "replay" else "dropped"
        causes = Counter(letter.cause for letter in chosen)
        said = ", ".join(f"{name} {count}" for name, count in sorted(causes.items()))
        say(printable(f"{done}: {len(chosen)}{f' ({said})' if said else ''}"))


@contextlib.asynccontextmanager
async def _opened(settings: SpoolSettings) -> AsyncIterator[StoredQueue]:
    from steelyard.online import QueueFailed, open_queue

    queue = open_queue(settings)
    try:
        await queue.open()
        await queue.watch(_sinks())
        yield queue
    except QueueFailed as error:
        raise ConfigurationError(
            f"the queue {settings.shown} cannot be used: {error}; "
            "check its address, and that it can be written to"
        ) from None
    finally:
        await queue.close()


def _sinks() -> list[str]:
    """Names of the sinks of `steelyard config`, as far as they can be made here."""
    from steelyard.online import load_settings
    from steelyard.sinks import sink_from

    names: list[str] = []
    for named in load_settings().settings.sinks:
        with contextlib.suppress(ConfigurationError):
            names += [sink.name for sink in sink_from(named)]
    return names


def _show(queue: StoredQueue) -> None:
    counts = queue.counts()
    if counts is None:
        raise ConfigurationError("the queue tells no counts; see that the broker allows them, and try again")
    say(f"turns to judge\t{counts.pending}\t{counts.bytes} bytes")
    say(f"results that wait for sinks\t{counts.undelivered}")
    for sink, count in sorted(counts.waiting.items()):
        say(f"  {printable(sink)}\t{count}")
    say(f"judged\t{counts.evaluated}")
    say(f"dead\t{sum(counts.dead.values())}")
    for cause, count in sorted(counts.dead.items()):
        say(f"  {printable(cause)}\t{count}")
