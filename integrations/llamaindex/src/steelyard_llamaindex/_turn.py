"""One turn of LlamaIndex under way: its steps, and the place where a span or an event belongs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import product, starmap, takewhile
from time import perf_counter
from typing import Any

from steelyard._internal.bounded import BoundedDict
from steelyard.record import Status
from steelyard.recording import RunSpan
from steelyard.recording.building import is_telling
from steelyard.recording.provenance import holds_replies
from steelyard.recording.reading import asked_in, is_question, strings_in
from steelyard_llamaindex._extract import fields_of, reply_of, texts_of
from steelyard_llamaindex._kinds import Kind

_NAMES = ("llamaindex", "llama_index")
_NOT_TRACERS = frozenset({"Spans", "NullSpanHandler"})
"""Span handlers that are there without any tracer: ours, and the framework's own."""


class RootSpan(RunSpan):
    """Which span the scores of a turn go on; made when its root begins."""

    __slots__ = ("_root",)

    def __init__(self, root: str) -> None:
        super().__init__("llamaindex", _NAMES)
        self._root = root
        # A block has an id of its own, and may stand within a span.
        self._ask(root, _active())

    def ask_again(self) -> None:
        """Look for the span of the root at its end."""
        self._ask(self._root)

    def ask_of_model(self, id_: str) -> None:
        """Look for the span of a model call, at its start and at its end."""
        self._ask(id_, model=True)

    def _ask(self, *ids: str | None, model: bool = False) -> None:
        framework = sys.modules.get("llama_index_instrumentation")
        if self.settled or framework is None:
            return
        told = framework.root_dispatcher.span_handlers
        beside = [each for each in told if type(each).__name__ not in _NOT_TRACERS]
        (self.ask_of_call if model else self.ask)(beside, *filter(None, ids))


def _active() -> str | None:
    module = sys.modules.get("llama_index_instrumentation.span")
    return None if module is None else module.active_span_id.get()


_RANDOM = (36, 4)
"""Characters and dashes of the ids that LlamaIndex gives to memories without a name."""
_MOST_SESSIONS = 10_000


class Sessions:
    """Which ids of memories name a conversation.

    An engine that is made anew for each turn has a memory with another random id each time, so that such an
    id tells of one only from its second turn on.
    """

    def __init__(self) -> None:
        self._seen: BoundedDict[str, None] = BoundedDict(max_items=_MOST_SESSIONS)

    def names(self, id_: str, *, is_own: bool) -> bool:
        """Whether a memory's id names one; `is_own` says that the engine keeps that memory itself."""
        is_known = id_ in self._seen or not is_own or (len(id_), id_.count("-")) != _RANDOM
        self._seen[id_] = None
        return is_known


_MOST_FOLLOWED = 12
_MOST_CALLS = 1000
_MOST_PROMPT = 50_000
"""Characters of a prompt that is kept for as long as its thread or task lives, or searched for replies."""
_NEAR = 1_000
"""Characters before a reply in a prompt in which a label says that a model said it."""


Passed = tuple[float, Any, bool]
"""When a value was seen, the value, and whether a template was filled with it."""


@dataclass(slots=True, eq=False, repr=False)
class LiveStep:
    """One part of a turn that matters for its record."""

    id: str
    kind: Kind
    parent: LiveStep | None
    """The step it was called from; None for the root."""
    name: str
    """The class of what was called."""
    asked: Any = None
    """What it was called with: a string, a QueryBundle, a message, a start event, a prompt."""
    result: Any = None
    """What it returned; of engines inside a turn, only the nodes."""
    began: float = 0.0
    seconds: float | None = None
    prompted: bool = False
    """Of a model call, whether its prompt was told."""
    used_by: str | None = None
    """Of a retrieval that no run holds, the id of the turn whose answer used it: it counts for no other."""


@dataclass(slots=True, eq=False, repr=False)
class Call:
    """One call of a language model."""

    asked: Any
    """The messages or the prompt that it was sent."""
    began: float
    step: LiveStep
    """The step that it is, or that it was made in."""
    reply: Any = None
    """What it replied, as an event told it; None while it runs, and for a stream that was left."""
    ended: float | None = None
    """When an event told its reply."""


@dataclass(slots=True, eq=False, repr=False)
class Predecessor:
    """A run that began before a turn in the same task or thread, whose reply the turn may be built upon.

    It holds on to nothing else of that run but what it looked up.
    """

    name: str = ""
    """The class of what was called; empty of a model that nothing holds."""
    asked: str = ""
    prompts: tuple[str, ...] = ()
    """What it asked a model last; empty until it ends, and of prompts too large to be kept."""
    reply: tuple[str, tuple[str, ...]] = ("", ())
    """What the model replied, as `reply_of` reads it."""
    ended: float = 0.0
    """When it ended, by the performance counter."""
    found: tuple[LiveStep, ...] = ()
    """What it looked up; of a call that no run holds what it used, once that is known."""
    filled: tuple[str, ...] = ()
    """What its template was filled with."""
    retold: bool = False
    """Whether a call that no run holds was sent its reply, or another run was asked the same."""
    retells: tuple[Predecessor, ...] = ()
    """Of a call that no run holds, the runs that were marked so by what it was sent."""


