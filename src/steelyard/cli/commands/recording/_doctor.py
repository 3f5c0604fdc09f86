"""`steelyard doctor`: why traces give no record, and which switch to turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from steelyard._internal.text import printable
from steelyard.cli._words import counted
from steelyard.errors import ConfigurationError

if TYPE_CHECKING:
    from steelyard.cli._traces import TracesRead

_HARMLESS = frozenset({"no_retrieval", "no_llm_spans", "orphan"})
"""What need not be said of a trace that gave a record."""


def doctor(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE.jsonl...", help="OTLP/JSON, one export a line; `-` for standard input."),
    ] = None,
    live: Annotated[
        bool,
        typer.Option("--live", help="Look at this environment instead: instrumentors and their switches."),
    ] = False,
) -> None:
    """Say for every trace that gives no record why not, and what to do about it.

    With files, one line a trace. With `--live`, one line for each instrumentor that is installed and for each
    environment variable that keeps questions, documents or answers out of the spans.
    """
    if bool(files) == live:
        raise ConfigurationError("give either files of traces or --live")
    if files:
        _look_at_files(files)
    else:
        _look_around()


def _look_at_files(files: list[str]) -> None:
    from steelyard.cli._traces import read_files

    read = read_files(files)
    shown = ""
    for trace_id, path in read.where.items():
        if len(files) > 1 and path != shown:
            typer.echo(printable(f"{path}:"))
            shown = path
        for line in _lines(read, trace_id):
            typer.echo(printable(line, lines=True))
    for problem in read.problems:
        typer.echo(printable(problem))
    if read.repeated:
        typer.echo(f"{counted(read.repeated, 'span')} came more than once; the first of each counts")
    if read.reading.duplicates:
        typer.echo(
            f"told twice, by two instrumentors, and counted once: {counted(read.reading.duplicates, 'turn')}"
        )
    records = counted(len(read.reading.records), "record")
    typer.echo(
        f"{records} in {counted(read.traces, 'trace')}; {counted(len(read.without), 'trace')} gave none"
    )
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
        typer.echo(f"{'ok ' if check.ok else 'fix'}  {check.what}")
