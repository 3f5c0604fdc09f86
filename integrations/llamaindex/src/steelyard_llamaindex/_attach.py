"""The handlers on the root dispatcher, and `with record(...)` blocks for code without an engine."""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextvars import Token
from types import SimpleNamespace
from typing import Any

from steelyard._internal.forks import ForkLock
from steelyard.errors import MissingDependency
from steelyard.record import Context
from steelyard.recording import ManualTurn, OnRecord, TurnTarget, checked_target
from steelyard.recording.reading import attribute
from steelyard_llamaindex._build import LlamaIndexDraft, Options
from steelyard_llamaindex._extract import Nodes, answer_of
from steelyard_llamaindex._open_turns import OpenTurns
from steelyard_llamaindex._streams import defer
from steelyard_llamaindex._turn import Place, Turn, current_place

_lock = ForkLock()
_installed: tuple[OpenTurns, Any, Any] | None = None


def instrument(
    monitor: TurnTarget | None = None,
    *,
    tool_contexts: Collection[str] = (),
    on_record: OnRecord | None = None,
    ttl: float = 3600.0,
    max_open: int = 10_000,
) -> None:
    """Record every LlamaIndex turn of this process from now on.

    Engines, chat engines, agents and workflows are watched through the root dispatcher; nothing is patched
    and no code has to change. Calling it again replaces what was given before.

    Args:
        monitor: Takes the turns; without one, `steelyard.online.default_monitor()`.
        tool_contexts: Names of an agent's tools whose results are evidence; all are if none is named.
        on_record: Called with every Record in the Monitor's thread; may return a changed one.
        ttl: Seconds after which a turn that never ended is given up, as `interrupted`.
        max_open: How many turns may be under way before the oldest is given up.

    Raises:
        ConfigurationError: If an option cannot mean what was given.
        MissingDependency: If LlamaIndex is not installed.
    """
    options = Options(tool_contexts=tool_contexts, on_record=on_record, ttl=ttl, max_open=max_open)
    turns = open_turns_for(monitor, options)
    from llama_index_instrumentation import root_dispatcher

    from steelyard_llamaindex._recorder import Events, Spans

    global _installed
    uninstrument()
    with _lock:
        spans, events = Spans(), Events()
        spans.turns = events.turns = turns
        # The lists are replaced, not changed: another thread may be walking them.
        root_dispatcher.span_handlers = [*root_dispatcher.span_handlers, spans]
        root_dispatcher.event_handlers = [*root_dispatcher.event_handlers, events]
        _installed = (turns, spans, events)


def uninstrument() -> None:
    """Stop recording.

    Turns under way are handed over as `interrupted`; `record` blocks and streams that are being read end as
    they would have.
    """
    global _installed
    with _lock:
        if _installed is None:
            return
        from llama_index_instrumentation import root_dispatcher

        turns, spans, events = _installed
        root_dispatcher.span_handlers = [each for each in root_dispatcher.span_handlers if each is not spans]
        root_dispatcher.event_handlers = [
            each for each in root_dispatcher.event_handlers if each is not events
        ]
        _installed = None
    turns.give_up()


def active() -> OpenTurns | None:
    """The turns under way, while `instrument` is in force."""
    installed = _installed
    return installed[0] if installed is not None else None


def attach(monitor: TurnTarget) -> None:
    """Record into a monitor; called by `steelyard run`.

    Raises:
        MissingDependency: If LlamaIndex is not installed; `steelyard run` then continues without it.
    """
    instrument(monitor)


def detach() -> None:
    """Undo `attach`."""
    uninstrument()


def open_turns_for(monitor: TurnTarget | None, options: Options) -> OpenTurns:
    """Make what follows the turns; the Monitor is the default one where none is given."""
    if importlib.util.find_spec("llama_index_instrumentation") is None:
        raise MissingDependency("llama-index-core", extra="llamaindex")
    if monitor is None:
        from steelyard.online import default_monitor

        monitor = default_monitor()
    return OpenTurns(
        checked_target(monitor),
        draft=lambda turn: LlamaIndexDraft(turn, options),
        defer=defer,
        ttl=options.ttl,
        most=int(options.max_open),
    )


def record(
    question: str,
    *,
    reference: str | None = None,
    tags: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    session: str | None = None,
    user: str | None = None,
    tenant: str | None = None,
) -> ManualTurn:
    """Record what happens in a block as one turn; for `with` and for `async with`.

    Every retrieval, query and model call inside belongs to it, also in tasks that it starts and awaits.
    Nothing is recorded while `instrument` is not in force.

    Args:
        question: What the user asked.
        reference: The expected answer, if it is known.
        tags: Tags of the record.
        metadata: Metadata of the record.
        session: The conversation that the turn belongs to.
        user: Who asks; stored as a keyed hash, and only if the Monitor has a `user_key`.
        tenant: The customer that the turn belongs to.

    Example:
        ```python
        with record(question=question) as turn:
            nodes = retriever.retrieve(question)
            turn.answer = str(llm.complete(prompt(question, nodes)))
        ```
    """
    return LlamaIndexManualTurn(
        question=question,
        reference=reference,
        tags=tags,
        metadata=metadata,
        session=session,
        user=user,
        tenant=tenant,
    )


class LlamaIndexManualTurn(ManualTurn):
    """A turn that takes in every LlamaIndex span of its block."""

    _turns: OpenTurns
    _turn: Turn
    _token: Token[Place | None]

    def _open(self, given: Mapping[str, Any]) -> bool:
        turns = active()
        if turns is None:
            return False
        self._turns = turns
        self._turn = turns.open(self.id, "manual", asked=given.get("question"), name="record", tags={})
        self._turn.given = given
        self._token = current_place.set((self._turn, self._turn.root))
        return True

    def _close(self, error: BaseException | None) -> None:
        try:
            current_place.reset(self._token)
        except ValueError:  # an asynchronous generator may be closed in a context other than its own
            current_place.set(None)
        if error is not None:
            self._turns.fail(self._turn, error)
        else:
            self._turns.finish(self._turn)

    def _contexts_of(self, item: Any, rank: int) -> Iterable[Context]:
        if isinstance(item, str):
            return [Context(text=item, rank=rank)] if item.strip() else []
        scored = item if attribute(item, "node") is not None else SimpleNamespace(node=item)
        return Nodes().contexts([scored], start=rank)

    def _answer_of(self, returned: Any) -> str:
        return answer_of(returned)
