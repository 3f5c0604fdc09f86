"""The open turns of one handler: from a root's start to its end, its interruption or its expiry.

Several threads are in here at once, without a lock: every step is a single operation on a dictionary or a
list. The one order that matters is that a turn is marked closed before its runs are dropped.
"""

from __future__ import annotations

import logging
import time
from asyncio import CancelledError
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from threading import get_ident
from typing import Any, Literal
from uuid import UUID

from langchain_core.runnables.config import var_child_runnable_config

from steelyard._internal.bounded import BoundedDict
from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard.record import Status
from steelyard.recording import TurnTarget, is_unrecorded
from steelyard.recording.provenance import json_strings
from steelyard.recording.reading import strings_in
from steelyard_langchain._build import LangChainDraft
from steelyard_langchain._loose import MOST_ASKED, Block, OrphanRuns, asked_last, current_block
from steelyard_langchain._options import Options
from steelyard_langchain._turn import Chain, Model, Retrieval, Turn, as_it_is, inner_turns
from steelyard_langchain._view import answer_message

INTERRUPTS = frozenset({"GraphInterrupt", "NodeInterrupt"})
"""Names of the exceptions by which LangGraph stops to wait for somebody."""
STOPS = (CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)
"""What ends a run without anything having gone wrong in it."""

_Cause = Literal[
    "expired", "too_many_open", "not_a_turn", "without_root", "unreadable_event", "span_of_another_run"
]
_log = SafeLogger("steelyard.langchain")
# So many broken streams may straggle at once.
_REMEMBERED = 256
_MOST_AROUND = 8
_TELLING = 8  # characters; a shorter text may stand anywhere
_STRAGGLING = 60.0  # callbacks of streams and of other threads come after the end of their turn
_CARRIED = 1_000  # graphs that wait for a person may wait for ever


