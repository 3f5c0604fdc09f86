"""`steelyard queue`: what waits in a spool or on a broker, and what to do about dead letters."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from steelyard._internal.text import printable
from steelyard.cli._say import say
from steelyard.cli.commands.recording._worker import queue_settings
from steelyard.errors import ConfigurationError

if TYPE_CHECKING:
    from steelyard.online import DeadLetter, Fate, SpoolSettings, StoredQueue


Action = Literal["show", "list", "replay", "drop", "move"]
_FATES: dict[Action, Fate] = {"list": "keep", "replay": "replay", "drop": "drop"}


def queue(
    action: Annotated[
        Action, typer.Argument(help="`show` counts; `list`, `replay` or `drop` dead letters; `move` results.")
    ] = "show",
    spool: Annotated[Path | None, typer.Option(help="The spool file.")] = None,
    queue: Annotated[
        str | None, typer.Option(metavar="URL", help="The broker: `nats://HOST:4222`, `amqp://HOST`.")
    ] = None,
    cause: Annotated[str, typer.Option(help="Only dead letters with this cause.")] = "",
    sink: Annotated[str, typer.Option(help="With `drop` and `move`: the results that wait for it.")] = "",
    to: Annotated[str, typer.Option(help="With `move`: the sink that gets them.")] = "",
    most: Annotated[int, typer.Option(min=1, help="Letters to look at, the oldest first.")] = 1000,
) -> None:
    """Show what waits in a queue, and list, replay or drop its dead letters.

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
    settings = queue_settings(spool, queue)
    if settings.address is None and not Path(settings.path).exists():
        raise ConfigurationError(f"there is no spool {settings.shown!r}; name it with --spool or --queue")
    asyncio.run(_move(settings, sink, to) if sink else _run(action, settings, cause, most))


async def _run(action: Action, settings: SpoolSettings, cause: str, most: int) -> None:
    async with _opened(settings) as queue:
        if action == "show":
            return _show(queue)
        chosen: list[DeadLetter] = []

        def decide(letter: DeadLetter) -> Fate:
            if cause not in ("", letter.cause):
                return "keep"
            chosen.append(letter)
            return _FATES[action]

        await queue.dead_letters(decide, most)
    if action == "list":
        for letter in chosen:
            record = printable(letter.record_id) or "unreadable"
            say(f"{printable(letter.cause)}\t{letter.attempts}\t{record}")
    else:
        done = "replayed" if action == "replay" else "dropped"
        causes = Counter(letter.cause for letter in chosen)
        said = ", ".join(f"{name} {count}" for name, count in sorted(causes.items()))
        say(printable(f"{done}: {len(chosen)}{f' ({said})' if said else ''}"))


async def _move(settings: SpoolSettings, sink: str, to: str) -> None:
    async with _opened(settings) as queue:
        moved = await queue.move(sink, to)
    say(f"{'moved' if to else 'dropped'}: {moved} that waited for {printable(sink)}")


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

    names = []
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