@dataclass(slots=True, eq=False, repr=False)
class Learnt:
    """What one run tells of others of its class."""

    searching: set[str] = field(default_factory=set)
    """The workflows that looked something up: a run of theirs that did not is a turn, too."""
    retold: set[str] = field(default_factory=set)
    """The engines and other runs whose reply is a step to an answer, or a part of it: see `Predecessor`."""
    answers: BoundedDict[str, None] = field(default_factory=lambda: BoundedDict(max_items=_MOST_SESSIONS))
    """The answers of turns: who is shown one as an assistant's words goes on with that conversation."""


@dataclass(slots=True, eq=False, repr=False)
class Turn:
    """One RAG turn under way, or over and waiting to become a Record."""

    id: str
    root: LiveStep
    span: RootSpan
    """Which span of the host's its scores go on."""
    tags: Mapping[str, Any]
    """What the user set with `instrument_tags`."""
    started: float
    steps: list[LiveStep] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    session: str | None = None
    """The conversation that the chat engine's memory names."""
    headers: set[str] = field(default_factory=set)
    """The templates of its agents' instructions, as far as the framework has them filled in."""
    tasks: list[Any] = field(default_factory=list)
    """What agents and workflows in it were asked."""
    passed: list[Passed] = field(default_factory=list)
    """What templates were filled with, and what steps of a workflow returned."""
    pieces: list[str] = field(default_factory=list)
    said: Any = None
    """What a language model replied last; the answer of a turn that has no result of its own."""
    failure: str | None = None
    """The first step that raised, whether or not the run went on."""
    status: Status = "ok"
    error: str | None = None
    generation: float = 0.0
    """Seconds spent in language models."""
    streaming: bool = False
    """Whether the answer comes after the root has returned."""
    returned: bool = False
    """Whether the root of a streamed chat has returned; the turn ends with the later of root and writer."""
    written: bool = False
    """Whether the writer of a streamed chat has ended."""
    done: bool = False
    open: set[str] = field(default_factory=set)
    loose: tuple[LiveStep, ...] = ()
    """The retrievals before it in the same task that no run holds."""
    stream: Any = None
    """Of a model call that no run holds, a weak reference to the stream that its reply comes in."""
    strays: tuple[LiveStep, ...] = ()
    """The latest retrievals that no run holds and that had ended when it did, in whatever thread."""
    taken: tuple[LiveStep, ...] = ()
    """Those of them that it is built upon, if no run holds it."""
    replied: tuple[Predecessor, ...] = ()
    """What the latest runs that had ended when it did asked a model last, in whatever thread."""
    learnt: Learnt = field(default_factory=Learnt)
    checks: bool = False
    """Whether an evaluator asks it about an answer, or to make up questions: not a user's turn."""
    predecessors: tuple[Predecessor, ...] = ()
    """The latest runs of the same task or thread, itself last."""
    given: Mapping[str, Any] | None = None
    """Record fields that a `record` block was given; they win over what was seen."""

    @property
    def is_step(self) -> bool:
        """Whether it is a call by itself that the next run was asked the same as, with nothing looked up.

        One that goes on with the run before it answers: then the next is asked that anew.
        """
        is_alone = self.root.kind == "llm" and not self.loose and self.given is None
        is_last = any(one.name and one.retold for one in self.predecessors[-2:-1])
        return is_alone and not is_last and any(one.retold for one in self.predecessors[-1:])

    @property
    def is_alone(self) -> bool:
        """Whether it is a call that no run holds."""
        return self.root.kind == "llm" or (self.root.kind == "synthesis" and bool(self.loose or self.taken))


Place = tuple[Turn, LiveStep]

loose_retrievals: ContextVar[tuple[object, tuple[LiveStep, ...]]] = ContextVar(
    "steelyard_llamaindex_loose", default=(None, ())
)
"""The last retrievals of this task or thread that no run holds, and whose recorder saw them."""

latest_runs: ContextVar[tuple[object, tuple[Predecessor, ...]]] = ContextVar(
    "steelyard_llamaindex_latest", default=(None, ())
)
"""The latest runs of this task or thread, and whose recorder saw them."""

current_place: ContextVar[Place | None] = ContextVar("steelyard_llamaindex_place", default=None)
"""Where spans without a parent of their own belong: a `record` block, or a stream that is being read."""


def unused(turn: Turn) -> list[LiveStep]:
    """The retrievals before a turn that no other turn's answer has used."""
    return [step for step in turn.loose if step.used_by in (None, turn.id)]


def only_retrieved(turn: Turn, result: Any) -> bool:
    """Whether an engine returned nodes without a word, for code of the application to go on with."""
    if turn.root.kind != "query" or turn.calls or turn.failure is not None:
        return False
    try:
        return result.response in ("", None) and bool(result.source_nodes)
    except Exception:  # noqa: BLE001 - a stream, or an object of the application's own
        return False


