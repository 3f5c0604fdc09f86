"""Opening files of records, for the commands that read them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

from steelyard.errors import ConfigurationError

if TYPE_CHECKING:
    from steelyard_opentelemetry import Diagnosis, Extraction, Span


@contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    """Open a file of records; `-` is standard input."""
    if path == "-":
        yield sys.stdin.buffer
        return
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below; only opening it may be the user's mistake
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {path!r}: {os.strerror(error.errno or 0)}; check its name and rights"
        ) from None
    with file:
        yield file


def count_lines(path: str) -> int | None:
    """How many lines a regular file has, for a progress bar; None for a pipe."""
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


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
    """Lines that could not be read, and files without a span."""
    repeated: int = 0
    """Spans that came more than once."""

    @property
    def traces(self) -> int:
        """How many traces there are."""
        return len(self.where)


def read_files(paths: list[str]) -> TracesRead:
    """Read files of OTLP/JSON together."""
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
            problems.append(f"{path}: no spans in it; traces are read as OTLP/JSON, one export a line")
        for span in found.spans:
            where.setdefault(span.trace_id, path)
    reading = read_spans(spans)
    return TracesRead(
        reading=reading,
        where=where,
        why=_why(reading),
        without=frozenset(where) - _part(reading),
        problems=problems,
        repeated=repeated,
    )


def _part(reading: Extraction) -> set[str | None]:
    """The traces that are part of a record."""
    found = {trace for record in reading.records for trace in record.metadata.get("traces", ())}
    return found | {record.trace_id for record in reading.records}


def _why(reading: Extraction) -> dict[str, list[Diagnosis]]:
    told: dict[str, list[Diagnosis]] = {}
    for diagnosis in reading.diagnoses:
        for trace_id in (diagnosis.trace_id, *diagnosis.also):
            told.setdefault(trace_id, []).append(diagnosis)
    return told
