"""The callback handler: run trees become turns, on the host's thread, at a few microseconds per event.

Why it is built as it is: one synchronous handler that runs inline, since an asynchronous one costs a new
event loop per event; plain attributes instead of the base class's `ignore_*` properties; no lock, since every
step is a single dictionary or list operation; no extraction, since that is done in the Monitor's thread,
where Records are built.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard._internal.text import error_place
from steelyard.recording import OnRecord, TurnTarget
from steelyard_langchain._feedback import remember
from steelyard_langchain._loose import Block
from steelyard_langchain._open_turns import INTERRUPTS, STOPS, OpenTurns
from steelyard_langchain._options import Key, Metadata, Nested, Options, target_or_default
from steelyard_langchain._stores import watch_memory_stores, watch_vector_stores
from steelyard_langchain._turn import Chain, Model, Retrieval, Tool, Turn, end_chain, is_step, kept_of
from steelyard_langchain._view import answer_message

_log = SafeLogger("steelyard.langchain")


_Event = TypeVar("_Event", bound=Callable[..., None])


def _guarded(event: _Event) -> _Event:
    """An event that raises nothing; if its ids are texts, it is told once more with them parsed.

    LangServe names runs so, and some users do. A check in each event would cost every host.
    """

    @functools.wraps(event)
    def guarded(self: CallbackHandler, *given: Any, **about: Any) -> None:
        try:
            event(self, *given, **about)
        except Exception as problem:  # noqa: BLE001 - the host never sees our errors
            ids = _parsed(about.get("run_id"), about.get("parent_run_id"))
            if ids is None:
                self.unreadable(event.__name__, problem)
            else:
                guarded(self, *given, **{**about, "run_id": ids[0], "parent_run_id": ids[1]})

    return cast("_Event", guarded)


def _parsed(run_id: Any, parent_run_id: Any) -> tuple[UUID, UUID | None] | None:
    """The ids of an event; None where neither is a text, or one is not an id's."""
    if not isinstance(run_id, str) and not isinstance(parent_run_id, str):
        return None
    try:
        return UUID(str(run_id)), None if parent_run_id is None else UUID(str(parent_run_id))
    except ValueError:
        return None


