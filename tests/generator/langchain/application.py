"""What an application of LangChain is: steps that plain code runs one after the other, mostly one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import Runnable

from generator.turns import Turn


@dataclass(frozen=True, kw_only=True)
class Step:
    """Something that is invoked."""

    runnable: Runnable[Any, Any]
    given: Callable[[Turn, Any], Any]
    """Its input, of the turn and of what the step before gave back."""


def all_shown(turn: Turn) -> Iterable[str]:
    """What a turn's script says is shown."""
    return turn.shown


def all_found(turn: Turn) -> Iterable[str]:
    """Everything that is found, for an application that leaves out nothing."""
    return turn.everything()


def last_shown(turn: Turn) -> Iterable[str]:
    """Of the last search alone what is shown."""
    return [text for text in turn.shown if text in turn.found[-1]]


@dataclass(frozen=True, kw_only=True)
class Application:
    """An application, ready to run."""

    steps: tuple[Step, ...]
    hops: int = 1
    """How many searches a turn makes."""
    batches: bool = True
    """Whether it can run as a batch: parts that are not told of the run cannot."""
    shows: Callable[[Turn], Iterable[str]] = all_shown
    """The passages that must stand in the prompt of the answer."""


def single(runnable: Runnable[Any, Any], given: Callable[[Turn], Any], **more: Any) -> Application:
    """An application of one root."""
    return Application(steps=(Step(runnable=runnable, given=lambda turn, _: given(turn)),), **more)
