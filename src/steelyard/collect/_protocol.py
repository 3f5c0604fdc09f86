"""What the endpoint needs to know of spans and log records; `steelyard_opentelemetry.received` knows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from steelyard.record import Record

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Signal = Literal["traces", "logs"]
"""What a request is about, as its path says."""


class ReadExport(Protocol):
    """What one request holds."""

    @property
    def pieces(self) -> Mapping[str, bytes]:
        """What it holds of each trace, by trace id."""

    @property
    def spans(self) -> int:
        """How many spans there are in the pieces."""

    @property
    def log_records(self) -> int:
        """How many log records there are in the pieces; those without a model call's content are not."""

    @property
    def refused(self) -> int:
        """Spans, or log records with content, that were left out."""


_Export = TypeVar("_Export", bound=ReadExport)


class Receiver(Protocol):
    """Takes what the endpoint has read; a `Collector` is one."""

    @property
    def reader(self) -> SpanReader[Any]:
        """Reads requests and answers them."""

    @property
    def counts(self) -> DataclassInstance:
        """What became of everything so far."""

    async def store(self, export: ReadExport, *, signal: Signal) -> None:
        """Return when the spans, or the log records, of a request are safe; raises what a Collector does."""

    def refuse(self, cause: str) -> None:
        """Count a request that was not taken."""


class SpanReader(Protocol[_Export]):
    """Reads requests, answers them, and puts turns together; `take` and what follows run in one thread."""

    def read(self, body: bytes, *, is_json: bool, signal: Signal, session: str) -> _Export:
        """Take a request apart by trace; spans that name no session are given this one."""

    def success(self, export: _Export, *, is_json: bool) -> bytes:
        """The body that answers a request whose spans or log records are safe."""

    def failure(self, message: str, *, is_json: bool, passes: bool) -> bytes:
        """The body that answers any other request; `passes` where it may be sent again."""

    def take(self, piece: bytes, now: float) -> None:
        """Read what a request held of one trace. May raise anything."""

    def ready(self, now: float) -> list[Record]:
        """Take out every turn that is complete now."""

    def holds(self, trace_id: str) -> bool:
        """Whether anything of a trace may still become a turn, or part of one."""

    @property
    def spans(self) -> int:
        """Spans and log records that are held until their turns are complete."""

    @property
    def counts(self) -> Mapping[str, int]:
        """What became of spans and traces."""
