"""A turn on its way: what a recorder hands over, to whom, and the checks of options that recorders share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Protocol

from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard._internal.text import error_place
from steelyard.errors import ConfigurationError
from steelyard.record import Record, TraceRef


class TurnTarget(Protocol):
    """Takes finished turns. A `steelyard.Monitor` is one; in tests, anything with `submit`."""

    def submit(self, turn: Record | Draft, /) -> object:
        """Take a turn. Must return at once and never raise."""
        ...


def checked_target(monitor: TurnTarget) -> TurnTarget:
    """The same object.

    Raises:
        ConfigurationError: If it cannot take turns.
    """
    if not callable(getattr(monitor, "submit", None)):
        raise ConfigurationError(
            f"monitor={monitor!r} is not a Monitor: it has no submit(); pass a steelyard.Monitor"
        )
    return monitor


OnRecord = Callable[[Record], Record | None]
"""A user's function that is called with every finished Record and may return a changed one."""

_warn_once = WarnOnce(SafeLogger("steelyard.recording"))


class Draft(Protocol):
    """A finished turn whose Record is still to be built, away from the host's thread.

    Recorders keep references while the chain runs and leave the work (extracting texts, removing duplicates,
    matching against the prompt) to `build`, which the Monitor calls in its own thread. Where the Monitor
    selects by a rate alone, it builds the turns it has selected; where rules, `choose` or a suspicion have to
    see the Record, it builds every turn that could still be selected.
    """

    @property
    def id(self) -> str:
        """The id that the Record will have."""
        ...

    @property
    def trace(self) -> TraceRef | None:
        """Where the turn lives in the host's traces; decides sampling."""
        ...

    @property
    def size(self) -> int:
        """Roughly how many bytes it keeps alive; for the queue's bound."""
        ...

    def build(self) -> Record | None:
        """The Record, or None where the run turns out not to be a RAG turn."""
        ...


class TurnDraft(ABC):
    """A Draft that never raises: a turn that cannot be read becomes a Record that says so.

    Args:
        on_record: The user's function, called with the finished Record.
    """

    __slots__ = ("_on_record",)

    def __init__(self, *, on_record: OnRecord | None) -> None:
        self._on_record = on_record

    @property
    @abstractmethod
    def id(self) -> str:
        """The id that the Record will have."""

    @property
    @abstractmethod
    def trace(self) -> TraceRef | None:
        """Where the turn lives in the host's traces."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Roughly how many bytes it keeps alive."""

    @abstractmethod
    def read(self) -> Record | None:
        """The Record, or None where the run turns out not to be a RAG turn; may raise."""

    def build(self) -> Record | None:
        """The Record as `on_record` leaves it, or None where the run turns out not to be a RAG turn."""
        try:
            record = self.read()
        except Exception as error:  # noqa: BLE001 - objects of the host may raise anything, anywhere
            note = f"the run could not be read: {type(error).__name__}"
            record = Record(id=self.id, trace=self.trace, status="error", error=note, notes=(note,))
        return None if record is None else changed(record, self._on_record)


def _told_by(returned: Record, record: Record) -> Record:
    """A Record that says of what the user's function changed that it comes from there."""
    names = ("question", "contexts", "answer")
    others = [name for name in names if getattr(returned, name) != getattr(record, name)]
    if not others or returned.origins != record.origins:
        return returned
    return returned.replace(
        origins={
            **record.origins,
            **{
                name: ("on_record",) * (len(returned.contexts) if name == "contexts" else 1)
                for name in others
            },
        }
    )


def changed(record: Record, on_record: OnRecord | None) -> Record:
    """The record as the user's function leaves it; unchanged where that raises or returns no Record."""
    if on_record is None:
        return record
    try:
        returned = on_record(record)
        if returned is None or isinstance(returned, Record):
            return record if returned is None else _told_by(returned, record)
        kind = problem = f"returned {type(returned).__name__} instead of a Record"
    except Exception as error:  # noqa: BLE001 - a user's function may raise anything
        kind, problem = type(error).__name__, f"raised {error_place(error)}"
    _warn_once(
        kind, "on_record %s; the record stays unchanged, and more errors of this kind are not logged", problem
    )
    return record


def check_positive(name: str, value: object) -> None:
    """Raise a ConfigurationError unless a value is a number above 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise ConfigurationError(f"{name} must be a number above 0, not {value!r}")


def check_function(name: str, value: object) -> None:
    """Raise a ConfigurationError unless a value is a function or None; one to be awaited would never run."""
    if value is not None and not callable(value):
        raise ConfigurationError(f"{name} must be a function, not {value!r}")
    if iscoroutinefunction(value) or iscoroutinefunction(getattr(value, "__call__", None)):  # noqa: B004
        raise ConfigurationError(f"{name} must be a plain function, not a coroutine function: {value!r}")


def check_names(name: str, value: object) -> None:
    """Raise a ConfigurationError where one string stands in place of a list of names."""
    if isinstance(value, str):
        raise ConfigurationError(f"{name} must be a list of names; write [{value!r}]")
