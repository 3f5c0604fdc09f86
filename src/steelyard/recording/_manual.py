"""`with record(...)`: a turn that is opened and closed by the user's code instead of by a root run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from steelyard.record import Context, Record, to_json_value
from steelyard.recording._guard import is_unrecorded

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
        self.answer: str | None = None
        """What the user was shown; set it, or what was answered last in the block is taken."""
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
            self._given["answer"] = self.answer
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
