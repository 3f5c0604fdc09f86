"""Where stored turns are found: each file, folder or address by what it holds; tables are read by DuckDB."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from steelyard.backfill._exports import (
    PhoenixServer,
    TraceReader,
    Tracing,
    is_jaeger_reply,
    is_observation,
    is_printed_span,
    is_run,
    line_of_span,
    span_of_observation,
    span_of_run,
)
from steelyard.backfill._rows import Bad, Columns, Unread, json_lines, record_of, seeming
from steelyard.errors import ConfigurationError, InvalidRecord, MissingDependency
from steelyard.record import Record
from steelyard.results import connect_readonly

_FIELDS = ("id", "status", "trace_id", "tag")


@dataclass(frozen=True, kw_only=True)
class StoredTurnFilter:
    """A period, and conditions on what stands with a turn."""

    since: float | None = None
    """Unix time; only turns that started then or later."""
    until: float | None = None
    """Unix time; only turns that started before."""
    where: Sequence[tuple[str, str]] = ()
    """Pairs of a field (`tag`, `status`, `id`, `trace_id`, or a name in the metadata) and a value."""

    @staticmethod
    def parse(conditions: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Conditions as they are typed: `tag=prod`."""
        pairs = [condition.partition("=") for condition in conditions]
        for name, equals, _ in pairs:
            if not (name.strip() and equals):
                raise ConfigurationError(f"--where wants FIELD=VALUE, not {name!r}")
        return tuple((name.strip(), value.strip()) for name, _, value in pairs)

    def leaves_out(self, record: Record) -> str | None:
        """Why a turn is not meant; None for one that is."""
        if self.since is not None or self.until is not None:
            started = record.timings.started_at if record.timings else None
            if started is None:
                return "no_time"
            if (self.since is not None and started < self.since) or (
                self.until is not None and started >= self.until
            ):
                return "other_time"
        return None if all(_holds(record, name, value) for name, value in self.where) else "other_value"


def _holds(record: Record, name: str, value: str) -> bool:
    if name == "tag":
        return value in record.tags
    if name in _FIELDS:
        return str(getattr(record, name)) == value
    return str(record.metadata.get(name)) == value


class Judgement(NamedTuple):
    """A metric on a turn, and how it was judged: two that are equal need not be made twice."""

    record_id: str
    metric: str
    options: str
    judge: str | None
    embedder: str | None
    prompt_version: str | None
    metric_version: str | None
    fuse: str | None


def known_judgements(path: str | os.PathLike[str] | None, records: Sequence[str]) -> set[Judgement]:
    """What a results file, if there is one, knows of some turns: a value, or that the metric does not apply.

    Failures are tried again. Which other metrics were judged beside one is not looked at, though it is a part
    of a result's id.
    """
    if path is None or not Path(path).exists():
        return set()
    query = f"SELECT {', '.join(Judgement._fields)} FROM scores WHERE record_id = ? AND status != 'failed'"
    with closing(connect_readonly(path)) as connection:
        return {Judgement(*row) for one in records for row in connection.execute(query, (one,))}


_ROWS_AT_ONCE: Final = 1000
# All as text: types guessed by the first rows would take the leading zeros off an id.
_READERS: Final = {
    ".parquet": "read_parquet(?)",
    ".csv": "read_csv(?, all_varchar = true)",
    ".tsv": "read_csv(?, all_varchar = true, delim = '\t')",
}
# A file may come from anywhere: nothing is fetched for it, and what it can use up is bounded.
_CONFIG: Final[dict[str, Any]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "memory_limit": "1GB",
    "threads": "1",
}
_LINE_FILES = (".jsonl", ".json", ".ndjson", ".gz")
Kind = Literal["otlp", "printed", "langfuse", "langsmith", "records"]


@dataclass
class Source:
    """Stored turns."""

    name: str
    """What it is called in messages."""
    read: Callable[[Source, Bad], Iterator[Record]] = field(repr=False)
    """Reads the turns; whatever holds none is told."""
    without: Mapping[str, int] = field(default_factory=dict)
    """Traces that gave no turn, by cause; known when the turns have been read."""
    unread: Unread = field(default_factory=Counter)
    """What seems to be in a table and is not read, likewise."""

    def records(self, bad: Bad) -> Iterator[Record]:
        """The turns; whatever holds none is told."""
        return self.read(self, bad)


def _table(path: Path, columns: Columns) -> Source:
    found = columns.find(column_names(path), where=f"{str(path)!r}")

    def read(source: Source, bad: Bad) -> Iterator[Record]:
        for number, row in enumerate(rows(path), start=1):
            try:
                record = record_of(row, found)
            except InvalidRecord as error:
                bad(f"{source.name} row {number}", str(error))
                continue
            source.unread.update(seeming(row, record).items())
            yield record

    return Source(str(path), read)


def _lines(path: Path, columns: Columns) -> Source:
    def read(source: Source, bad: Bad) -> Iterator[Record]:
        for number, row in enumerate(_objects(path, bad), start=1):
            try:
                # Each object may have other keys than the one before.
                record = record_of(row, columns.find(row.keys(), where="it"))
            except (InvalidRecord, ConfigurationError) as error:
                bad(f"{source.name} object {number}", str(error))
                continue
            source.unread.update(seeming(row, record).items())
            yield record

    return Source(str(path), read)


