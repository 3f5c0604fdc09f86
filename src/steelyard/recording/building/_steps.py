"""A turn as steps: the one shape that recorders translate what their framework says into."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from steelyard.record import Context
from steelyard.recording.provenance import ModelCall
from steelyard.recording.reading import Message

StepKind = Literal["chain", "prompt", "retrieval", "rerank", "tool", "model"]


@dataclass(eq=False, kw_only=True, slots=True, repr=False)
class Step:
    """One thing that ran within a turn, as far as its framework tells of it."""

    kind: StepKind
    """What ran: a `prompt` is a template that was filled in."""
    name: str = ""
    """The component's or the tool's own name."""
    parent: Step | None = None
    """The step that it ran in; None directly below the root."""
    given: Any = None
    """What it was given, as the framework has it: an input, a query, a tool's arguments, variables."""
    returned: Any = None
    """What it returned, as the framework has it; None if it failed or that is not told."""
    contexts: tuple[Context, ...] | None = None
    """What a retrieval returned, in order; empty if it found nothing, None if that is not told. Of a chain
    or a tool, the documents that it passed on, if the recorder reads them itself."""
    silent: int = 0
    """How many documents a retrieval returned that have no text."""
    call: ModelCall | None = None
    """What a model was sent and what it replied."""
    messages: tuple[Message, ...] = ()
    """What a model was sent, with who said it."""
    at: float = 0.0
    """When it began, on the clock of all steps of the turn; only the order counts."""
    ended: float | None = None
    """When it ended; None if it did not."""
    failed: bool = False
    """Whether it ended in an error."""
    hands_over: bool = False
    """Whether it is a tool that only hands the turn to another agent, as far as the framework tells."""

    def above(self) -> Iterator[Step]:
        """The steps that it ran in, nearest first."""
        step = self.parent
        while step is not None:
            yield step
            step = step.parent

    def is_within(self, *kinds: StepKind) -> bool:
        """Whether it ran in a step of one of these kinds."""
        return any(step.kind in kinds for step in self.above())


@dataclass(eq=False, kw_only=True, repr=False)
class Turn:
    """Everything that was seen of one turn."""

    given: Any = None
    """What the root was given."""
    returned: Any = None
    """What the root returned."""
    steps: Sequence[Step] = ()
    """What ran below the root, in order of start."""
    before: Sequence[Sequence[Step]] = ()
    """Look-ups of earlier runs in the same task or thread, by run, earliest first; none was used yet."""
    earlier: Sequence[ModelCall] = ()
    """What models replied in earlier runs of the same task or thread; such a text is not evidence."""
    elsewhere: bool = False
    """Whether its prompts hold what models replied meanwhile in threads that knew nothing of it."""
    said: Sequence[str] = ()
    """What a person said to the run on its way, beside its input; no evidence, as all of a conversation."""
    in_conversation: bool = False
    """Whether the recorder knows that there was an earlier exchange."""
    answer: str = field(default="")
    """What the user was shown, where the recorder knows it."""

    @cached_property
    def models(self) -> list[Step]:
        """The model calls outside of retrievers, in order."""
        return [step for step in self.steps if step.kind == "model" and not self._serves_retrieval(step)]

    @cached_property
    def calls(self) -> list[ModelCall]:
        """The same as provenance looks at them."""
        return [step.call or ModelCall(started=step.at) for step in self.models]

    @cached_property
    def retrievals(self) -> list[Step]:
        """The outermost retrievals: what is inside of one is a stage of it."""
        return [step for step in self.steps if step.kind == "retrieval" and not self._serves_retrieval(step)]

    @cached_property
    def tools(self) -> list[Step]:
        """The outermost tools."""
        return [s for s in self.steps if s.kind == "tool" and not s.is_within("tool")]

    def inside(self, step: Step, *kinds: StepKind) -> bool:
        """Whether a step of one of these kinds ran in a given one; what tells a call ran a model."""
        within = ((s, "model" if s.call else s.kind) for s in self.steps if step in s.above())
        return any(kind in kinds for _, kind in within)

    def _serves_retrieval(self, step: Step) -> bool:
        """Whether a step is a part of a retriever, rather than of an engine that a retriever asks."""
        for above in step.above():
            if above.kind == "rerank" or above in self._engines:
                return False
            if above.kind == "retrieval":
                return True
        return False

    @cached_property
    def _engines(self) -> set[Step]:
        """The chains within retrievers in which a model ran after something had been looked up."""
        looked_up: set[Step] = set()
        engines: set[Step] = set()
        for step in self.steps:
            if step.kind in ("model", "retrieval") and step.is_within("retrieval"):
                chains = list(itertools.takewhile(lambda one: one.kind == "chain", step.above()))
                engines.update(looked_up.intersection(chains) if step.kind == "model" else ())
                looked_up.update(chains if step.kind == "retrieval" else ())
        return engines
