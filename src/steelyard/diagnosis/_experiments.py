"""What experiments may be made with bad turns: how to answer again, how to search again, and how often."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol, runtime_checkable

from steelyard._internal.threads import DaemonExecutor, ThreadHangs
from steelyard.errors import ConfigurationError
from steelyard.record import Context, Record
from steelyard.recording import unrecorded

Replay = Callable[[str, Sequence[Context]], "str | Awaitable[str]"]
"""Answers a question from some passages, as the application does, without searching."""
Retrieve = Callable[[str, int], "Sequence[Context | str] | Awaitable[Sequence[Context | str]]"]
"""The best so many passages for a question, best first."""
_SPARES = 2


@runtime_checkable
class CountsReplays(Protocol):
    """A store that counts the calls of experiments for all processes that write to it."""

    def count_replay(self, day: str, *, most: int) -> bool:
        """Count one more call on a day; False if there were `most`. May block, and raise where it cannot."""


class ReplayFailed(Exception):
    """The application could not be asked again; the message says why, without content."""


@dataclass(frozen=True, kw_only=True)
class Experiments:
    """Bad turns are answered again under other conditions, to see what they suffer from.

    What is given here is the application's own code, called in a thread of its own, and not recorded as
    long as it does not start further threads that record.
    """

    replay: Replay = field(repr=False)
    """`replay(question, contexts) -> answer`, sync or async."""
    retrieve: Retrieve | None = field(default=None, repr=False)
    """`retrieve(question, k) -> passages`, texts or Contexts, best first; without it nobody can tell a
    passage that ranks too low from one that is not there."""
    per_turn: int = 6
    """Calls of `replay` for one turn at most: 1 to 50."""
    per_day: int = 200
    """Calls of `replay` a day (UTC) at most: by all processes that store results in the same SQLite file or
    Postgres database, else by this process."""
    timeout: float = 60.0
    """Seconds that one call may take."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigurationError: Naming the option.
        """
        for name in ("replay", "retrieve"):
            value = getattr(self, name)
            if not callable(value) and not (name == "retrieve" and value is None):
                raise ConfigurationError(f"experiments: {name} must be a function, not {value!r}")
        for name, most in (("per_turn", 50), ("per_day", 10**9)):
            number: object = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
                raise ConfigurationError(f"experiments: {name} must be a whole number from 1 to {most}")
        timeout: object = self.timeout
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or timeout <= 0:
            raise ConfigurationError(f"experiments: timeout must be above 0 seconds, not {self.timeout!r}")


class Laboratory:
    """Calls what `Experiments` names, within its bounds; counts the calls."""

    def __init__(
        self,
        options: Experiments,
        *,
        is_ended: Callable[[], bool] = lambda: False,
        store: CountsReplays | None = None,
    ) -> None:
        """Nothing is called yet.

        Args:
            options: What may be called, and how often.
            is_ended: Whether there is no more time for experiments, because the program ends say.
            store: Who counts the calls of a day for all processes; None if this is the only one.
        """
        self.options = options
        self._is_ended = is_ended
        self._store = store
        self.replays = 0
        """Calls of `replay` since the start."""
        self._day, self._today = "", 0
        self._threads = DaemonExecutor(1, name="steelyard-replay", spares=_SPARES)

    async def replay(self, question: str, contexts: Sequence[Context]) -> str:
        """The answer from these passages.

        Raises:
            ReplayFailed: If the day's calls are used up, or the function raises, hangs or returns no text.
        """
        if self._is_ended():
            raise ReplayFailed("the Monitor is being closed")
        if not await self._is_granted():
            raise ReplayFailed("the calls of this day are used up")
        self.replays += 1
        answer = await self._call("replay", self.options.replay, question, tuple(contexts))
        if not isinstance(answer, str) or not answer.strip():
            raise ReplayFailed("replay returned no answer")
        return answer

    async def retrieve(self, question: str, count: int) -> tuple[Context, ...] | None:
        """So many passages, as `Record` takes them; None if nobody said how to search.

        Raises:
            ReplayFailed: If the function raises, hangs or returns no passages.
        """
        if self.options.retrieve is None:
            return None
        found = await self._call("retrieve", self.options.retrieve, question, count)
        try:
            return Record(contexts=tuple(list(found)[:count])).contexts
        except TypeError:
            raise ReplayFailed("retrieve returned no passages") from None

    def close(self) -> None:
        """Let the thread end; a later call starts another."""
        self._threads.shutdown()

    async def _is_granted(self) -> bool:
        """Whether there is a call left today, which is then counted."""
        day, most = datetime.now(UTC).date().isoformat(), self.options.per_day
        if day != self._day:
            self._day, self._today = day, 0
        if self._today >= most:
            return False
        self._today += 1
        try:
            if self._store is None:
                return True
            return await asyncio.to_thread(self._store.count_replay, day, most=most)
        except Exception as error:  # noqa: BLE001 - a store may fail in any way, and the turn has its scores
            raise ReplayFailed(f"nobody could count the calls of this day: {type(error).__name__}") from None

    async def _call(self, name: str, function: Callable[..., Any], *given: Any) -> Any:
        async def awaited() -> Any:
            with unrecorded():
                found = await self._threads.run(function, *given)
                return await found if inspect.isawaitable(found) else found

        try:
            return await asyncio.wait_for(awaited(), self.options.timeout)
        except TimeoutError:
            raise ReplayFailed(f"{name} took longer than {self.options.timeout:g} s") from None
        except ThreadHangs:
            raise ReplayFailed(f"earlier calls of {name} still hang") from None
        except Exception as error:  # noqa: BLE001 - the application's own code may raise anything
            raise ReplayFailed(f"{name} raised {type(error).__name__}") from None


def laboratory_of(
    options: Experiments | None, stores: Sequence[object], *, is_ended: Callable[[], bool]
) -> Laboratory | None:
    """Who makes the experiments that were asked for, counted by the first store that can; None without."""
    store = next((one for one in stores if isinstance(one, CountsReplays)), None)
    return None if options is None else Laboratory(options, is_ended=is_ended, store=store)


def with_contexts(record: Record, contexts: Sequence[Context], answer: str) -> Record:
    """A turn as if it had been answered from other passages."""
    return replace(record, contexts=tuple(contexts), retrieved=(), stages=(), answer=answer, status="ok")
