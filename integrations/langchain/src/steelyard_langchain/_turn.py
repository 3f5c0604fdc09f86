"""An open turn: what the handler keeps of a run tree until its root ends, and which runs stand below which.

Everything here is written on the host's own thread, so it only takes references; reading them is `_build`'s
work, in the Monitor's thread. Runs are keyed by the integer of their UUID, which hashes in less than half the
time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import lru_cache
from threading import main_thread
from types import FrameType
from typing import Any, NamedTuple
from uuid import UUID

from langchain_core.callbacks import manager

from steelyard.record import Status, TraceRef
from steelyard.recording import RunSpan
from steelyard.recording.provenance import ModelCall

_NAMES = ("langchain", "langgraph")
_MANAGERS = vars(manager)
_MOST_FRAMES = 16


class RootSpan(RunSpan):
    """Which span the scores of a run tree go on; made when LangChain tells that its root begins."""

    __slots__ = ("_handlers", "_root")

    def __init__(self, root: UUID) -> None:
        super().__init__("langchain", _NAMES)
        self._root = root
        self._handlers: Sequence[object] = ()
        self.ask_again()

    def ask_again(self) -> None:
        """Ask the handlers that are being told of an event: at the root's start and at its end."""
        if not self.settled:
            self.ask(self._told(), self._root, str(self._root))
            if len(self._handlers) == 1:  # none but ours
                self.settled = True

    def ask_of_model(self, run_id: UUID) -> None:
        """Ask for the span of a model run, at its start and at its end."""
        if not self.settled:
            self.ask_of_call(self._told(), run_id, str(run_id))

    def _told(self) -> Sequence[object]:
        self._handlers = _handlers() or self._handlers
        return self._handlers if len(self._handlers) > 1 else ()


def _handlers() -> Sequence[object]:
    """The handlers of the manager that is telling us of an event, ours among them; none outside of any."""
    frame: FrameType | None = sys._getframe(3)
    for _ in range(_MOST_FRAMES):
        if frame is None:
            break
        if frame.f_globals is _MANAGERS:
            handlers: Sequence[object] | None = getattr(frame.f_locals.get("self"), "handlers", None)
            if handlers is not None:
                return handlers
        frame = frame.f_back
    return ()


Passed = tuple[float, Any, bool]
"""When a value was seen, the value, and whether a template was filled with it."""


@dataclass(slots=True, eq=False, repr=False)
class Retrieval:
    """One retriever run."""

    key: int
    name: str | None
    query: Any
    documents: Sequence[Any] | None = None
    started: float = field(default_factory=time.perf_counter)
    ended: float | None = None


@dataclass(slots=True, eq=False, repr=False)
class Model:
    """One run of a chat or completion model."""

    key: int
    prompt: Any
    about: Any = None
    reply: Any = None
    failed: bool = False
    started: float = field(default_factory=time.perf_counter)
    ended: float | None = None


@dataclass(slots=True, eq=False, repr=False)
class Tool:
    """One tool run."""

    key: int
    name: str | None
    inputs: Any
    output: Any = None
    started: float = field(default_factory=time.perf_counter)


@dataclass(slots=True, eq=False, repr=False)
class Chain:
    """One inner chain run; kept only where nested turns are recorded too."""

    key: int
    name: str | None
    inputs: Any
    outputs: Any = None
    error: BaseException | None = None
    started: float = field(default_factory=time.perf_counter)
    ended: float | None = None


@dataclass(slots=True, eq=False, repr=False)
class Earlier:
    """Retrievals and tools that ran before a turn in the same task or thread."""

    parents: dict[int, int]
    retrievals: dict[int, Retrieval]
    tools: dict[int, Tool]
    ready: bool = False
    """Whether its run has ended and looked something up that it did not answer from itself."""
    used_by: int | None = None
    """The turn that answered from it, or from a look-up after it."""

    def forget(self) -> None:
        """Let go of what was found: an answer was made of it, or the run failed."""
        self.ready, self.parents, self.retrievals, self.tools = False, {}, {}, {}


@dataclass(slots=True, eq=False, repr=False)
class Predecessor:
    """A run that began before a turn in the same task or thread, whose reply the turn may be built upon."""

    asked: Sequence[Model] = ()
    """What it asked models last; empty until it ends, and without prompts too large to be kept."""
    found: Earlier | None = None
    """What it looked up, or was looked up for it."""
    read: Sequence[ModelCall] | None = None
    """The same as it is compared, once a run after it has asked."""


