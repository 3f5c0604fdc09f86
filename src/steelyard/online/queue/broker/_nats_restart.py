"""What is known of turns that come again because the server was restarted.

A server writes down ten times a second what it has delivered and what was acknowledged. One that is killed
has forgotten the last moment, and delivers at once, to anybody, whatever it takes to be unacknowledged: turns
that other processes are judging, and turns that are through. Two rules keep those from being judged twice:

* a turn that this process has seen through is acknowledged again;
* a turn that another process may hold is given back once, for half the length of a lease. Whoever holds it
  renews or acknowledges it meanwhile; if nobody does, its holder is gone, and it comes again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from steelyard._internal.bounded import BoundedDict
from steelyard.online.queue.broker._nats_streams import Present

_THROUGH = 10_000
_BEYOND = 100
"""By how many turns other processes may have been ahead of this one when the server was killed."""


class RestartMemory:
    """Which turns a process has seen, for as long as they may come again."""

    def __init__(self) -> None:
        self._server = ""
        self._highest = 0
        self._in_doubt = 0
        self._ends = 0.0
        self._wait = 0.0
        self._through: BoundedDict[int, None] = BoundedDict(max_items=_THROUGH)

    @property
    def wait(self) -> float:
        """Seconds for which a turn in doubt is given back."""
        return self._wait

    def connected(self, server: str, present: Present) -> None:
        """There is a connection to this server process; after another one, turns are in doubt for a lease.

        Not those that are put in from now on: nobody can have held them before.
        """
        if self._server and server != self._server:
            self._in_doubt = min(self._highest + _BEYOND, present.last_turn)
            self._ends = asyncio.get_running_loop().time() + present.lease_seconds
        self._server, self._wait = server, present.lease_seconds / 2

    def seen(self, seq: int) -> None:
        """A turn with this number was delivered."""
        self._highest = max(self._highest, seq)

    def through(self, seqs: Iterable[int]) -> None:
        """These turns are acknowledged."""
        for seq in seqs:
            self._through[seq] = None

    def is_through(self, seq: int) -> bool:
        """Whether this process has acknowledged a turn."""
        return seq in self._through

    def is_in_doubt(self, seq: int) -> bool:
        """Whether the server may have forgotten what became of a turn."""
        return seq <= self._in_doubt and asyncio.get_running_loop().time() < self._ends
