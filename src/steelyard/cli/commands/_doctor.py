"""`steelyard doctor`: whether the set-up works, what is taken for what, and why traces give no record."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer import Argument, Option

from steelyard._internal.text import counted, printable, redacted, shorten
from steelyard.cli._say import say
from steelyard.errors import ConfigurationError
from steelyard.online import Monitor
from steelyard.record import Record
from steelyard.recording import Draft, attach_recorders
from steelyard.recording.explaining import Part, explain

if TYPE_CHECKING:
    from steelyard.cli.commands._records import TracesRead
    from steelyard.cli.commands._run import Program
    from steelyard.collect import CollectorCounts, ReadExport, Signal, SpanReader

_HARMLESS = frozenset({"no_retrieval", "no_llm_spans", "orphan"})
"""What need not be said of a trace that gave a record."""


_TURNS = 5


def doctor(
    words: list[str] | None = Argument(
        None,
        metavar="FILE.jsonl... | PROGRAM ARGS...",
        help="OTLP/JSON, or spans as SDKs print them; `-` for standard input; with `--live` a program.",
    ),
    live: bool = Option(False, "--live", help="Watch a program; without one, look at this environment."),
    port: int | None = Option(
        None, "--otlp", metavar="PORT", min=0, max=65535, help="Watch spans sent to this port."
    ),
    turns: int | None = Option(
        None, "--turns", "-n", min=1, metavar="N", help="How many turns to show: 5, of files none."
    ),
) -> None:
    """Check the set-up; or look at a program, at spans or at files of traces.

    Without options, it checks what a score needs, in this order: packages, settings, the judge (which scores
    a made-up turn: with a remote judge that is a few requests), the sinks, other tracers, and whether a turn
    has arrived. Exit status 0 if all is well, 1 if something is to be mended; each line says how.

    With `--live` and a program, with `--otlp`, or with `--turns` of files, it prints the texts of each turn,
    which step they came from, how they are known, what is doubtful, and the one option that settles it. With
    files, one line for each trace says why it gives no record. With `--live` alone, one line for each
    instrumentor that is installed and each environment variable that keeps content out of the spans. For all
    of this no judge is asked, nothing is stored, and nothing leaves the machine.

    **Examples**

    - `steelyard doctor`
    - `steelyard doctor --live -- python app.py --port 8000`
    - `steelyard doctor --live -- -m my_package.server`
    - `steelyard doctor --otlp 4318`, and point the application's exporter there
    - `steelyard doctor --turns 5 traces.jsonl`
    """
    _check_choice(words or [], live=live, port=port)
    if port is not None:
        raise typer.Exit(_look_at_spans(port, turns=turns or _TURNS))
    if words and live:
        raise typer.Exit(_look_at_program(words, turns=turns or _TURNS))
    if words:
        _look_at_files(words, turns or 0)
    elif live:
        _look_around()
    else:
        _check_setup()


def _check_choice(words: list[str], *, live: bool, port: int | None) -> None:
    if sum([bool(words) and not live, live, port is not None]) > 1:
        raise ConfigurationError(
            "give either files of traces, --live or --otlp PORT; or none, for the set-up"
        )
    # What follows a program is the program's, so that options have to come first.
    late = next((word for word in words if word[:1] == "-" != word), None)
    if late is not None and not live:
        raise ConfigurationError(f"put {late!r} before the files: `steelyard doctor --turns 5 traces.jsonl`")


def _check_setup() -> None:
    from steelyard.cli._checkup import look_at_setup

    marks = set()
    for finding in look_at_setup():
        marks.add(finding.mark)
        # Settings may hold what they should not, and somebody sends this to a forum.
        say(f"{finding.mark:<4}  {printable(redacted(finding.what))}")
    raise typer.Exit(1 if "fix" in marks else 0)


def _look_at_files(files: list[str], turns: int) -> None:
    from steelyard.cli.commands._records import read_files

    read = read_files(files)
    shown = ""
    for trace_id, path in read.where.items():
        if len(files) > 1 and path != shown:
            say(printable(f"{path}:"))
            shown = path
        for line in _why(read, trace_id):
            say(printable(line, lines=True))
    for problem in read.problems:
        say(printable(problem))
    if read.repeated:
        say(f"{counted(read.repeated, 'span')} came more than once; the first of each counts")
    if read.reading.duplicates:
        say(f"told twice, by two instrumentors, and counted once: {counted(read.reading.duplicates, 'turn')}")
    for number, record in enumerate(read.reading.records[:turns], 1):
        for line in _lines_of(record, number):
            say(printable(line, lines=True))
    records = counted(len(read.reading.records), "record")
    say(f"{records} in {counted(read.traces, 'trace')}; {counted(len(read.without), 'trace')} gave none")
    if read.problems:
        raise typer.Exit(1)


def _why(read: TracesRead, trace_id: str) -> list[str]:
    found = [record for record in read.reading.records if record.trace_id == trace_id]
    told = read.why.get(trace_id, [])
    if trace_id not in read.without:
        told = [diagnosis for diagnosis in told if diagnosis.cause not in _HARMLESS]
    lines = [
        str(item) if item.trace_id == trace_id else f"{trace_id}  see {item.trace_id}, the same turn"
        for item in told
    ]
    if found:
        cut = [f"{trace_id}  but {note}" for record in found if record.truncated for note in record.notes]
        return [f"{trace_id}  ok: {counted(len(found), 'record')}", *cut, *dict.fromkeys(lines)]
    if trace_id not in read.without:
        return [f"{trace_id}  ok: part of a record whose answer is in another trace"]
    return list(dict.fromkeys(lines)) or [f"{trace_id}  duplicate: another instrumentor tells the same turn"]


def _look_around() -> None:
    from steelyard_opentelemetry import check_environment

    for check in check_environment():
        say(f"{'ok ' if check.ok else 'fix'}  {check.what}")


_WIDTH = 100
_PASSAGES = 12


def _lines_of(record: Record, number: int) -> Iterator[str]:
    found = explain(record)
    trace = record.trace
    of = [trace.framework or "" if trace else "", trace.trace_id or "" if trace else "", record.status]
    yield f"turn {number}  {shorten('  '.join(filter(None, of)), _WIDTH)}"
    yield _line("question", found.question)
    for at, part in enumerate(found.passages[:_PASSAGES], 1):
        yield _line(f"passage {at}", part)
    if not found.passages:
        yield "  passages    none"
    elif len(found.passages) > _PASSAGES:
        yield f"  and {len(found.passages) - _PASSAGES} more passages"
    yield _line("answer", found.answer)
    for doubt in found.doubts:
        yield f"  note        {shorten(doubt.note, 400)}"
        if doubt.option:
            yield f"  settled by  {doubt.option}"


def _line(name: str, part: Part) -> str:
    if not part.text:
        return f"  {name:<11} not found"
    return f"  {name:<11} {shorten(part.how, 160)}\n              {shorten(part.text, _WIDTH)}"


class _Looker:
    """A target that only prints turns; after `turns` of them it shows no more, and sets `done`."""

    def __init__(self, turns: int) -> None:
        self._most = turns
        self._kinds: Counter[str] = Counter()
        self._others = 0
        # An application ends turns in several threads, and each is a page in one piece.
        self._lock = threading.Lock()
        self.done = threading.Event()
        """Whether enough turns were shown."""

    def submit(self, turn: Record | Draft) -> None:
        """Print a turn; never raises."""
        # The application may have closed what is printed to.
        with self._lock, contextlib.suppress(OSError, ValueError):
            if self.done.is_set():
                return
            # A Draft never raises; a Monitor of the application would leave a turn of None out as well.
            record = turn if isinstance(turn, Record) else turn.build()
            if record is None:
                self._others += 1
                return
            self._kinds[record.evidence or "none"] += 1
            if self._kinds.total() >= self._most:
                self.done.set()
            for line in _lines_of(record, self._kinds.total()):
                say(printable(line, lines=True))

    def close(self) -> int:
        """Print what the turns come to; returns how many were shown."""
        with self._lock:
            shown = self._kinds.total()
            kinds = ", ".join(f"{kind} {count}" for kind, count in self._kinds.most_common())
            say(f"{counted(shown, 'turn')} shown{f'; passages: {kinds}' if kinds else ''}")
            if self._others:
                say(f"{counted(self._others, 'run')} answered nothing from passages, and gave no record")
            return shown


_PYTHON = re.compile(r"python[\d.]{0,8}")


def _look_at_program(words: Sequence[str], *, turns: int) -> int:
    """Run a program in this process and print what each of its first turns was taken to be."""
    program = _program(words)
    looker = _Looker(turns)
    # An application that attaches recorders itself is seen with its own options, and none of its turns is
    # judged or stored meanwhile.
    Monitor.submit = lambda self, turn: looker.submit(turn)  # type: ignore[method-assign]
    names = attach_recorders(looker)
    if not names:
        raise ConfigurationError(
            "there is nothing to record with; run: pip install 'steelyard[langchain]' (or [llamaindex])"
        )
    say(f"watching {', '.join(names)}; nothing is judged, stored or sent", err=True)
    shown = 0
    try:
        program.become()
    finally:
        shown = looker.close()
        if not shown:
            say("no RAG turn was seen in this process; turns of other processes are not")
    return 0 if shown else 1


def _program(words: Sequence[str]) -> Program:
    from steelyard.cli.commands._run import Program

    rest = list(words)
    if _PYTHON.fullmatch(Path(rest[0]).name):
        rest = rest[1:]
    is_module = rest[:1] == ["-m"]
    rest = rest[1:] if is_module else rest
    if not rest:
        raise ConfigurationError("name a program: steelyard doctor --live -- app.py")
    if not is_module and Path(rest[0]).suffix in (".json", ".jsonl"):
        raise ConfigurationError(f"{rest[0]!r} is not a program; to read traces leave out --live")
    program = Program(name=rest[0], arguments=rest[1:], is_module=is_module)
    program.find()
    return program


_TICK = 0.1
_QUIET = 2.0
"""Seconds without a new span after which a trace is complete; exporters send every five by default."""
_MOST_SPANS = 200_000
_EXPECTED = frozenset({"spans", "log_records", "turns"})


def _look_at_spans(port: int, *, turns: int) -> int:
    """Receive OTLP on this machine until so many turns were shown, or Ctrl-C; returns the exit status."""
    from steelyard.cli.commands._serve import check_uvicorn, obey_once, serve_until_stopped
    from steelyard.collect import app
    from steelyard_opentelemetry.received import ReceivedSpans

    check_uvicorn("collect")
    reader = ReceivedSpans(quiet=_QUIET)
    reader.check()
    looker = _Looker(turns)
    seen = _SpansSeen(reader, looker)

    def ready(address: str) -> None:
        obey_once()
        say(f"watching spans sent to {address}v1/traces (Ctrl-C ends it)", err=True)

    served = app(seen)
    serve_until_stopped(served, host="127.0.0.1", port=port, ready=ready, lifespan=False, done=looker.done)
    seen.show_complete()
    shown = looker.close()
    for name, count in reader.counts.items():
        if name not in _EXPECTED:
            say(f"{count:>6} {name}")
    return 0 if shown else 1


class _SpansSeen:
    """Takes spans in place of a Collector: they are put together and shown, and never written down."""

    def __init__(self, reader: SpanReader[Any], looker: _Looker) -> None:
        self.reader = reader
        self._looker = looker
        self._requests = self._spans = 0
        self._showing: asyncio.Task[None] | None = None

    async def store(self, export: ReadExport, *, signal: Signal = "traces") -> None:
        """Take the spans, or the log records, of a request."""
        from steelyard.collect import JournalFull

        if self.reader.spans > _MOST_SPANS:
            raise JournalFull("there is no room")
        self._showing = self._showing or asyncio.create_task(self._show())
        self._requests += 1
        self._spans += export.spans
        for piece in export.pieces.values():
            # One odd piece must not cost the others; what cannot be read gives no record.
            with contextlib.suppress(Exception):
                self.reader.take(piece, time.monotonic())

    def refuse(self, cause: str) -> None:
        """Whoever sent it is told."""

    @property
    def counts(self) -> CollectorCounts:
        """What has become of everything so far."""
        from steelyard.collect import CollectorCounts

        found = dict(self.reader.counts)
        return CollectorCounts(requests=self._requests, spans=self._spans, refused_spans=0, assembled=found)

    async def _show(self) -> None:
        while True:
            self.show_complete()
            await asyncio.sleep(_TICK)

    def show_complete(self) -> None:
        """Print the turns of which nothing is missing."""
        for record in self.reader.ready(time.monotonic()):
            self._looker.submit(record)