def follow_latest(turn: Turn, mark: object) -> None:
    """Tell a run that begins of those before it.

    Args:
        turn: The run.
        mark: Whose recorder sees it; runs that another saw do not count.
    """
    owner, latest = latest_runs.get()
    # A tuple, never a list: a child task takes over what came before it, and no sibling sees its own.
    before = latest[1 - _MOST_FOLLOWED :] if owner is mark else ()
    own = Predecessor("" if turn.root.kind == "llm" else turn.root.name)
    if turn.root.kind != "llm":
        _mark_steps(before, turn.root.asked, turn.learnt)
    if turn.root.kind == "query":
        own.asked = asked_in(turn.root.asked)
        _learn(turn.learnt, own, before)
    turn.predecessors = (*before, own)
    latest_runs.set((mark, turn.predecessors))


def _mark_steps(before: Sequence[Predecessor], asked: Any, learnt: Learnt) -> None:
    """Note the calls right before a run, held by none, that were asked the same: they route, or rewrite.

    What another question was answered with is the conversation to these, and no step to an answer.
    """
    alone = list(takewhile(lambda one: not one.name, reversed(before)))
    given = asked if isinstance(asked, (str, Mapping)) else asked_in(asked) or fields_of(asked)
    texts = [text for _, text in strings_in(given)] if alone else []
    for one in alone:
        held = product(texts, one.prompts), product(one.filled, texts)
        if not one.retold and any(_is_named(*pair) for pairs in held for pair in pairs):
            one.retold = True
            others = [run for run in one.retells if not any(starmap(_is_named, product(texts, run.prompts)))]
            for run in others:
                run.retold = False
                learnt.retold.discard(run.name)


def _is_named(asked: str, prompt: str) -> bool:
    """Whether a prompt holds a question; of a few words as a line of its own, or behind a label."""
    before, found, rest = prompt.partition(asked) if asked else ("", "", "")
    is_set_off = not before.strip() or before.rstrip(" ")[-1:] in ("\n", ":")
    is_line = is_set_off and rest.lstrip(" ")[:1] in ("", "\n")
    return bool(found) and (is_line or is_telling(asked) or is_question(asked))


def _learn(learnt: Learnt, own: Predecessor, before: Sequence[Predecessor]) -> None:
    """Note two engines that are asked the same in a row, and forget what did not come again for long."""
    last = next((one for one in reversed(before) if one.name), None)
    if last is not None and last.asked == own.asked:
        last.retold = own.retold = True
        learnt.retold.update((last.name, own.name))
    elif len(before) == _MOST_FOLLOWED - 1 and not any(one.retold for one in before):
        learnt.retold.discard(own.name)


def send(turn: Turn, step: LiveStep, prompt: Any, before: Iterable[Predecessor]) -> None:
    """Keep what a language model was sent, and note the runs before that a call by itself goes on with."""
    if len(turn.calls) < _MOST_CALLS:
        turn.calls.append(Call(prompt, perf_counter(), step))
    texts = texts_of(prompt) if step is turn.root and not turn.checks else ()
    # On the host's thread, what is too large to be kept is not searched either.
    for run in before if sum(map(len, texts)) <= _MOST_PROMPT else ():
        if run.name and _is_retold(run, prompt, texts):
            for own in () if run.retold else turn.predecessors[-1:]:
                own.retells += (run,)
            run.retold = True
            turn.learnt.retold.add(run.name)


def _is_retold(run: Predecessor, prompt: Any, texts: Iterable[str]) -> bool:
    """Whether a prompt holds what a run replied or, without that, was asked: not in a conversation."""
    reply = run.reply[0]
    held = next((text for text in texts if reply and reply in text), None)
    if held is None:
        is_asked = bool(run.asked) and any(_is_named(run.asked, text) for text in texts)
        return is_asked and not in_conversation(prompt)
    if _has_speaker(prompt):
        return False
    at = held.index(reply)
    return is_telling(reply) and not holds_replies(held[max(0, at - _NEAR) : at])


def in_conversation(asked: Any) -> bool:
    """Whether a prompt tells what was said before, whoever is asked now."""
    return _has_speaker(asked) or any(map(holds_replies, texts_of(asked)))


def _has_speaker(prompt: Any) -> bool:
    messages = prompt if isinstance(prompt, (list, tuple)) else ()
    return any(getattr(one, "role", None) == "assistant" for one in messages)


def _filled(turn: Turn) -> tuple[str, ...]:
    values = (value for _, value, is_variables in turn.passed if is_variables)
    return tuple(text for value in values for _, text in strings_in(value))


def precede(turn: Turn) -> None:
    """Keep what a run that has ended asked a model last, for those after it."""
    last = turn.calls[-1] if turn.predecessors and turn.calls else None
    if last is None:
        return
    reply = last.reply if last.reply is not None else last.step.result if last.step.kind == "llm" else None
    if reply is None and turn.pieces:
        reply = "".join(turn.pieces)
    prompts = texts_of(last.asked)
    if reply is not None and sum(map(len, prompts)) <= _MOST_PROMPT:
        own = turn.predecessors[-1]
        own.filled = _filled(turn)
        own.prompts, own.reply, own.ended = prompts, reply_of(reply), perf_counter()
        own.found = tuple(step for step in turn.steps if step.kind == "retrieve")
