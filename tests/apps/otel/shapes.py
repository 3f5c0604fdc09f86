"""What a shape is: the spans that one kind of application writes, and the truth about its turns."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from steelyard_opentelemetry import Event, Span

QUESTION = "How often does the chain of a touring bicycle need oil?"
ANSWER = "Every 200 km, and after each ride in the rain."
PASSAGES = (
    "The chain of a touring bicycle needs oil every 200 km.",
    "After each ride in the rain the chain is dried and oiled again.",
    "A saddle is high enough when the heel reaches the pedal.",
)
SCORES = (0.91, 0.74, 0.33)
QUERY = "touring bicycle chain oil interval"
"""What an agent or a rewriter makes of the question."""

_SECOND = 1_000_000_000
_BEGIN = 1_700_000_000 * _SECOND
_STEP = _SECOND // 20
_traces = itertools.count(1)
_numbers = itertools.count(1)


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One turn as it was."""

    question: str = QUESTION
    """What the user asked."""
    contexts: tuple[str, ...] = PASSAGES
    """What reached the model, in the order of the prompt where the prompt is told."""
    answer: str = ANSWER
    """What the user was given."""
    one_text: bool = field(default=False, compare=False)
    """Whether the passages came as one text that says nowhere where a passage ends."""
    note: str = field(default="", compare=False)
    """What one of the record's notes has to say, where the spans cannot tell everything."""
    without: str = field(default="", compare=False)
    """What none of the record's notes may say, where the spans do tell it."""


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Why the spans hold no turn, and what the advice has to name."""

    cause: str
    """The diagnosis' cause."""
    switch: str
    """The switch that exists in this framework; part of the advice."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """One kind of application."""

    name: str
    """The function that makes its spans."""
    pattern: str
    """What is done there, in one sentence."""
    spans: Callable[[], list[Span]]
    """Makes the spans, in the order in which they end."""
    truth: tuple[Turn, ...] | Gap
    """Its turns, or why there is none."""


def shape(*truth: Turn | Gap) -> Callable[[Callable[[], Trace]], Shape]:
    """Declare a shape: the decorated function makes its trace, its docstring names the pattern."""
    turns = tuple(turn for turn in truth if isinstance(turn, Turn))
    gaps = [gap for gap in truth if isinstance(gap, Gap)]

    def declared(make: Callable[[], Trace]) -> Shape:
        pattern = (make.__doc__ or "").strip()
        return Shape(
            name=make.__name__, pattern=pattern, spans=lambda: make().spans, truth=gaps[0] if gaps else turns
        )

    return declared


class Trace:
    """The spans of one trace, nested as they are opened, on a clock that only moves forward.

    Args:
        scope: Name of the instrumentation scope.
    """

    def __init__(self, scope: str) -> None:
        self.spans: list[Span] = []
        self._scope = scope
        self._trace_id = f"{next(_traces):032x}"
        self._open: list[str] = []
        self._now = _BEGIN

    @contextmanager
    def span(
        self,
        name: str,
        attributes: Mapping[str, Any] | None = None,
        *,
        scope: str = "",
        events: Sequence[Event] = (),
    ) -> Iterator[None]:
        """A span around whatever is opened within."""
        span_id = f"{next(_numbers):016x}"
        parent = self._open[-1] if self._open else None
        start = self._tick()
        self._open.append(span_id)
        yield
        self._open.pop()
        self.spans.append(
            Span(
                trace_id=self._trace_id,
                span_id=span_id,
                parent_id=parent,
                name=name,
                scope=scope or self._scope,
                service="bicycles",
                start=start,
                end=self._tick(),
                attributes=dict(attributes or {}),
                events=tuple(events),
            )
        )

    def leaf(self, name: str, attributes: Mapping[str, Any] | None = None, **more: Any) -> None:
        """A span with nothing below it."""
        with self.span(name, attributes, **more):
            pass

    def _tick(self) -> int:
        self._now += _STEP
        return self._now


def event(name: str, attributes: Mapping[str, Any]) -> Event:
    """An event on a span."""
    return Event(name=name, attributes=dict(attributes))


def compact(value: object) -> str:
    """JSON as JavaScript and pydantic write it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def joined(passages: Sequence[str] = PASSAGES) -> str:
    """Passages as most prompts hold them: with an empty line between."""
    return "\n\n".join(passages)


def prompt(question: str = QUESTION, passages: Sequence[str] = PASSAGES) -> str:
    """A plain RAG prompt."""
    return f"Answer from the context alone.\n\nContext:\n{joined(passages)}\n\nQuestion: {question}"
