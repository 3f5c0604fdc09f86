"""Putting the handlers on the root dispatcher, and taking them off."""

from __future__ import annotations

import importlib.util
from collections.abc import Collection
from typing import Any

from steelyard._internal.forks import ForkLock
from steelyard.errors import MissingDependency
from steelyard.recording import OnRecord, TurnTarget, checked_target
from steelyard_llamaindex._build import LlamaIndexDraft
from steelyard_llamaindex._open_turns import OpenTurns
from steelyard_llamaindex._options import Options
from steelyard_llamaindex._streams import defer

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
