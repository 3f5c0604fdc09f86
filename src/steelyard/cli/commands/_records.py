"""`steelyard records`: the RAG turns in files of OpenTelemetry traces, for `steelyard score` to read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import typer
from typer import Argument

from steelyard._internal.text import counted
from steelyard.cli._options import open_input
from steelyard.cli._say import say
from steelyard.record import record_to_json

if TYPE_CHECKING:
    from steelyard_opentelemetry import Diagnosis, Extraction, Span


def records(
    files: list[str] = Argument(
        ...,
        metavar="FILE.jsonl...",
        help="OTLP/JSON, traces of Jaeger or Tempo, or spans as SDKs print them; `-` for standard input.",
    ),
) -> None:
    """Print one JSON record for every RAG turn in OpenTelemetry traces.

    The files are what a Collector's file exporter or a `ConsoleSpanExporter` writes. They are read together,
    so that a trace may continue in the next one. What gives no record is counted on standard error;
    `steelyard doctor` says why.

    **Examples**

    - `steelyard records spans.jsonl > turns.jsonl`
    - `steelyard records spans.jsonl | steelyard score -`
    """
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


@dataclass(frozen=True, kw_only=True)
class TracesRead:
    """What some files hold."""

    reading: Extraction
    """The records, and why the rest gave none."""
    where: dict[str, str]
    """The file in which each trace was first seen."""
    why: dict[str, list[Diagnosis]]
    """What there is to say about each trace, one that gave records or not."""
    without: frozenset[str]
    """The traces that are part of no record."""
    problems: list[str] = field(default_factory=list)
    repeated: int = 0
    """Spans that came more than once."""

    @property
    def traces(self) -> int:
        return len(self.where)


def read_files(paths: list[str]) -> TracesRead:
    """Read files of traces together."""
    from steelyard_opentelemetry import read_otlp, read_spans

    spans: list[Span] = []
    where: dict[str, str] = {}
    problems: list[str] = []
    repeated = 0
    for path in paths:
        with open_input(path) as lines:
            found = read_otlp(lines)
        spans.extend(found.spans)
        repeated += found.repeated
        problems.extend(f"{path}: {problem}" for problem in found.problems)
        if not found.spans and not found.problems:
            forms = "OTLP/JSON, traces of Jaeger or Tempo, or spans as an SDK or exporter prints them"
            problems.append(f"{path}: no spans in it; it should hold {forms}")
        for span in found.spans:
            where.setdefault(span.trace_id, path)
    reading = read_spans(spans)
    told = {trace for one in reading.records for trace in (one.trace_id, *one.metadata.get("traces", ()))}
    why: dict[str, list[Diagnosis]] = {}
    for diagnosis in reading.diagnoses:
        for trace_id in (diagnosis.trace_id, *diagnosis.also):
            why.setdefault(trace_id, []).append(diagnosis)
    without = frozenset(where) - told
    return TracesRead(
        reading=reading, where=where, why=why, without=without, problems=problems, repeated=repeated
    )
