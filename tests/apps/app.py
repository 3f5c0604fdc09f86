"""What an application of the corpus is: code over a real framework, and the truth about what it did."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from steelyard.record import ContextsSource

Framework = Literal["langchain", "llamaindex"]
Field = Literal["turns", "question", "standalone", "contexts", "answer"]
Config = Mapping[str, Any]
"""What a chain is run with: the handler among its callbacks, where the recorder is a handler."""


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What happened in one turn."""

    question: str
    """The user's own words."""
    contexts: tuple[str, ...]
    """The passages that the answer was made from, as they were found, in the order of the prompt."""
    answer: str
    """What the user was shown."""
    standalone: str | None = None
    """The question as a condensing call wrote it, in a conversation."""
    source: ContextsSource = "in_prompt"
    """How the contexts are known."""
    partly: tuple[str, ...] = ()
    """Those of the contexts of which the model was shown only a part."""
    one_text: bool = False
    """Whether the passages came to the application as one text that says nowhere where a passage ends."""
    relayed: bool = False
    """Whether the passages went to calls whose replies, not the passages, are in the answer's prompt."""
    any_order: bool = False
    """Whether the calls that the passages went to ran at once, so that they have no order."""


@dataclass(frozen=True, kw_only=True)
class App:
    """One application, and the ways in which it can be run."""

    name: str
    shape: str
    """The pattern, in words."""
    framework: Framework
    run: Callable[[Config, str], Any]
    """Runs it in one of its ways and returns what the user is shown."""
    truths: tuple[Truth, ...]
    ways: tuple[str, ...]
    allowed_notes: Mapping[str, tuple[Field, ...]] = field(default_factory=dict)
    """What a recorder cannot know of this shape: it may be wrong there, but only with a note."""
    rootless: bool = False
    """Whether plain Python calls the parts one by one, so that no run of the framework is around them."""
    parts: tuple[Truth, ...] = ()
    """Turns that parts of it are by themselves, for a recorder that cannot know what they belong to."""


REGISTRY: list[App] = []
INVOKE, AINVOKE, STREAM, ASTREAM, BATCH = "invoke", "ainvoke", "stream", "astream", "batch"
BOTH = (INVOKE, AINVOKE)
ALL = (INVOKE, AINVOKE, STREAM)


def chain(
    *truths: Truth,
    given: Any = None,
    ways: tuple[str, ...] = ALL,
    allowed_notes: Mapping[str, tuple[Field, ...]] | None = None,
) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register a function that builds something of LangChain that can be invoked.

    It is given the question of each turn, or `given` (a function of the question makes the input of each).
    """

    def register(build: Callable[[], Any]) -> Callable[[], Any]:
        def run(config: Config, way: str) -> Any:
            made = build()
            inputs = [
                given(truth.question) if callable(given) else given or truth.question for truth in truths
            ]
            return [_drive(made, each, dict(config), way) for each in inputs]

        _add(build, "langchain", run, truths, ways, allowed_notes)
        return build

    return register


def script(
    *truths: Truth,
    framework: Framework = "langchain",
    ways: tuple[str, ...] = (INVOKE,),
    allowed_notes: Mapping[str, tuple[Field, ...]] | None = None,
    rootless: bool = False,
    parts: tuple[Truth, ...] = (),
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function that runs its turns itself; it takes a config, and the way where it has several."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        takes_way = len(inspect.signature(function).parameters) > 1

        def run(config: Config, way: str) -> Any:
            result = function(config, way) if takes_way else function(config)
            return asyncio.run(result) if inspect.iscoroutine(result) else result

        _add(function, framework, run, truths, ways, allowed_notes, rootless=rootless, parts=parts)
        return function

    return register


def _add(
    function: Callable[..., Any],
    framework: Framework,
    run: Callable[[Config, str], Any],
    truths: tuple[Truth, ...],
    ways: tuple[str, ...],
    allowed_notes: Mapping[str, tuple[Field, ...]] | None,
    *,
    rootless: bool = False,
    parts: tuple[Truth, ...] = (),
) -> None:
    REGISTRY.append(
        App(
            name=function.__name__,
            shape=inspect.getdoc(function) or "",
            framework=framework,
            run=run,
            truths=truths,
            ways=ways,
            allowed_notes=allowed_notes or {},
            rootless=rootless,
            parts=parts,
        )
    )


def _drive(made: Any, given: Any, config: Any, way: str) -> Any:
    if way == STREAM:
        return list(made.stream(given, config))
    if way == ASTREAM:
        return asyncio.run(_all(made.astream(given, config)))
    if way == AINVOKE:
        return asyncio.run(made.ainvoke(given, config))
    if way == BATCH:
        return made.batch([given], config)
    return made.invoke(given, config)


async def _all(stream: AsyncIterator[Any]) -> list[Any]:
    return [piece async for piece in stream]