class OpenTurns:
    """What is open, and what was dropped.

    Attributes:
        runs: The turn of every run that has not ended with its root, by the integer of its id.
    """

    def __init__(self, target: TurnTarget, options: Options) -> None:
        self.runs: dict[int, Turn] = {}
        self._submit = target.submit
        self._options = options
        self._nested = options.nested == "all"
        self._ttl = options.ttl
        self._max_open = options.max_open
        self._open: OrderedDict[int, Turn] = OrderedDict()
        # With a bound of its own: it is looked through for each run whose parent is unknown.
        self._closed: deque[tuple[float, Mapping[int, int]]] = deque(maxlen=_REMEMBERED)
        self._warn_once = WarnOnce(_log)
        self._loose = OrphanRuns(target)
        self._interrupted: BoundedDict[str, Turn] = BoundedDict(max_items=_CARRIED)
        self._counts: dict[str, int] = {
            "expired": 0,
            "too_many_open": 0,
            "not_a_turn": 0,
            "without_root": 0,
            "unreadable_event": 0,
            "span_of_another_run": 0,
        }

    def stats(self) -> dict[str, int]:
        """How many are open, and how many were dropped by reason; also drops what has expired."""
        self._forget(time.perf_counter(), room=0)
        return {"open": len(self._open), "runs": len(self.runs), **self._counts}

    def count(self, cause: _Cause) -> None:
        """Count a drop."""
        self._counts[cause] += 1

    def rate(self, run_id: UUID | str, value: Any) -> bool:
        """Attach feedback to a turn that is still open; returns whether there is one."""
        try:
            turn = self._open.get((run_id if isinstance(run_id, UUID) else UUID(run_id)).int)
        except ValueError:
            return False
        if turn is not None:
            turn.feedback = value
        return turn is not None

    def begin(self, run_id: UUID, inputs: Any, about: Mapping[str, Any]) -> None:
        """A root chain starts: a new turn, or part of the `record` block that it runs in."""
        if is_unrecorded():
            return
        block = current_block()
        if block is not None:
            block.adopt(self.runs, run_id, inputs)
            return
        if (around := self._around(run_id)) is not None:
            if around.chains is not None:
                around.chains[run_id.int] = Chain(run_id.int, about.get("name"), inputs)
            return
        metadata = about.get("metadata")
        turn = Turn(
            run_id,
            name=about.get("name"),
            inputs=as_it_is(inputs),
            tags=about.get("tags"),
            metadata=metadata,
        )
        self._loose.begin(turn)
        # A graph that is resumed is given a Command, or nothing, in place of an input.
        if metadata and not isinstance(inputs, (str, dict, list)) and self._interrupted:
            turn.before = self._interrupted.pop(str(metadata.get("thread_id")), None)
        self.runs[turn.key] = turn
        self.open(turn)

    def begin_below(self, run_id: UUID, parent_run_id: UUID, inputs: Any, about: Mapping[str, Any]) -> None:
        """A chain below a run never seen is our root (a handler bound to a part, a LangSmith trace outside).

        Unless that run belongs to a turn that has just been closed: a broken stream's runs go on for a while.
        """
        parent = parent_run_id.int
        if not any(parent in runs for _, runs in tuple(self._closed)):
            self.begin(run_id, inputs, about)

    def open(self, turn: Turn) -> None:
        """Keep a turn until it is closed or expires."""
        if self._nested:
            turn.chains = {}
        self._forget(turn.started)
        self._open[turn.key] = turn

    def join(self, run_id: UUID, parent_run_id: UUID | None, *, finds: bool = True) -> Turn | None:
        """The turn that a new run belongs to: a model, retriever or tool on its own begins a loose one.

        Args:
            run_id: The run.
            parent_run_id: The run that it is below.
            finds: Whether it may find what a later call uses.
        """
        if parent_run_id is None:
            return self._join_block(run_id, finds=finds)
        turn = self.runs.get(parent_run_id.int)
        if turn is None:
            return None
        key = run_id.int
        turn.parents[key] = parent_run_id.int
        self.runs[key] = turn
        if turn.configurable is None and (config := var_child_runnable_config.get()):
            turn.configurable = config.get("configurable") or {}
        # Closed by another thread since it was looked up: what was entered has to go again.
        if turn.closed:
            self.runs.pop(key, None)
            return None
        return turn

    def _around(self, run_id: UUID) -> Turn | None:
        """The open turn in which a run begins that was given this handler anew, so that it has no parent.

        Code in a step hands the handler on by itself, and so do chains with fallbacks.
        """
        config = var_child_runnable_config.get()
        parent = getattr(config.get("callbacks"), "parent_run_id", None) if config else None
        return None if parent is None else self.join(run_id, parent)

    def _join_block(self, run_id: UUID, *, finds: bool) -> Turn | None:
        if is_unrecorded():
            return None
        block = current_block()
        if block is not None:
            return block.adopt(self.runs, run_id)
        if (around := self._around(run_id)) is not None:
            return around
        turn = Turn(run_id)
        turn.loose, turn.thread = True, get_ident()
        self._loose.begin(turn, finds=finds, follows=not finds)
        self.runs[turn.key] = turn
        self.open(turn)
        return turn

    def end_loose(self, turn: Turn, outputs: Any = None) -> None:
        """A model, retriever or tool ends that no chain is around.

        A retriever's or a tool's result waits for what uses it. A model's reply is a turn if it used such a
        result, which is decided when the Record is built: comparing texts would take too long here.
        """
        turn.outputs = outputs
        self._close(turn, None)
        self._loose.precede(turn)
        own = turn.models.get(turn.key)
        if own is None:
            if turn.earlier is not None:
                turn.earlier.ready = True
            if turn.models:
                self._hand_over(turn)
        elif outputs is not None:
            turn.inputs = {"messages": _messages(own.prompt)}
            self._submit(LangChainDraft(turn, self._options, unused=self._outside))

    def end(self, turn: Turn, outputs: Any, error: BaseException | None, inputs: Any) -> None:
        """A root ends: close its turn, and hand it over if there is anything in it."""
        # In case nobody uses what it found.
        turn.outputs = as_it_is(outputs)
        if inputs is not None:
            turn.inputs = as_it_is(inputs)
        self._close(turn, error)
        self._loose.precede(turn)
        if turn.status == "interrupted" and turn.metadata:
            self._carry(turn, turn.metadata.get("thread_id"))
        if turn.earlier is not None:
            if turn.retrievals and error is None and not _answered(turn, outputs):
                turn.earlier.ready = True  # a chain that only searches: what it found may be used next
            else:
                turn.earlier.forget()
        # A chain without any of these formats texts; there is nothing to judge in it.
        if turn.models or turn.retrievals or turn.tools or turn.results or turn.before:
            self._hand_over(turn)
        else:
            self.count("not_a_turn")

    def close_block(self, block: Block, error: BaseException | None) -> None:
        """A `record` block ends. Its runs may stand in the tables of other handlers too."""
        turn = block.turn
        if turn.closed:
            return  # it has expired
        self._close(turn, error)
        for runs in block.maps:
            for key in list(turn.parents):
                runs.pop(key, None)
        self._hand_over(turn)

    def _outside(self) -> None:
        """A model call outside of any chain turned out to use nothing that was found before it."""
        self.count("without_root")
        self._warn_once("without_root", _WITHOUT_ROOT, level=logging.INFO)

    def drop_loose(self, turn: Turn) -> None:
        """A retriever or tool fails that no chain is around."""
        if turn.earlier is not None:
            turn.earlier.forget()
        self._drop(turn)

    def _close(self, turn: Turn, error: BaseException | None) -> None:
        turn.ended = time.perf_counter()
        turn.error = error
        if self._loose.strays:
            turn.strays = tuple(self._loose.strays)
        if len(self._open) > 1:
            turn.around = self._asked_around(turn)
        turn.status = _status(turn, error)
        turn.span.ask_again()
        if turn.span.end():
            self.count("span_of_another_run")
        self._drop(turn)
        # Of a turn that ended well nothing straggles.
        if turn.status != "ok":
            self._closed.append((turn.ended, turn.parents))

    def _asked_around(self, turn: Turn) -> list[Model]:
        """What runs that began before one, and are open still, asked models: one may have begun it."""
        with suppress(RuntimeError):  # another thread changes what is looked at
            latest = islice(reversed(self._open.values()), _MOST_AROUND)
            return [asked for one in latest if one.started < turn.started for asked in asked_last(one)]
        return []

    def _hand_over(self, turn: Turn) -> None:
        """Submit a turn, and every chain within it that may be a turn of its own."""
        self._submit(LangChainDraft(turn, self._options))
        if turn.chains:
            for chain in inner_turns(turn):
                self._submit(LangChainDraft(turn, self._options, chain=chain))

    def _carry(self, turn: Turn, thread_id: Any) -> None:
        """Keep an interrupted turn for the one that resumes its thread."""
        if thread_id is not None:
            self._interrupted[str(thread_id)] = turn

    def _drop(self, turn: Turn) -> None:
        """Let go of a turn. Marked first: a run that starts meanwhile sees the mark and lets go of itself."""
        turn.closed = True
        # A copy, for other threads may add runs meanwhile; those see the mark.
        for key in list(turn.parents):
            self.runs.pop(key, None)
        self.runs.pop(turn.key, None)
        self._open.pop(turn.key, None)

    def _forget(self, now: float, *, room: int = 1) -> None:
        """Drop what has been open for too long, oldest first."""
        # Another thread may change what is looked at; then the next turn looks again. By `try`, since
        # `suppress` costs a host more than the whole look.
        try:
            while self._open:
                # Turns stand in the order in which they began, so that the first is the oldest.
                turn = next(iter(self._open.values()))
                full = len(self._open) + room > self._max_open
                if not full and now - turn.started <= self._ttl:
                    break
                self._drop(turn)
                # What is still open may be a stream that nobody reads any more.
                self.count("too_many_open" if full else "expired")
            while self._closed and now - self._closed[0][0] > min(self._ttl, _STRAGGLING):
                self._closed.popleft()
            while self._interrupted:
                thread_id, turn = next(iter(self._interrupted.items()))
                if now - turn.started <= self._ttl:
                    break
                self._interrupted.pop(thread_id, None)
        except (RuntimeError, IndexError, StopIteration):
            pass


