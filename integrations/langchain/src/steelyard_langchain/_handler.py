"""The callback handler: run trees become turns, on the host's thread, at a few microseconds per event.

Why it is built as it is: one synchronous handler that runs inline, since an asynchronous one costs a new
event loop per event; plain attributes instead of the base class's `ignore_*` properties; no lock, since every
step is a single dictionary or list operation; no extraction, since that is done in the Monitor's thread,
where Records are built.
"""

from __future__ import annotations

import logging
import time
from asyncio import CancelledError
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

from steelyard.errors import ConfigurationError
from steelyard.record import Draft, Record, Status, current_trace, is_unrecorded
from steelyard_langchain._block import Block, current_block
from steelyard_langchain._drafts import TurnDraft
from steelyard_langchain._feedback import remember
from steelyard_langchain._nested import inner_turns
from steelyard_langchain._options import Key, Metadata, Nested, Options
from steelyard_langchain._turn import Chain, Model, Retrieval, Tool, Turn

__all__ = ["CallbackHandler", "Recorder"]

_log = logging.getLogger("steelyard.langchain")

_REMEMBERED = 256
_STRAGGLING = 60.0
_CAUSES = ("expired", "too_many_open", "not_a_turn", "unreadable_event")
_STOPS = (CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)
_INTERRUPTS = frozenset({"GraphInterrupt", "NodeInterrupt"})


def _default_monitor() -> Recorder:
    from steelyard.online import default_monitor

    return default_monitor()


def _status(turn: Turn, error: BaseException | None) -> Status:
    if error is not None:
        if isinstance(error, GeneratorExit):
            return "truncated"
        if isinstance(error, _STOPS):
            return "cancelled"
        return "interrupted" if type(error).__name__ in _INTERRUPTS else "error"
    if turn.interrupted:
        return "interrupted"
    # A model that is still at it when the root ends was left: somebody broke off the stream.
    return "truncated" if turn.last_model is not None and turn.last_model.ended is None else "ok"