class Stray(NamedTuple):
    """What a run found or replied that may have served a turn in another thread."""

    started: float
    model: Model | None
    """What it asked a model last."""
    earlier: Earlier | None
    """What it looked up."""
    thread: int | None
    """The thread of a look-up that no chain is around."""
    nearby: tuple[Earlier, ...]
    """What was looked up before it in its task or thread."""

    def is_elsewhere(self, turn: Turn) -> bool:
        """Whether code around a look-up and a call, which no chain is around, had a worker or a task look up.

        A worker is another thread than the main one. A task sees what its maker saw when it was made.
        """
        if self.thread is None or self.thread == turn.thread:
            return self.thread is not None and self.nearby == turn.nearby
        return self.thread != main_thread().ident


@dataclass(slots=True, eq=False, repr=False)
class Turn:
    """What was seen of one run tree so far."""

    root: UUID
    _: KW_ONLY
    name: str | None = None
    inputs: Any = None
    tags: Sequence[str] | None = None
    metadata: Mapping[str, Any] | None = None
    key: int = field(init=False)
    span: RootSpan = field(init=False)
    started_at: float = field(default_factory=time.time)
    started: float = field(default_factory=time.perf_counter)
    ended: float | None = None
    parents: dict[int, int] = field(default_factory=dict)
    """Every run below the root, with the run it was started by."""
    retrievals: dict[int, Retrieval] = field(default_factory=dict)
    models: dict[int, Model] = field(default_factory=dict)
    tools: dict[int, Tool] = field(default_factory=dict)
    chains: dict[int, Chain] | None = None
    results: list[Passed] = field(default_factory=list)
    """What inner chains returned, and what a `record` block's chains were given: documents may be in it."""
    texts: list[Passed] = field(default_factory=list)
    """Texts that inner chains returned, and what templates were filled with."""
    last_model: Model | None = None
    outputs: Any = None
    error: BaseException | None = None
    status: Status = "ok"
    interrupted: bool = False
    closed: bool = False
    configurable: Mapping[str, Any] | None = None
    """What the run was configured with; a thread may be named there alone."""
    before: Turn | None = None
    """The interrupted turn that this one resumes."""
    feedback: Any = None
    given: Mapping[str, Any] | None = None
    """Record fields that a `record` block was given; they win over what was seen."""
    loose: bool = False
    """Whether its root is a model, retriever or tool that ran outside of any chain."""
    thread: int | None = None
    """The thread of such a root."""
    earlier: Earlier | None = None
    """What calls after it in its task or thread will see of it."""
    nearby: tuple[Earlier, ...] = ()
    """The latest runs before it in the same task or thread; what counts is those that are `ready`."""
    predecessors: tuple[Predecessor, ...] = ()
    """The latest runs of the same task or thread, itself last; empty within a `record` block."""
    around: list[Model] = field(default_factory=list)
    """What the latest runs that began before it, and were open still, asked models last."""
    strays: tuple[Stray, ...] = ()
    """What the latest runs found or replied that had ended when it did, in whatever thread."""

    def __post_init__(self) -> None:
        self.key = self.root.int
        self.span = RootSpan(self.root)

    @property
    def trace(self) -> TraceRef:
        """Where the turn lives in the host's traces."""
        return self.span.trace(str(self.root))

    @property
    def found_before(self) -> tuple[Earlier, ...]:
        """What was retrieved before it in the same task or thread, outside of any run that answered.

        Left to be asked until the turn has ended, since the host waits while one begins.
        """
        return tuple(one for one in self.nearby if one.ready and one.used_by in (None, self.key))

    @property
    def history(self) -> list[Turn]:
        """The interrupted turns that led to this one, earliest first."""
        return [] if self.before is None else [*self.before.history, self.before]

    def kept(self) -> list[Any]:
        """Everything of the host's that the turn holds on to, and what it has of the turns before it."""
        kept = [self.inputs, self.outputs, self.results, self.texts, self.given, self.metadata]
        kept += [retrieval.documents for retrieval in self.retrievals.values()]
        for model in self.models.values():
            kept += (model.prompt, model.reply)
        for tool in self.tools.values():
            kept += (tool.inputs, tool.output)
        for chain in (self.chains or {}).values():
            kept += (chain.inputs, chain.outputs)
        for earlier in self.found_before:
            kept += [retrieval.documents for retrieval in earlier.retrievals.values()]
            kept += [tool.output for tool in earlier.tools.values()]
        return kept if self.before is None else [*kept, *self.before.kept()]

    def let_go(self, lighter: Callable[[Any], Any]) -> None:
        """Replace what it holds on to by something lighter."""
        self.inputs, self.outputs = lighter(self.inputs), lighter(self.outputs)
        self.results = lighter(self.results)
        for model in self.models.values():
            model.prompt, model.reply = lighter(model.prompt), lighter(model.reply)
        for tool in self.tools.values():
            tool.inputs, tool.output = lighter(tool.inputs), lighter(tool.output)
        for chain in (self.chains or {}).values():
            chain.inputs, chain.outputs = lighter(chain.inputs), lighter(chain.outputs)


