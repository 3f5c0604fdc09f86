"""The two handlers on LlamaIndex's root dispatcher: spans give the structure of a turn, events the rest.

`BaseSpanHandler` would build a span object for each call and keep it; overriding its three methods directly
is far cheaper. The dispatcher swallows whatever a handler raises, so each says it itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from llama_index_instrumentation.base import BaseEvent
from llama_index_instrumentation.dispatcher import active_instrument_tags
from llama_index_instrumentation.event_handlers import BaseEventHandler
from llama_index_instrumentation.span import BaseSpan
from llama_index_instrumentation.span_handlers import BaseSpanHandler

from steelyard_llamaindex._extract import fields_of
from steelyard_llamaindex._kinds import finds_no_passages, kind_of
from steelyard_llamaindex._open_turns import OpenTurns
from steelyard_llamaindex._streams import break_off, hear

_EVERYBODYS = "chat_history"
"""What every memory is called that nobody named."""


class Spans(BaseSpanHandler[BaseSpan]):
    """Follows the spans of the root dispatcher."""

    turns: Any = None
    """The `OpenTurns` under way. A declared field, since pydantic's private attributes are slow to read."""

    @classmethod
    def class_name(cls) -> str:
        """Name of the class."""
        return "SteelyardSpans"

    def span_enter(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any | None = None,
        parent_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A span began."""
        try:
            # By the class, since looking at the object could run code of the application's.
            cls: Any = type(instance)
            kind = kind_of(id_, cls)
            is_none = kind == "agent" and self._fills_a_form(bound_args.arguments, parent_id)
            if kind is None or is_none or (kind == "retrieve" and finds_no_passages()):
                self.turns.follow(id_, parent_id)
                return
            asked = _asked(kind, instance, bound_args.arguments)
            # A workflow's span comes without the tags that are in force.
            given = active_instrument_tags.get() if tags is None else tags
            self.turns.enter(id_, parent_id, kind, asked, cls.__name__, given)
            if kind in ("chat", "agent"):
                self.turns.name_session(id_, *_session(instance, bound_args.arguments))
            if kind == "agent" and (place := self.turns.places.get(id_)) is not None:
                place[0].headers.update(_headers(instance))
        except Exception as error:  # noqa: BLE001 - the dispatcher would swallow it unheard
            self.turns.complain("span_enter", error)

    def _fills_a_form(self, arguments: dict[str, Any], parent_id: str | None) -> bool:
        """Whether a model that is given tools is a part of a run, or only has a form to fill in."""
        is_asked = arguments.get("user_msg") is not None
        return "tools" in arguments and (parent_id in self.turns.places or not is_asked)

    def span_exit(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any | None = None,
        result: Any | None = None,
        **kwargs: Any,
    ) -> None:
        """A span ended."""
        try:
            self.turns.leave(id_, result)
        except Exception as error:  # noqa: BLE001 - the dispatcher would swallow it unheard
            self.turns.complain("span_exit", error)

    def span_drop(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any | None = None,
        err: BaseException | None = None,
        **kwargs: Any,
    ) -> None:
        """A span was ended by an exception."""
        try:
            self.turns.drop(id_, err)
        except Exception as error:  # noqa: BLE001 - the dispatcher would swallow it unheard
            self.turns.complain("span_drop", error)

    def new_span(self, *args: Any, **kwargs: Any) -> None:
        """Not used: no span objects are made."""

    def prepare_to_exit_span(self, *args: Any, **kwargs: Any) -> None:
        """Not used: no span objects are made."""

    def prepare_to_drop_span(self, *args: Any, **kwargs: Any) -> None:
        """Not used: no span objects are made."""


def _session(instance: Any, arguments: dict[str, Any]) -> tuple[str | None, bool]:
    """The name of the memory that a chat engine keeps or that an agent is given, unless it is everybody's.

    And whether the engine keeps it. Whoever hands over the conversation keeps it elsewhere: the engine's own
    memory may be made for this turn.
    """
    given = arguments.get("memory") or getattr(arguments.get("start_event"), "memory", None)
    is_handed_over = arguments.get("chat_history") is not None  # in the first turn it is empty
    memory = given or (None if is_handed_over else getattr(instance, "_memory", None))
    name = getattr(memory, "session_id", None) or getattr(memory, "chat_store_key", None)
    return name if isinstance(name, str) and name != _EVERYBODYS else None, not given


def _headers(agent: Any) -> Iterator[str]:
    """The templates that an agent, or the agents of a workflow, have their instructions filled into."""
    each = getattr(agent, "agents", None)
    for one in each.values() if isinstance(each, dict) else [agent]:
        header = getattr(getattr(one, "formatter", None), "system_header", None)
        yield from [header.replace("{{", "{").replace("}}", "}")] if isinstance(header, str) else ()


def _asked(kind: str, instance: Any, arguments: dict[str, Any]) -> Any:
    """What a call is about: its first argument, with the exceptions that frameworks grow."""
    if kind in ("agent", "workflow"):
        event = arguments.get("start_event", arguments.get("user_msg"))
        # A workflow may be made anew for each message, and be started with nothing.
        is_empty = kind == "workflow" and event is not None and not fields_of(event)
        return _texts_kept(instance) if is_empty else event
    if kind == "writer":
        # A writer is the response itself, so that its passages are all that is asked of it.
        return instance.source_nodes
    if kind in ("llm", "tool"):
        return None
    return next(iter(arguments.values()), None)


def _texts_kept(instance: Any) -> dict[str, str]:
    """The texts that an object was made with, by name."""
    kept = vars(instance).items()
    return {name: value for name, value in kept if isinstance(value, str) and not name.startswith("_")}


class Events(BaseEventHandler):
    """Listens to the few events that say more than spans do."""

    turns: Any = None
    """The `OpenTurns` under way."""

    @classmethod
    def class_name(cls) -> str:
        """Name of the class."""
        return "SteelyardEvents"

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        """Take an event; most are of no interest, and those cost one look-up."""
        take = _TAKEN.get(type(event).__name__)
        if take is None:
            return
        try:
            take(self.turns, event)
        except Exception as error:  # noqa: BLE001 - the dispatcher would swallow it unheard
            self.turns.complain(type(event).__name__, error)


def _prompt(turns: OpenTurns, span_id: str | None, prompt: Any) -> None:
    place = turns.place(span_id)
    if place is not None:
        turns.ask(place, prompt)


def _piece(turns: OpenTurns, event: Any) -> None:
    place = turns.place(event.span_id)
    if place is not None:
        place[0].pieces.append(event.delta)


_TAKEN: dict[str, Callable[[OpenTurns, Any], None]] = {
    "LLMChatStartEvent": lambda turns, event: _prompt(turns, event.span_id, event.messages),
    "LLMCompletionStartEvent": lambda turns, event: _prompt(turns, event.span_id, event.prompt),
    "LLMChatEndEvent": lambda turns, event: turns.reply(event.span_id, event.messages, event.response),
    "LLMCompletionEndEvent": lambda turns, event: turns.reply(event.span_id, event.prompt, event.response),
    "LLMPredictStartEvent": lambda turns, event: turns.fill(event.span_id, event.template_args),
    "LLMStructuredPredictStartEvent": lambda turns, event: turns.fill(event.span_id, event.template_args),
    "LLMChatInProgressEvent": hear,
    "LLMCompletionInProgressEvent": hear,
    "ExceptionEvent": break_off,
    "StreamChatDeltaReceivedEvent": _piece,
    "SpanCancelledEvent": lambda turns, event: turns.cancel(event.span_id),
}
