"""`steelyard doctor`: whether the set-up works, what is taken for what, and why traces give no record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from steelyard._internal.text import printable
from steelyard.cli._say import counted, say
from steelyard.errors import ConfigurationError

if TYPE_CHECKING:
    from steelyard.cli._files import TracesRead

_HARMLESS = frozenset({"no_retrieval", "no_llm_spans", "orphan"})
"""What need not be said of a trace that gave a record."""


SETTINGS = {"allow_interspersed_args": False}
"""What comes after the name of a program is the program's own."""
_TURNS = 5


def doctor(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE.jsonl... | PROGRAM ARGS...",
            help="OTLP/JSON, one export a line, `-` for standard input; with `--live` a program.",
        ),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Watch a program; without one, look at this environment.")
    ] = False,
    port: Annotated[
        int | None,
        typer.Option("--otlp", metavar="PORT", min=0, max=65535, help="Watch spans sent to this port."),
    ] = None,
    turns: Annotated[
        int | None,
        typer.Option("--turns", "-n", min=1, metavar="N", help="How many turns to show: 5, of files none."),
    ] = None,
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
    if sum([bool(words) and not live, live, port is not None]) > 1:
        raise ConfigurationError(
            "give either files of traces, --live or --otlp PORT; or none, for the set-up"
        )
    if port is not None:
        from steelyard.cli._live import look_at_spans

        raise typer.Exit(look_at_spans(port, turns=turns or _TURNS))
    if words and live:
        from steelyard.cli._live import look_at_program

        raise typer.Exit(look_at_program(words, turns=turns or _TURNS))
    if words:
        _look_at_files(words, turns or 0)
    elif live:
        _look_around()
    else:
        _check_setup()


def _check_setup() -> None:
    from steelyard.cli._checkup import look_at_setup

    marks = set()
    for finding in look_at_setup():
        marks.add(finding.mark)
        say(f"{finding.mark:<4}  {printable(finding.what)}")
    raise typer.Exit(1 if "fix" in marks else 0)


def _look_at_files(files: list[str], turns: int) -> None:
    from steelyard.cli._files import read_files
    from steelyard.cli._live import lines_of

    read = read_files(files)
    shown = ""
    for trace_id, path in read.where.items():
        if len(files) > 1 and path != shown:
            say(printable(f"{path}:"))
            shown = path
        for line in _lines(read, trace_id):
            say(printable(line, lines=True))
    for problem in read.problems:
        say(printable(problem))
    if read.repeated:
        say(f"{counted(read.repeated, 'span')} came more than once; the first of each counts")
    if read.reading.duplicates:
        say(f"told twice, by two instrumentors, and counted once: {counted(read.reading.duplicates, 'turn')}")
    for number, record in enumerate(read.reading.records[:turns], 1):
        for line in lines_of(record, number):
            say(printable(line, lines=True))
    records = counted(len(read.reading.records), "record")
    say(f"{records} in {counted(read.traces, 'trace')}; {counted(len(read.without), 'trace')} gave none")
    if read.problems:
        raise typer.Exit(1)


def _lines(read: TracesRead, trace_id: str) -> list[str]:
    """What there is to say about one trace."""
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
