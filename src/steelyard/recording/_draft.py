"""A turn on its way: what a recorder or a `record` block hands over, to whom, and what options must be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from inspect import iscoroutinefunction
from types import TracebackType
from typing import Any, Protocol, Self
from uuid import uuid4

from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard._internal.text import error_place
from steelyard.errors import ConfigurationError
from steelyard.record import Context, Record, TraceRef, text_of, to_json_value
from steelyard.recording._trace import is_unrecorded


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


TOLD = "record()"
"""The origin of what a block was given."""


class ManualTurn(ABC):
    """An open `record` block; for `with` and for `async with`.

    What the block is given, or sets while it is open, wins over what is seen in it.

    Args:
        question: What the user asked; what is seen of it counts if it is None.
        reference: The expected answer, if one is known.
        tags: Tags of the Record.
        metadata: Metadata of the Record.
        session: The conversation that the turn belongs to.
        user: Who asks; see `Record.user`.
        tenant: The customer that the turn belongs to.
    """

    def __init__(
        self,
        *,
        question: str | None,
        reference: str | None,
        tags: Sequence[str],
        metadata: Mapping[str, Any] | None,
        session: str | None = None,
        user: str | None = None,
        tenant: str | None = None,
    ) -> None:
        self.id: str = ""
        """The id of the record that the block will make; for feedback."""
        self.answer: Any = None
        """What the user was shown, as a text or as a chain, an engine or a model returned it; set it, or what
        was answered last in the block is taken."""
        self.contexts: Iterable[Any] | None = None
        """Passages (texts, documents, Contexts) to judge by; set it where no retriever finds them."""
        self._given: dict[str, Any] = {"tags": tuple(tags), "metadata": metadata}
        named = {
            "question": question,
            "reference": reference,
            "session": session,
            "user": user,
            "tenant": tenant,
        }
        self._given |= {name: value for name, value in named.items() if value is not None}
        self._is_open = False

    @abstractmethod
    def _open(self, given: Mapping[str, Any]) -> bool:
        """Open the turn `self.id`; returns whether anything records it."""

    @abstractmethod
    def _close(self, error: BaseException | None) -> None:
        """Close the turn and hand it over."""

    @abstractmethod
    def _contexts_of(self, item: Any, rank: int) -> Iterable[Context]:
        """One text, or one of the framework's own documents, as a context; none where it has no text."""

    @abstractmethod
    def _answer_of(self, returned: Any) -> str:
        """The answer in what the framework returned; empty where none is found."""

    def _text_of(self, answer: Any) -> str:
        if isinstance(answer, str):
            return answer
        try:
            return self._answer_of(answer) or text_of(answer)
        except Exception:  # noqa: BLE001 - an object of the application's own may raise anything
            return text_of(answer)

    def __enter__(self) -> Self:
        self.id = str(uuid4())
        self._is_open = not is_unrecorded() and self._open(self._given)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if not self._is_open:
            return
        if self.answer is not None:
            self._given["answer"] = self._text_of(self.answer)
        if self.contexts is not None:
            self._given["contexts"] = tuple(self._contexts(self.contexts))
        self._close(error)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, where)

    def _contexts(self, given: Iterable[Any]) -> Iterable[Context]:
        for rank, item in enumerate([given] if isinstance(given, (str, Mapping)) else given):
            if isinstance(item, Context):
                yield item
            else:
                found = tuple(self._contexts_of(item, rank))
                yield from found or (_of_row(item, rank) if isinstance(item, (Mapping, list, tuple)) else ())


def _of_row(row: Any, rank: int) -> Iterable[Context]:
    """A row or a hit of a search, read as a Record reads it."""
    return (replace(one, rank=rank) for one in Record(question="", contexts=(row,), answer="").contexts)


def with_given(record: Record, given: Mapping[str, Any] | None) -> Record:
    """The record with the fields that a `record` block was given."""
    if not given:
        return record
    fields = dict(given)
    metadata = {**record.metadata, **dict(to_json_value(fields.pop("metadata", None) or {}))}
    tags = (*record.tags, *fields.pop("tags", ()))
    if "contexts" in fields:
        fields["retrieved"], fields["contexts_source"] = (), "told"
    counts = {"question": 1, "contexts": len(fields.get("contexts", ())), "answer": 1}
    told = {name: (TOLD,) * count for name, count in counts.items() if name in fields}
    fields["origins"] = {**record.origins, **told}
    return replace(record, metadata=metadata, tags=tags, **fields)
