"""`steelyard records`: the RAG turns in files of OpenTelemetry traces, for `steelyard score` to read."""

from __future__ import annotations

from typing import Annotated

import typer

from steelyard.cli._say import counted, say


def records(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE.jsonl...", help="OTLP/JSON, one export a line; `-` for standard input."),
    ],
) -> None:
    """Print one JSON record for every RAG turn in OpenTelemetry traces.

    The files are what a Collector's file exporter writes. They are read together, so that a trace may
    continue in the next one. What gives no record is counted on standard error; `steelyard doctor` says why.

    **Examples**

    - `steelyard records spans.jsonl > turns.jsonl`
    - `steelyard records spans.jsonl | steelyard score -`
    """
    from steelyard.cli._files import read_files
    from steelyard.record import record_to_json

    read = read_files(files)
    for record in read.reading.records:
        say(record_to_json(record))
    count = len(read.reading.records)
    say(f"{counted(count, 'record')} in {counted(read.traces, 'trace')}", err=True)
    if read.without:
        say(f"{counted(len(read.without), 'trace')} gave none; `steelyard doctor` says why", err=True)
    if read.problems:
        for problem in read.problems:
            say(problem, err=True)
        raise typer.Exit(1)
