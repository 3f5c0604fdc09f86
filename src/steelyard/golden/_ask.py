"""Putting the cases to the application: several at a time, each within its time, recorded."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from steelyard._internal.text import redacted
from steelyard._internal.threads import DaemonExecutor, LoopThread, ThreadHangs
from steelyard.golden._app import App, AppReply, OddReply, read_reply
from steelyard.golden._results import Asked
from steelyard.golden._set import Case
from steelyard.record import Record
from steelyard.recording import Draft, attach_recorders, detach_recorders

_asking: ContextVar[str | None] = ContextVar("steelyard_golden_case", default=None)


class Capture:
    """A target for recorders that keeps turns by case.

    Which case a turn belongs to is told by a context variable that is set while the case is put to the
    application, and that threads and tasks of the frameworks inherit; never by the text of the question.
    """

    def __init__(self) -> None:
        self._turns: dict[str, list[Record | Draft]] = {}

    def submit(self, turn: Record | Draft, /) -> None:
        """Keep a turn; one that belongs to no case is passed over."""
        if (key := _asking.get()) is not None:
            self._turns.setdefault(key, []).append(turn)

    @contextmanager
    def case(self, key: str) -> Iterator[None]:
        """What is recorded in the block belongs to this case."""
        token = _asking.set(key)
        try:
            yield
        finally:
            _asking.reset(token)

    def take(self, key: str) -> list[Record]:
        """The Records of a case, in the order in which its turns ended; they are forgotten here."""
        built = [turn if isinstance(turn, Record) else turn.build() for turn in self._turns.pop(key, ())]
        return [record for record in built if record is not None]


_LONGEST_PROBLEM = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedTurn:
    """One case, asked once."""

    case: Case
    record: Record
    """The turn; its answer is empty where there was none."""
    asked: Asked
    problem: str = field(default="", repr=False)
    seconds: float = 0.0


class AppRunner:
    """Puts cases to an application. Use `AppRunner.open`, which attaches the recorders meanwhile."""

    def __init__(self, app: App, *, concurrency: int, seconds: float) -> None:
        workers = 1 if app.alone else concurrency
        self._app = app
        self._timeout = seconds
        self._capture = Capture()
        self._slots = asyncio.Semaphore(workers)
        # A call that hangs keeps its thread for ever; spare ones take over, and none keeps the process alive.
        self._threads = DaemonExecutor(workers, name="steelyard-app", spares=64)
        self._stop = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: LoopThread | None = None

    @classmethod
    @asynccontextmanager
    async def open(cls, app: App, *, concurrency: int, seconds: float) -> AsyncIterator[AppRunner]:
        """An AppRunner whose turns are recorded by every recorder that is installed."""
        runner = cls(app, concurrency=concurrency, seconds=seconds)
        attach_recorders(runner._capture)
        try:
            if app.is_async:
                await runner._start_loop()
            yield runner
        finally:
            detach_recorders()
            runner._threads.shutdown(wait=False)
            if runner._thread is not None:
                runner._thread.stop()

    async def ask(self, case: Case) -> AskedTurn:
        """Put one case to the application; whatever it does, there is an AskedTurn."""
        async with self._slots:
            started = time.monotonic()
            asked: Asked = "answered"
            reply, problem = None, ""
            try:
                async with asyncio.timeout(self._timeout):
                    reply = await self._called(case)
            except TimeoutError:
                asked, problem = "timeout", f"no answer within {self._timeout:g} s"
            except ThreadHangs:
                asked, problem = "timeout", "not asked: too many earlier calls of the application still hang"
            except OddReply as error:
                asked, problem = "odd_reply", str(error)
            except Exception as error:  # noqa: BLE001 - an application may raise anything
                raised = error.__cause__ if type(error).__name__ == "ExitInThread" else error
                problem = redacted(f"{type(raised).__name__}: {raised}")[:_LONGEST_PROBLEM]
                asked = "error"
            seconds = time.monotonic() - started
        record = self._record(case, reply)
        return AskedTurn(case=case, record=record, asked=asked, problem=problem, seconds=seconds)

    async def _called(self, case: Case) -> AppReply:
        with self._capture.case(case.id):
            if self._loop is None:
                found = await self._threads.run(self._app.call, case)
                if inspect.isawaitable(found):
                    raise OddReply("the application returned a coroutine from a function that is not async")
            else:
                work = asyncio.run_coroutine_threadsafe(self._app.call(case), self._loop)
                found = await asyncio.wrap_future(work)
        return read_reply(found)

    def _record(self, case: Case, reply: AppReply | None) -> Record:
        turns = self._capture.take(case.id)
        if reply is None:
            return case.record(answer="", contexts=())
        seen = _chosen(turns, reply)
        notes = () if seen is None else seen.notes
        if case.history and not self._app.takes_history:
            notes = (*notes, "the application takes no history: the question was asked alone")
        if seen is None or not seen.contexts:
            if not reply.contexts:
                notes = (*notes, "no retrieval was recorded, and the reply holds no contexts")
            base = case.record(answer=reply.answer, contexts=reply.contexts)
        else:
            base = case.record(answer=reply.answer, contexts=seen.contexts).replace(
                contexts_source=seen.contexts_source, retrieved=seen.retrieved, stages=seen.stages
            )
        standalone = seen.standalone_question if seen is not None else None
        if case.history and not standalone:
            # With what was said before it, for a judge that sees only the question.
            told = [f"{message.role}: {message.text}" for message in case.history]
            standalone = "\n".join([*told, f"user: {case.question}"])
        return base.replace(notes=notes, standalone_question=standalone)

    async def _start_loop(self) -> None:
        """A loop of its own for coroutines: one that blocks must not hold up the clock that ends it."""
        ready: asyncio.Future[asyncio.AbstractEventLoop] = asyncio.get_running_loop().create_future()
        outer = asyncio.get_running_loop()

        async def main() -> None:
            outer.call_soon_threadsafe(ready.set_result, asyncio.get_running_loop())
            await asyncio.Event().wait()

        self._thread = LoopThread(main, name="steelyard-app")
        self._thread.start()
        self._loop = await ready


def _chosen(turns: Sequence[Record], reply: AppReply) -> Record | None:
    """The recorded turn that made the answer: by its text, else the last one that retrieved."""
    same = [turn for turn in turns if turn.answer.strip() == reply.answer.strip() and turn.contexts]
    found = same or [turn for turn in turns if turn.contexts] or list(turns)
    return found[-1] if found else None