def _traces(name: str, lines: Callable[[Tracing, Bad], Iterable[bytes]], read_traces: TraceReader) -> Source:
    def read(source: Source, bad: Bad) -> Iterator[Record]:
        tracing = Tracing()
        yield from tracing.turns(lines(tracing, bad), read_traces, source.name, bad)
        source.without = tracing.without

    return Source(name, read)


@contextmanager
def _table_of(path: Path, rest: str = "") -> Iterator[Any]:
    try:
        import duckdb
    except ImportError:
        raise MissingDependency("duckdb", extra="backfill") from None
    reader = _READERS[path.suffix.lower()]
    with closing(duckdb.connect(config=_CONFIG)) as connection:
        try:
            yield connection.execute(f"SELECT * FROM {reader} {rest}", [str(path)])
        except duckdb.Error as error:
            # Its first sentence: what follows may quote rows.
            problem = f"{type(error).__name__}: {str(error).splitlines()[0][:160]}"
            raise ConfigurationError(
                f"{str(path)!r} cannot be read: {problem}; check that it is the file you mean"
            ) from None


def column_names(path: Path) -> list[str]:
    """The columns of a file."""
    with _table_of(path, "LIMIT 0") as cursor:
        return [column[0] for column in cursor.description]


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file."""
    with _table_of(path) as cursor:
        names = [column[0] for column in cursor.description]
        while found := cursor.fetchmany(_ROWS_AT_ONCE):
            for row in found:
                yield dict(zip(names, row, strict=True))


def open_sources(
    places: Sequence[str], *, columns: Columns, read_traces: TraceReader, project: str = "default"
) -> list[Source]:
    """Find out what each place holds.

    Args:
        places: Files, folders (everything in them, by name), and addresses of Phoenix servers.
        columns: Where the parts of a turn are in tables and lines.
        read_traces: Reads spans.
        project: The project on a Phoenix server.

    Raises:
        ConfigurationError: If a place cannot be read, or is nothing that is known.
    """
    found: list[Source] = []
    traced: list[tuple[Kind, Path]] = []
    for place in places:
        if place.startswith(("http://", "https://")):
            server = PhoenixServer(place, project=project)
            found.append(_traces(server.name, lambda *_, server=server: server.lines(), read_traces))
            continue
        for path in _files(Path(place)):
            kind = _kind(path)
            if kind != "records":
                traced.append((kind, path))
            elif path.suffix.lower() in _READERS:
                found.append(_table(path, columns))
            else:
                found.append(_lines(path, columns))
    if traced:
        # Read together: a trace may go on in the next file.
        name = str(traced[0][1]) if len(traced) == 1 else f"{len(traced)} files of traces"
        found.append(_traces(name, partial(_spans, traced), read_traces))
    return found


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        if not path.exists():
            raise ConfigurationError(f"there is no file {str(path)!r}; check its name")
        return [path]
    known = (*_READERS, *_LINE_FILES)
    inside = sorted(p for p in path.rglob("*") if p.is_file() and p.suffix.lower() in known)
    if not inside:
        what = f"no file that ends in {', '.join(known)}; name another folder or a file"
        raise ConfigurationError(f"in {str(path)!r} there is {what}")
    return inside


def _kind(path: Path) -> Kind:
    """What a file holds, by the names of its columns or the keys of its first object."""
    if path.suffix.lower() in _READERS:
        keys = set(column_names(path))
    else:
        if _is_indented(path):
            return "otlp"
        first = next(iter(_objects(path, lambda *_: None)), None)
        if first is None:
            raise ConfigurationError(
                f"{str(path)!r} holds no JSON object, one a line or in a list; "
                "check that it is the file you mean"
            )
        if is_jaeger_reply(first):
            return "otlp"
        keys = set(first)
    if keys & {"resourceSpans", "resourceLogs", "batches"}:
        return "otlp"
    if is_printed_span(keys):
        return "printed"
    if is_run(keys):
        return "langsmith"
    return "langfuse" if is_observation(keys) else "records"


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        file = gzip.open(path, "rb") if path.suffix.lower() == ".gz" else open(path, "rb")  # noqa: SIM115
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {str(path)!r}: {os.strerror(error.errno or 0)}; check its name and rights"
        ) from None
    with file:
        try:
            yield file
        except (EOFError, gzip.BadGzipFile) as error:
            raise ConfigurationError(
                f"{str(path)!r} is cut short or no gzip: {error}; make or fetch it again"
            ) from None


def _is_indented(path: Path) -> bool:
    """Whether a file holds objects spread over lines: one export request, or what the SDK prints."""
    with _opened(path) as file:
        return next((line.strip() == b"{" for line in file if line.strip()), False)


def _objects(path: Path, bad: Bad) -> Iterator[dict[str, Any]]:
    """The JSON objects of a file: one a line, or one list of them."""
    with _opened(path) as file:
        for number, value in json_lines(file, bad=lambda number, why: bad(f"{path} line {number}", why)):
            if isinstance(value, dict):
                yield value
            else:
                bad(f"{path} line {number}", "not a JSON object")


def _spans(files: Sequence[tuple[Kind, Path]], tracing: Tracing, bad: Bad) -> Iterator[bytes]:
    for kind, path in files:
        if kind == "otlp":
            with _opened(path) as file:
                yield from file
            continue
        if kind == "printed":
            yield from map(line_of_span, _objects(path, bad))
            continue
        given = rows(path) if path.suffix.lower() in _READERS else _objects(path, bad)
        span_of = span_of_observation if kind == "langfuse" else span_of_run
        yield from (span_of(row, tracing) for row in given)