class Recorder(Protocol):
    """Where finished turns go. A `steelyard.Monitor` is one; in tests, anything with `submit`."""

    def submit(self, record: Record | Draft, /) -> object:
        """Take a turn. Must return at once and never raise."""
        ...


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
        monitor: Recorder | None = None,
        *,
        question_key: Key | None = None,
        context_key: Key | None = None,
        answer_key: Key | None = None,
        reference_key: Key | None = None,
        nested: Nested = "root_only",
        tool_contexts: Sequence[str] = (),
        metadata: Metadata | None = None,
        on_record: Callable[[Record], Record | None] | None = None,
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
            tool_contexts: Names of tools whose text output is context. Tools that return documents as
                artifact, or that run a retriever, need no naming.
            metadata: Added to every record: a mapping, or a function of the run's own metadata.
            on_record: Called with every finished Record in the Monitor's thread; may return a changed one.
            ttl: Seconds after which a turn whose end was never seen (an abandoned stream) is forgotten.
            max_open: Open turns to keep; beyond it the oldest is forgotten.

        Raises:
            ConfigurationError: If an option cannot mean what was given.
        """
        super().__init__()
        if ttl <= 0 or max_open < 1:
            raise ConfigurationError(f"ttl={ttl!r} and max_open={max_open!r} must be positive")
        self._options = Options.checked(
            question_key=question_key,
            context_key=context_key,
            answer_key=answer_key,
            reference_key=reference_key,
            nested=nested,
            tool_contexts=tool_contexts,
            metadata=metadata,
            on_record=on_record,
        )
        self._recorder = monitor if monitor is not None else _default_monitor()
        if not callable(getattr(self._recorder, "submit", None)):
            raise ConfigurationError(f"{monitor!r} is no Monitor: it has no submit()")
        self._submit = self._recorder.submit
        self._keep_chains = nested == "all"
        self._ttl = ttl
        self._max_open = max_open
        self._runs: dict[int, Turn] = {}
        self._open: OrderedDict[int, Turn] = OrderedDict()
        self._closed: deque[tuple[float, Mapping[int, int]]] = deque(maxlen=_REMEMBERED)
        self._interrupted: OrderedDict[str, Turn] = OrderedDict()
        self._counts: dict[str, int] = dict.fromkeys(_CAUSES, 0)
        remember(self)

    def __repr__(self) -> str:
        return f"CallbackHandler({self._recorder!r})"

    @property
    def monitor(self) -> Recorder:
        """Where its turns go."""
        return self._recorder

    def stats(self) -> dict[str, int]:
        """How many turns are open, and how many were dropped by reason; also drops what has expired."""
        self._forget(time.perf_counter(), room=0)
        return {"open": len(self._open), "runs": len(self._runs), **self._counts}

    def take_feedback(self, run_id: UUID | str, value: Any) -> bool:
        """Attach feedback to a turn that is still open; returns whether there is one."""
        try:
            turn = self._open.get((run_id if isinstance(run_id, UUID) else UUID(run_id)).int)
        except ValueError:
            return False
        if turn is not None:
            turn.feedback = value
        return turn is not None

    def __copy__(self) -> CallbackHandler:
        return self

    def __deepcopy__(self, memo: object) -> CallbackHandler:
        # Frameworks deep-copy configurations; a copy would split the run tree in two.
        return self

    # -- chains

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """Open a turn at a root; below one, remember whose run this is."""
        try:
            if parent_run_id is None:
                self._begin(run_id, inputs, kwargs)
                return
            turn = self._runs.get(parent_run_id.int)
            if turn is None:
                self._begin_below(run_id, parent_run_id, inputs, kwargs)
                return
            key = run_id.int
            turn.parents[key] = parent_run_id.int
            self._runs[key] = turn
            if turn.closed:
                self._runs.pop(key, None)
            elif turn.chains is not None:
                turn.chains[key] = Chain(key, kwargs.get("name"), inputs)
        except Exception:  # noqa: BLE001 - the host never sees our errors
            self._unreadable("on_chain_start")

    def on_chain_end(
        self, outputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """Close the turn at its root; below, keep what may hold documents."""
        try:
            key = run_id.int
            turn = self._runs.get(key)
            if turn is None:
                return
            if turn.key == key:
                self._end(turn, outputs, None, kwargs.get("inputs"))
                return
            if parent_run_id is None:
                turn.outputs = outputs
            if not turn.retrievals and isinstance(outputs, (list, dict)):
                turn.results.append(outputs)
            if turn.chains is not None:
                self._end_chain(turn, key, outputs, None, kwargs.get("inputs"))
        except Exception:  # noqa: BLE001
            self._unreadable("on_chain_end")

    def on_chain_error(
        self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """Close the turn at its root; below, notice an interrupt."""
        try:
            turn = self._runs.get(run_id.int)
            if turn is None:
                return
            if turn.key == run_id.int:
                self._end(turn, None, error, kwargs.get("inputs"))
                return
            if type(error).__name__ in _INTERRUPTS:
                turn.interrupted = True
            if turn.chains is not None:
                self._end_chain(turn, run_id.int, None, error, kwargs.get("inputs"))
        except Exception:  # noqa: BLE001
            self._unreadable("on_chain_error")

    # -- retrievers

    def on_retriever_start(
        self, serialized: Any, query: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """Remember the query."""
        try:
            turn = self._join(run_id, parent_run_id)
            if turn is not None:
                turn.retrievals[run_id.int] = Retrieval(run_id.int, kwargs.get("name"), query)
        except Exception:  # noqa: BLE001
            self._unreadable("on_retriever_start")

    def on_retriever_end(self, documents: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Keep the documents, in their order, whatever the chain does to the list."""
        try:
            turn = self._runs.get(run_id.int)
            if turn is not None:
                retrieval = turn.retrievals[run_id.int]
                retrieval.ended = time.perf_counter()
                retrieval.documents = tuple(documents)
        except Exception:  # noqa: BLE001
            self._unreadable("on_retriever_end")

    # -- models

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
        try:
            turn = self._join(run_id, parent_run_id)
            if turn is not None:
                turn.last_model = turn.models[run_id.int] = Model(run_id.int, messages)
        except Exception:  # noqa: BLE001
            self._unreadable("on_chat_model_start")

    def on_llm_start(
        self,
        serialized: Any,
        prompts: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """Remember what the model is sent."""
        self.on_chat_model_start(serialized, prompts, run_id=run_id, parent_run_id=parent_run_id)

    def on_llm_new_token(self, token: Any, *args: Any, **kwargs: Any) -> None:
        """Tokens are of no interest: the root's output holds the answer."""

    def on_llm_end(self, response: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Keep the reply; it tells which prompts the answer came out of."""
        turn = self._runs.get(run_id.int)
        if turn is not None and (model := turn.models.get(run_id.int)) is not None:
            model.ended = time.perf_counter()
            model.reply = response

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """The run is over, without a reply."""
        turn = self._runs.get(run_id.int)
        if turn is not None and (model := turn.models.get(run_id.int)) is not None:
            model.ended = time.perf_counter()
            model.failed = not isinstance(error, _STOPS)

    # -- tools

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
        try:
            turn = self._join(run_id, parent_run_id)
            if turn is not None:
                name = kwargs.get("name") or (serialized or {}).get("name")
                turn.tools[run_id.int] = Tool(run_id.int, name, inputs if inputs is not None else input_str)
        except Exception:  # noqa: BLE001
            self._unreadable("on_tool_start")

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Keep what the tool returned."""
        turn = self._runs.get(run_id.int)
        if turn is not None and (tool := turn.tools.get(run_id.int)) is not None:
            tool.output = output

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Notice an interrupt that was raised inside a tool."""
        turn = self._runs.get(run_id.int)
        if turn is not None and type(error).__name__ in _INTERRUPTS:
            turn.interrupted = True

    # -- turns

    def _begin(self, run_id: UUID, inputs: Any, about: Mapping[str, Any]) -> None:
        if is_unrecorded():
            return
        block = current_block()
        if block is not None:
            block.adopt(self._runs, run_id, inputs)
            return
        trace = current_trace(run_id=str(run_id), framework="langchain")
        metadata = about.get("metadata")
        turn = Turn(
            run_id,
            trace,
            name=about.get("name"),
            inputs=dict(inputs) if type(inputs) is dict else inputs,
            tags=about.get("tags"),
            metadata=metadata,
        )
        if self._keep_chains:
            turn.chains = {}
        if self._interrupted and metadata and not isinstance(inputs, (str, dict, list)):
            turn.before = self._interrupted.pop(str(metadata.get("thread_id")), None)
        self._forget(turn.started)
        key = run_id.int
        self._open[key] = self._runs[key] = turn

    def _begin_below(self, run_id: UUID, parent_run_id: UUID, inputs: Any, about: Mapping[str, Any]) -> None:
        """A chain below a run never seen is our root (a handler bound to a part, a LangSmith trace outside).

        Unless that run belongs to a turn that has just been closed: a broken stream's runs go on for a while.
        """
        parent = parent_run_id.int
        if not any(parent in runs for _, runs in tuple(self._closed)):
            self._begin(run_id, inputs, about)

    def _join(self, run_id: UUID, parent_run_id: UUID | None) -> Turn | None:
        """The turn that a new run belongs to. Models, retrievers and tools on their own are no turn."""
        if parent_run_id is None:
            block = None if is_unrecorded() else current_block()
            return None if block is None else block.adopt(self._runs, run_id)
        turn = self._runs.get(parent_run_id.int)
        if turn is None:
            return None
        key = run_id.int
        turn.parents[key] = parent_run_id.int
        self._runs[key] = turn
        if turn.closed:
            self._runs.pop(key, None)
            return None
        return turn

    def _end(self, turn: Turn, outputs: Any, error: BaseException | None, inputs: Any) -> None:
        turn.ended = time.perf_counter()
        turn.outputs = outputs
        turn.error = error
        if inputs is not None:
            turn.inputs = inputs
        turn.status = _status(turn, error)
        self._drop(turn)
        if turn.status != "ok":
            self._closed.append((turn.ended, turn.parents))
        if turn.status == "interrupted" and turn.metadata:
            self._carry(turn, turn.metadata.get("thread_id"))
        if turn.models or turn.retrievals or turn.tools or turn.results or turn.before:
            self.submit(turn)
        else:
            self._counts["not_a_turn"] += 1

    def open_block(self, turn: Turn) -> None:
        """Keep a turn that a `record` block opened, so that it can expire and take feedback."""
        if self._keep_chains:
            turn.chains = {}
        self._forget(turn.started)
        self._open[turn.key] = turn

    def close_block(self, block: Block, error: BaseException | None) -> None:
        """Close a turn that a `record` block opened, and hand it over."""
        turn = block.turn
        if turn.closed:
            return  # it has expired
        turn.error = error
        turn.status = _status(turn, error)
        self._drop(turn)
        for runs in block.maps:
            for key in list(turn.parents):
                runs.pop(key, None)
        self._closed.append((turn.ended or turn.started, turn.parents))
        self.submit(turn)

    def submit(self, turn: Turn) -> None:
        """Hand over a closed turn, and every chain within it that may be a turn of its own."""
        self._submit(TurnDraft(turn, self._options))
        if turn.chains:
            for chain in inner_turns(turn):
                self._submit(TurnDraft(turn, self._options, chain=chain))

    def _end_chain(
        self, turn: Turn, key: int, outputs: Any, error: BaseException | None, inputs: Any
    ) -> None:
        chain = turn.chains.get(key) if turn.chains else None
        if chain is not None:
            chain.ended, chain.outputs, chain.error = time.perf_counter(), outputs, error
            if inputs is not None:
                chain.inputs = inputs

    def _carry(self, turn: Turn, thread_id: Any) -> None:
        """Keep an interrupted turn for the one that resumes its thread."""
        if thread_id is not None:
            self._interrupted[str(thread_id)] = turn
            if len(self._interrupted) > self._max_open:
                self._interrupted.popitem(last=False)

    def _drop(self, turn: Turn) -> None:
        """Let go of a turn. Marked first: a run that starts meanwhile sees the mark and lets go of itself."""
        turn.closed = True
        runs = self._runs
        for key in list(turn.parents):
            runs.pop(key, None)
        runs.pop(turn.key, None)
        self._open.pop(turn.key, None)

    def _forget(self, now: float, *, room: int = 1) -> None:
        """Drop what has been open for too long, oldest first."""
        # Another thread may change what is looked at; then the next turn looks again.
        with suppress(RuntimeError, IndexError, StopIteration):
            while self._open:
                turn = next(iter(self._open.values()))
                full = len(self._open) + room > self._max_open
                if not full and now - turn.started <= self._ttl:
                    break
                self._drop(turn)
                self._counts["too_many_open" if full else "expired"] += 1
            while self._closed and now - self._closed[0][0] > min(self._ttl, _STRAGGLING):
                self._closed.popleft()
            while self._interrupted:
                thread_id, turn = next(iter(self._interrupted.items()))
                if now - turn.started <= self._ttl:
                    break
                self._interrupted.pop(thread_id, None)

    def _unreadable(self, event: str) -> None:
        self._counts["unreadable_event"] += 1
        if self._counts["unreadable_event"] == 1:
            _log.warning("an event could not be read and was left out (%s); said once", event, exc_info=True)
