"""One attempt to write a batch: what the sink took, what it refused by name, and what is left."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain

from steelyard._internal.redact import error_words
from steelyard.errors import ConfigurationError, SinkError
from steelyard.scores import Evaluation

_BLIND = 10
"""Failed writes without one that succeeds, after which the sink is taken to be away: a batch of 256 is halved
eight times until a single result is tried."""
_REFUSED = frozenset({"rejected", "unstorable"})
"""Causes of a SinkError that are about the results and not about the sink."""
_NOT_YET = "trace_not_found"
"""The cause of a SinkError over a result whose trace the server may know later."""
Settled = Callable[[bool], object]
"""Told whether a sink has a result or has refused it for good; in any thread, and must not block."""


@dataclass(frozen=True, slots=True, eq=False)
class Handed:
    """An Evaluation on its way to a sink."""

    evaluation: Evaluation
    size: int
    """Roughly how many bytes it keeps alive."""
    settled: Settled
    """Called once."""
    kept: bool
    """Whether a stored queue keeps it if the sink does not take it; otherwise it is lost then."""


@dataclass(slots=True)
class Outcome:
    """What became of a batch."""

    taken: list[Handed] = field(default_factory=list)
    """What the sink has."""
    refused: list[tuple[Handed, str]] = field(default_factory=list)
    """What it has refused for good, and by which name."""
    left: list[Handed] = field(default_factory=list)
    """What it does not have."""
    late: list[Handed] = field(default_factory=list)
    """What it cannot take yet; the queue that keeps it brings it again."""
    cause: str = ""
    """Why something is left, in a word."""
    words: str = ""
    """The same as it may be logged."""

    @property
    def told(self) -> bool:
        """Whether the sink has said something of single results, so that it is not away."""
        return bool(self.taken or self.refused or self.late)

    def alone(self, handed: Handed, error: BaseException) -> None:
        """The sink has raised over this one result."""
        if _waits(error) and handed.kept:
            self.late.append(handed)
        elif _refuses(error) or _waits(error):
            self.refused.append((handed, self.cause))
        else:
            self.left.append(handed)


Write = Callable[[Sequence[Evaluation]], Awaitable[BaseException | None]]


async def attempt(write: Write, batch: Sequence[Handed], *, in_parts: bool) -> Outcome:
    """Write a batch.

    Args:
        write: Writes some Evaluations; returns what the sink raised.
        batch: What to write.
        in_parts: Whether a batch over which the sink raises is written by halves, down to the results that
            fail alone. One that the sink says to refuse is always looked for.
    """
    outcome = Outcome()
    parts, failures = [list(batch)], 0
    while parts:
        part = parts.pop()
        error = await write([handed.evaluation for handed in part])
        if error is None:
            outcome.taken += part
            continue
        failures += 1
        outcome.cause, outcome.words = cause_of(error), error_words(error)
        if _is_away(error) or (failures >= _BLIND and not outcome.told):
            outcome.left += chain(part, *parts)
            break
        if len(part) == 1:
            outcome.alone(part[0], error)
        elif in_parts or _refuses(error) or _waits(error):
            half = len(part) // 2
            parts += [part[half:], part[:half]]
        else:
            outcome.left += part
    return outcome


def cause_of(error: BaseException) -> str:
    """A word for what a sink raised, for counts."""
    if isinstance(error, TimeoutError):
        return "timeout"
    cause = error.cause if isinstance(error, SinkError) else None
    return cause if isinstance(cause, str) else type(error).__name__  # any class may say it is a SinkError


def _refuses(error: BaseException) -> bool:
    """Whether an error is about the results."""
    return isinstance(error, SinkError) and cause_of(error) in _REFUSED


def _waits(error: BaseException) -> bool:
    """Whether an error is about results that may be taken later."""
    return isinstance(error, SinkError) and cause_of(error) == _NOT_YET


def _is_away(error: BaseException) -> bool:
    """Whether an error is about the sink, so that writing less at a time would not help."""
    if isinstance(error, SinkError):
        return not (_refuses(error) or _waits(error))
    return isinstance(error, OSError | ConfigurationError) or not isinstance(error, Exception)
