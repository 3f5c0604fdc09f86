"""Reading files of OpenTelemetry traces, for the commands that look at them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from steelyard.cli._input import open_input

if TYPE_CHECKING:
    from steelyard_opentelemetry import Diagnosis, Reading, Span

__all__ = ["TracesRead", "read_files"]


@dataclass(frozen=True, kw_only=True)
class TracesRead:
    """What some files hold."""

    reading: Reading
    """The records, and why the rest gave none."""
    where: dict[str, str]
    """The file in which each trace was first seen."""
    without: dict[str, list[Diagnosis]]
    """Why, for each trace that gave no record."""
    problems: list[str] = field(default_factory=list)
    """Lines that could not be read."""
    repeated: int = 0
    """Spans that came more than once."""

    @property
    def traces(self) -> int:
        """How many traces there are."""
        return len(self.where)


def read_files(paths: list[str]) -> TracesRead:
    """Read files of OTLP/JSON together.

    Raises:
        ConfigurationError: If a file cannot be read.
    """
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
        for span in found.spans:
            where.setdefault(span.trace_id, path)
    reading = read_spans(spans)
    return TracesRead(
        reading=reading,
        where=where,
        without=_without(reading, where),
        problems=problems,
        repeated=repeated,
    )


def _without(reading: Reading, where: dict[str, str]) -> dict[str, list[Diagnosis]]:
    """The diagnoses of each trace that is part of no record."""
    part = {trace for record in reading.records for trace in record.metadata.get("traces", ())}
    part |= {record.trace_id for record in reading.records}
    told: dict[str, list[Diagnosis]] = {}
    for diagnosis in reading.diagnoses:
        for trace_id in (diagnosis.trace_id, *diagnosis.also):
            told.setdefault(trace_id, []).append(diagnosis)
    return {trace: told.get(trace, []) for trace in where if trace not in part}
