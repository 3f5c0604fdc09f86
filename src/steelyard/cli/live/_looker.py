"""Takes the turns of this process in place of its Monitors and prints what each was taken to be."""

from __future__ import annotations

import queue
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from steelyard._internal.text import printable
from steelyard.cli._words import counted
from steelyard.cli.live._page import lines_of
from steelyard.online import Monitor
from steelyard.record import Record
from steelyard.recording import Draft

_MOST = 1_000
"""Turns that wait to be shown; what comes beyond is counted."""
_SECONDS = 30.0


class Looker:
    """A target of turns that judges nothing, stores nothing and sends nothing: it prints them.

    Args:
        turns: After so many it shows no more, and `done` is set.
    """

    def __init__(self, turns: int) -> None:
        self._most = turns
        self._waiting: queue.Queue[Record | Draft | None] = queue.Queue(_MOST)
        self._kinds: Counter[str] = Counter()
        self._others = self._unseen = 0
        self.done = threading.Event()
        """Whether enough turns were shown."""
        self._thread = threading.Thread(target=self._run, name="steelyard-doctor", daemon=True)
        self._thread.start()

    def submit(self, turn: Record | Draft) -> None:
        """Take a turn; returns at once and never raises."""
        if self.done.is_set():
            return
        try:
            self._waiting.put_nowait(turn)
        except queue.Full:
            self._unseen += 1

    def close(self) -> int:
        """Show what still waits and what it comes to; returns how many turns were shown."""
        self._waiting.put(None)
        self._thread.join(_SECONDS)
        shown = self._kinds.total()
        typer.echo(f"{counted(shown, 'turn')} shown{self._sums()}")
        if self._others:
            typer.echo(f"{counted(self._others, 'run')} answered nothing from passages, and gave no record")
        if self._unseen:
            typer.echo(f"{counted(self._unseen, 'turn')} came faster than they could be shown")
        return shown

    def _sums(self) -> str:
        kinds = ", ".join(f"{kind} {count}" for kind, count in self._kinds.most_common())
        return f"; passages: {kinds}" if kinds else ""

    def _run(self) -> None:
        while (turn := self._waiting.get()) is not None:
            if self.done.is_set():
                continue
            # A Draft never raises; a Monitor of the application would leave a turn of None out as well.
            record = turn if isinstance(turn, Record) else turn.build()
            if record is None:
                self._others += 1
                continue
            self._kinds[record.evidence or "none"] += 1
            for line in lines_of(record, self._kinds.total()):
                typer.echo(printable(line, lines=True))
            if self._kinds.total() >= self._most:
                self.done.set()


@contextmanager
def in_place_of_monitors(looker: Looker) -> Iterator[None]:
    """Within, whatever this process hands to a Monitor goes to the looker, its own Monitors' turns too.

    An application that attaches recorders itself is seen with its own options, and none of its turns is
    judged or stored meanwhile.
    """
    submit = Monitor.submit

    def look(self: Monitor, turn: Record | Draft) -> None:
        looker.submit(turn)

    Monitor.submit = look  # type: ignore[method-assign]
    try:
        yield
    finally:
        Monitor.submit = submit  # type: ignore[method-assign]