_WITHOUT_ROOT = (
    "a model ran outside of any chain, and its prompt holds nothing that was retrieved before it in the same "
    "task or thread; it is not recorded; put such calls into a block: with record(...)"
)


def _messages(prompt: Any) -> list[Any]:
    """A model run's prompt as one list: its only batch of messages, or its texts."""
    batches = list(prompt or ())
    return list(batches[0]) if batches and isinstance(batches[0], (list, tuple)) else batches


def _answered(turn: Turn, outputs: Any) -> bool:
    """Whether what a run returned is, or holds, what one of its last models said, on the surface.

    After the one that answered others may check the answer, or name it.
    """
    model = turn.last_model
    if model is None or isinstance(outputs, list):
        return False
    if outputs is None:
        return True  # a stream whose end nobody read: what was found for it is nobody else's
    if answer_message(model.reply) is None:
        return True
    last, runs = [*turn.models.values()][-MOST_ASKED:], [*turn.retrievals.values()]
    return any(_is_said(one, outputs, runs, one is model) for one in last)


def _is_said(model: Model, outputs: Any, searches: Sequence[Retrieval], is_last: bool) -> bool:
    said = answer_message(model.reply)
    text = getattr(said, "content", said)
    is_query = any(run.query == text and run.started > model.started for run in searches)
    if is_query or (not is_last and len(str(text)) < _TELLING):
        return False
    return _is_held(text if isinstance(text, str) else "", outputs) or _is_part(said, text, outputs)


def _is_held(text: str, outputs: Any) -> bool:
    """Whether a reply stands in one of the values that a run returned."""
    values = outputs.values() if isinstance(outputs, dict) else (outputs,)
    lasts = (value[-1] if isinstance(value, list) and value else value for value in values)
    contents = (getattr(last, "content", last) for last in lasts)
    return bool(text) and any(isinstance(content, str) and text in content for content in contents)


def _is_part(said: Any, text: Any, outputs: Any) -> bool:
    """Whether what a run returned is in a reply: of a form, or of JSON that was read."""
    parts = list(json_strings(text)) if isinstance(text, str) else []
    parts += (part for _, part in strings_in(getattr(said, "tool_calls", None)))
    told = (one for _, one in strings_in(outputs) if len(one) >= _TELLING)
    return any(one in part for one in told for part in parts)


def _status(turn: Turn, error: BaseException | None) -> Status:
    if error is not None:
        if isinstance(error, GeneratorExit):
            return "truncated"
        if isinstance(error, STOPS):
            return "cancelled"
        return "interrupted" if type(error).__name__ in INTERRUPTS else "error"
    if turn.interrupted:
        return "interrupted"
    # A model that is still at it when the root ends was left: somebody broke off the stream.
    return "truncated" if turn.last_model is not None and turn.last_model.ended is None else "ok"