def as_it_is(value: Any) -> Any:
    """What a root was given or returned, with lists and mappings of its own.

    Chains write into what they were given, and the caller's next turn goes on in the same list of messages.
    """
    if type(value) is dict:
        return {name: one.copy() if type(one) is list else one for name, one in value.items()}
    return value.copy() if type(value) is list else value


def kept_of(outputs: Any) -> Any:
    """What an inner run returned that may hold documents or texts, as it is; None for messages and values.

    A later step may write into its lists.
    """
    kind: Any = type(outputs)
    if isinstance(outputs, (list, dict)):
        return as_it_is(outputs)
    if kind.__name__ == "Command":  # what a node of a graph updates, with where to go on
        return outputs.update
    return as_it_is(vars(outputs)) if _is_state(kind) else None


@lru_cache(maxsize=512)
def _is_state(kind: Any) -> bool:
    """Whether objects of a class are an application's own: models of pydantic, dataclasses; not messages."""
    has_fields = hasattr(kind, "model_fields") or hasattr(kind, "__dataclass_fields__")
    return has_fields and kind.__dictoffset__ != 0 and not hasattr(kind, "is_lc_serializable")


STEP_TAGS = ("seq:step:", "graph:step:", "map:key:", "condition:", "branch:")
"""What LangChain and LangGraph tag the steps of what they run with."""


def is_step(tags: Sequence[str] | None) -> bool:
    """Whether a run is a step of a sequence or a graph, rather than started by code."""
    return bool(tags) and any(tag.startswith(STEP_TAGS) for tag in tags or ())


def above(turn: Turn | Earlier, key: int) -> list[int]:
    """The runs that a run is below, nearest first."""
    found: list[int] = []
    while (key := turn.parents.get(key, -1)) != -1 and len(found) < 1000:
        found.append(key)
    return found


def within(turn: Turn, key: int, top: int) -> bool:
    """Whether a run is a given one or below it."""
    return key == top or top in above(turn, key)


def outermost(turn: Turn | Earlier, key: int) -> bool:
    """Whether no retriever run is above a run."""
    retrievals = turn.retrievals
    if not retrievals or (len(retrievals) == 1 and key in retrievals):
        return True
    return not any(run in retrievals for run in above(turn, key))


def inner_turns(turn: Turn) -> list[Chain]:
    """The smallest chains below the root that retrieve and then ask a model.

    The smallest: a chain that only wraps one of them is the same turn. First retrieve, then ask: a model that
    rewrites the question for a retriever makes no answer.
    """
    candidates: dict[int, Chain] = {}
    for retrieval in turn.retrievals.values():
        if not outermost(turn, retrieval.key):
            continue
        over = above(turn, retrieval.key)
        for model in turn.models.values():
            if model.started > retrieval.started and outermost(turn, model.key):
                shared = set(above(turn, model.key))
                top = next((run for run in over if run in shared), None)
                if top is not None and turn.chains and top in turn.chains:
                    candidates[top] = turn.chains[top]
    nested = {run for key in candidates for run in above(turn, key)}
    return [chain for key, chain in candidates.items() if key not in nested]


def end_chain(turn: Turn, key: int, outputs: Any, error: BaseException | None, inputs: Any) -> None:
    """Keep how an inner chain ended, where inner chains are kept."""
    chain = turn.chains.get(key) if turn.chains else None
    if chain is not None:
        chain.ended, chain.outputs, chain.error = time.perf_counter(), outputs, error
        if inputs is not None:
            chain.inputs = inputs
