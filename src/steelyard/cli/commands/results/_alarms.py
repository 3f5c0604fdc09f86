"""`steelyard alarms`: what is watched and how it stands."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from steelyard._internal.text import printable
from steelyard.cli._say import counted, say

if TYPE_CHECKING:
    from steelyard.alarms import AlarmStatus, AlarmWatcher

_MESSAGES: Final = 5


def alarms(
    test: Annotated[bool, typer.Option("--test", help="Send every target a test message now.")] = False,
) -> None:
    """Show the alarms of `steelyard.toml`, the state of each, and what it reported.

    Exit status 1 if a metric has fallen, or with `--test` if a target was not reached.

    **Examples**

    - `steelyard alarms`
    - `steelyard alarms --test`
    """
    from steelyard.alarms import AlarmWatcher, alarms_from
    from steelyard.online import load_settings

    settings = load_settings().settings
    given = alarms_from(settings.alarm)
    if not given:
        say("No alarms. Write some into steelyard.toml, for instance:\n")
        say('[[alarm]]\nmetric = "faithfulness"\nfalls_by = 0.05\nto = ["log"]')
        return
    watcher = AlarmWatcher(given, file=settings.alarm_file)
    if test:
        _test(watcher)
        return
    status = watcher.status()
    for one in status:
        _show(one)
    if any(one.state == "fallen" for one in status):
        raise typer.Exit(1)


def _test(watcher: AlarmWatcher) -> None:
    outcome = watcher.test()
    for target, problem in outcome.items():
        say(f"{target}: {'told' if problem is None else printable(problem)}")
    if any(outcome.values()):
        raise typer.Exit(1)


def _show(status: AlarmStatus) -> None:
    say(f"{printable(status.alarm.label)}: {_state(status)}")
    if status.now is not None:
        since = f" since {_time(status.since)}, unless by chance" if status.since is not None else ""
        say(f"  now     {status.now}{since}")
    if status.before is not None:
        say(f"  before  {status.before}")
    if status.target is not None:
        say(f"  compared with {status.target:.3f}")
    if status.learnt:
        say(f"  learnt from turns that scored {status.learnt}; if they were bad already, use `below`")
    for message in status.messages[:_MESSAGES]:
        outcome = "told" if message.told is not None else f"not told: {message.problem or 'waits'}"
        kind = message.body.get("kind", "")
        say(printable(f"  {_time(message.created)} {kind}, {message.target}: {outcome}"))


def _state(status: AlarmStatus) -> str:
    if not status.turns:
        return "no turn yet"
    turns = counted(status.turns, "turn")
    if status.state == "learning":
        seen = status.now.turns if status.now else 0
        return f"learning what is normal, {seen} of {status.alarm.baseline} turns"
    return f"{'FALLEN' if status.state == 'fallen' else 'quiet'}, {turns}"


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")