class CallbackHandler(BaseCallbackHandler):
    """Records every RAG turn of the chains it is passed to, and hands them to a Monitor.

    One handler serves any number of chains, threads and tasks. A turn is one root run: whatever retrievers,
    models and tools run below it belongs to it.
    """

    run_inline = True
    raise_error = False
    # The base class answers these with properties, and the framework asks before every event.
    ignore_llm = False
    ignore_chat_model = False
    ignore_chain = False
    ignore_agent = False
    ignore_retriever = False
    ignore_retry = True
    ignore_custom_event = True

    def __init__(
        self,
        monitor: TurnTarget | None = None,
        *,
        question_key: Key | None = None,
        context_key: Key | None = None,
        answer_key: Key | None = None,
        reference_key: Key | None = None,
        nested: Nested = "root_only",
        tool_contexts: Sequence[str] = (),
        metadata: Metadata | None = None,
        on_record: OnRecord | None = None,
        ttl: float = 3600.0,
        max_open: int = 10_000,
    ) -> None:
        """Configure a handler.

        Args:
            monitor: Where turns go; the process-wide default Monitor where none is given.
            question_key: Where the question stands in the root's input: a key, or a function of the input.
            context_key: Where the contexts stand in the root's output or input; retriever runs do not count.
            answer_key: Where the answer stands in the root's output: a key, or a function of the output.
            reference_key: Where the expected answer stands in the root's input or metadata.
            nested: `root_only` makes one record per root run; `all` adds one for every chain within it that
                is a RAG turn of its own (retrieves, then asks a model), such as a RAG chain used as a tool.
            tool_contexts: Names of the tools whose results are context; all are if none is named. Tools that
                run a retriever need no naming.
            metadata: Added to every record: a mapping, or a function of the run's own metadata.
            on_record: Called with every finished Record in the Monitor's thread; may return a changed one.
            ttl: Seconds after which a turn whose end was never seen (an abandoned stream) is forgotten.
            max_open: Open turns to keep; beyond it the oldest is forgotten.

        Raises:
            ConfigurationError: If an option cannot mean what was given.
        """
        super().__init__()
        self._options = Options(
            question_key=question_key,
            context_key=context_key,
            answer_key=answer_key,
            reference_key=reference_key,
            nested=nested,
            tool_contexts=tool_contexts,
            metadata=metadata,
            on_record=on_record,
            ttl=ttl,
            max_open=max_open,
        )
        self._target = target_or_default(monitor)
        self._turns = OpenTurns(self._target, self._options)
        self._warn_once = WarnOnce(_log)
        # The very dictionary: one attribute less to go through for each event.
        self._runs = self._turns.runs
        remember(self)
        watch_vector_stores(CallbackHandler)
        watch_memory_stores(CallbackHandler)

    def __repr__(self) -> str:
        return f"CallbackHandler({self._target!r})"

    @property
    def monitor(self) -> TurnTarget:
        """Where its turns go."""
        return self._target

    def stats(self) -> dict[str, int]:
        """How many turns are open, and how many were dropped by reason; also drops what has expired."""
        return self._turns.stats()

    def take_feedback(self, run_id: UUID | str, value: Any) -> bool:
        """Attach feedback to a turn that is still open; returns whether there is one."""
        return self._turns.rate(run_id, value)

    def open_block(self, turn: Turn) -> None:
        """Keep a turn that a `record` block opened, so that it can expire and take feedback."""
        self._turns.open(turn)

    def keep_memories(self, run_id: UUID | None, values: list[Any]) -> None:
        """Keep what was read from a store of memories within a run."""
        turn = None if run_id is None else self._runs.get(run_id.int)
        if turn is not None:
            turn.results.append((time.perf_counter(), values, False))

    def close_block(self, block: Block, error: BaseException | None) -> None:
        """Close a turn that a `record` block opened, and hand it over."""
        self._turns.close_block(block, error)

    # A copy of the handler would share its turns but not what it counts.
    def __copy__(self) -> CallbackHandler:
        return self

    def __deepcopy__(self, memo: object) -> CallbackHandler:
        # Frameworks deep-copy configurations; a copy would split the run tree in two.
        return self

    # -- chains

    @_guarded
    def on_chain_start(
        self, serialized: Any, inputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """Open a turn at a root; below one, remember whose run this is."""
        if parent_run_id is None:
            self._turns.begin(run_id, inputs, kwargs)
            return
        # The commonest event of all, which is why this is not a call of a method.
        turn = self._runs.get(parent_run_id.int)
        if turn is None:
            self._turns.begin_below(run_id, parent_run_id, inputs, kwargs)
            return
        key = run_id.int
        turn.parents[key] = parent_run_id.int
        self._runs[key] = turn
        if turn.closed:
            self._runs.pop(key, None)
        else:
            # What a sequence or a graph gives its steps is what a run before them returned.
            if kwargs.get("run_type") == "prompt" or (
                type(inputs) is dict and not is_step(kwargs.get("tags"))
            ):
                turn.texts.append((time.perf_counter(), inputs, True))
            if turn.chains is not None:
                turn.chains[key] = Chain(key, kwargs.get("name"), inputs)

    @_guarded
    def on_chain_end(
        self, outputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """Close the turn at its root; below, keep what may hold documents."""
        key = run_id.int
        turn = self._runs.get(key)
        if turn is None:
            return
        if turn.key == key:
            self._turns.end(turn, outputs, None, kwargs.get("inputs"))
            return
        # A run without a parent that is not the root stands in a `record` block.
        if parent_run_id is None:
            turn.outputs = outputs
        if type(outputs) is str:  # first, since most are, and each look costs the host
            turn.texts.append((time.perf_counter(), outputs, False))
        elif (kept := kept_of(outputs)) is not None:
            turn.results.append((time.perf_counter(), kept, False))
        if turn.chains is not None:
            end_chain(turn, key, outputs, None, kwargs.get("inputs"))

    @_guarded
    def on_chain_error(
        self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """Close the turn at its root; below, notice an interrupt."""
        turn = self._runs.get(run_id.int)
        if turn is None:
            return
        if turn.key == run_id.int:
            self._turns.end(turn, None, error, kwargs.get("inputs"))
            return
        # The root's own error tells the rest; an interrupt below it may be caught above.
        if type(error).__name__ in INTERRUPTS:
            turn.interrupted = True
        if turn.chains is not None:
            end_chain(turn, run_id.int, None, error, kwargs.get("inputs"))

    # -- retrievers

    @_guarded
    def on_retriever_start(
        self, serialized: Any, query: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """Remember the query."""
        turn = self._turns.join(run_id, parent_run_id)
        if turn is not None:
            turn.retrievals[run_id.int] = Retrieval(run_id.int, kwargs.get("name"), query)

    @_guarded
    def on_retriever_end(self, documents: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Keep the documents, in their order, whatever the chain does to the list."""
        turn = self._runs.get(run_id.int)
        if turn is not None:
            retrieval = turn.retrievals[run_id.int]
            retrieval.ended = time.perf_counter()
            # A tuple: the chain goes on with the list, and may sort or shorten it.
            retrieval.documents = tuple(documents)
            if turn.loose and turn.key == run_id.int:
                self._turns.end_loose(turn, documents)

    # -- models

    @_guarded
    def on_chat_model_start(
        self,
        serialized: Any,
        messages: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """Remember what the model is sent."""
        turn = self._turns.join(run_id, parent_run_id, finds=False)
        if turn is not None:
            turn.last_model = turn.models[run_id.int] = Model(run_id.int, messages, serialized)
            turn.span.ask_of_model(run_id)

    def on_llm_start(
        self, serialized: Any, prompts: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """Remember what the model is sent."""
        self.on_chat_model_start(serialized, prompts, run_id=run_id, parent_run_id=parent_run_id)

    def on_llm_new_token(self, token: Any, *args: Any, **kwargs: Any) -> None:
        """Tokens are of no interest: the root's output holds the answer."""

    @_guarded
    def on_llm_end(self, response: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Keep the reply; it tells which prompts the answer came out of."""
        turn = self._runs.get(run_id.int)
        if turn is not None and (model := turn.models.get(run_id.int)) is not None:
            model.ended = time.perf_counter()
            model.reply = response
            turn.span.ask_of_model(run_id)
            if turn.loose and turn.key == run_id.int:
                self._turns.end_loose(turn, answer_message(response))

    @_guarded
    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """The run is over, without a reply."""
        turn = self._runs.get(run_id.int)
        if turn is not None and (model := turn.models.get(run_id.int)) is not None:
            model.ended = time.perf_counter()
            # A stream that was left is not a failure of the model.
            model.failed = not isinstance(error, STOPS)
            if turn.loose and turn.key == run_id.int:
                self._turns.end_loose(turn)

    # -- tools

    @_guarded
    def on_tool_start(
        self,
        serialized: Any,
        input_str: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        inputs: Any = None,
        **kwargs: Any,
    ) -> None:
        """Remember the call."""
        turn = self._turns.join(run_id, parent_run_id)
        if turn is not None:
            name = kwargs.get("name") or (serialized or {}).get("name")
            turn.tools[run_id.int] = Tool(run_id.int, name, inputs if inputs is not None else input_str)

    @_guarded
    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Keep what the tool returned."""
        turn = self._runs.get(run_id.int)
        if turn is not None and (tool := turn.tools.get(run_id.int)) is not None:
            tool.output = output
            if turn.loose and turn.key == run_id.int:
                turn.inputs = tool.inputs
                self._turns.end_loose(turn, output)

    @_guarded
    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Notice an interrupt that was raised inside a tool."""
        turn = self._runs.get(run_id.int)
        if turn is not None and type(error).__name__ in INTERRUPTS:
            turn.interrupted = True
        if turn is not None and turn.loose and turn.key == run_id.int:
            self._turns.drop_loose(turn)

    @_guarded
    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Forget a retrieval outside of any chain; a chain's own error tells of any other."""
        turn = self._runs.get(run_id.int)
        if turn is not None and turn.loose and turn.key == run_id.int:
            self._turns.drop_loose(turn)

    def unreadable(self, event: str, problem: Exception) -> None:
        """Count an event that could not be read."""
        self._turns.count("unreadable_event")
        self._warn_once(
            "unreadable_event",
            "an event could not be read and was left out (%s, %s); further ones are counted in stats() only",
            event,
            error_place(problem),  # never its message, which may quote the turn
        )
