"""Judged turns and their labels out of results and files beside them, and the turns to label next."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TextIO

from steelyard.calibration import (
    Judged,
    Material,
    PersonLabel,
    chances_by,
    collect,
    drawn_to_label,
    read_annotations,
)
from steelyard.errors import ConfigurationError, InvalidRecord
from steelyard.report import labelled_turns
from steelyard.results import open_labels, open_results
from steelyard.results.labels import Label
from steelyard.scores import Evaluation

_FIELDS = tuple(field.name for field in fields(Label))
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'")
"""A spreadsheet runs a cell that starts with one of these; the apostrophe, so that it can be undone."""


def export_labels(labels: Iterable[Label], file: TextIO, *, form: Literal["csv", "jsonl"] = "csv") -> int:
    """Write labels to an open text file; returns how many.

    In CSV, a text that a spreadsheet would run as a formula has an apostrophe before it, which
    `import_labels` takes away again. Open the file with `newline=""`.
    """
    count = 0
    if form == "csv":
        writer = csv.writer(file)
        writer.writerow(_FIELDS)
    for label in labels:
        values = asdict(label)
        if form == "csv":
            writer.writerow([cell(values[name]) for name in _FIELDS])
        else:
            file.write(json.dumps(values, ensure_ascii=True) + "\n")
        count += 1
    return count


def import_labels(
    file: TextIO, *, form: Literal["csv", "jsonl"] = "csv", problems: list[str] | None = None
) -> Iterator[Label]:
    """Read labels from an open text file.

    Args:
        file: The file, opened with `newline=""`.
        form: What it holds.
        problems: Where lines that hold no label are reported; without it, the first of them raises.

    Raises:
        InvalidRecord: If a line holds no label, and `problems` is not given.
    """
    rows = enumerate(csv.DictReader(file), 2) if form == "csv" else enumerate(file, 1)
    try:
        for number, row in rows:
            try:
                yield _label(_from_csv(row) if isinstance(row, dict) else json.loads(row))
            except (InvalidRecord, ValueError, TypeError, RecursionError) as error:
                why = str(error) if isinstance(error, InvalidRecord) else "not a label"
                _tell(f"line {number}: {why}", problems)
    except csv.Error:
        _tell("the rest of the file is not CSV", problems)


def _tell(problem: str, problems: list[str] | None) -> None:
    if problems is None:
        raise InvalidRecord(problem)
    problems.append(problem)


def cell(value: object) -> object:
    """A value of a CSV file, with an apostrophe before what a spreadsheet would run as a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _from_csv(row: dict[str, str | None]) -> dict[str, Any]:
    cells = {name: (row.get(name) or "").removeprefix("'") for name in _FIELDS}
    return {
        **cells,
        "metric": cells["metric"] or None,
        "claim": _number(cells, "claim", int),
        "labelled_at": _number(cells, "labelled_at", float),
        "drawn": _number(cells, "drawn", float),
    }


def _number(cells: dict[str, str], name: str, kind: type[int] | type[float]) -> float | None:
    try:
        return kind(cells[name]) if cells[name] else None
    except ValueError:
        raise InvalidRecord(f"its {name} is not a number") from None


def _label(data: Any) -> Label:
    if not isinstance(data, dict):
        raise InvalidRecord("not a label")
    texts = ("record_id", "value", "who", "note")
    if not all(isinstance(data.get(name, ""), str) for name in texts):
        raise InvalidRecord("not a label")
    if lacking := [name for name in ("record_id", "value", "who") if not data.get(name)]:
        raise InvalidRecord(f"no {' and no '.join(lacking)}")
    given = {name: data[name] for name in _FIELDS if name in data}
    if given.get("labelled_at") is None:  # a file written by hand: said when it is read
        given["labelled_at"] = time.time()
    return Label(**given)


# Results of so many turns fit into memory whatever their texts are.
_PAGE = 500
_LIMIT = 10_000


@dataclass
class LabelledResults:
    """Where turns and labels come from."""

    db: str
    """The results: a file, or the address of a database."""
    files: Sequence[Path] = ()
    """Files with further labels: CSV, JSONL, or JSON out of Phoenix or Langfuse."""
    metric: str | None = None
    """Only this metric."""
    limit: int = _LIMIT
    """Use only the latest so many turns."""
    problems: list[str] = field(default_factory=list)
    """Lines and annotations that hold no label; filled while reading."""

    def evaluations(self) -> Iterator[Evaluation]:
        """The turns that were written last, in order of writing; each with the scores of `metric` alone."""
        with closing(open_results(self.db)) as results:
            place = max(results.position() - self.limit, 0)
            while page := results.written_after(place, limit=_PAGE):
                place = page[-1][0]
                for _, evaluation in page:
                    yield self._narrowed(evaluation)

    def _narrowed(self, evaluation: Evaluation) -> Evaluation:
        if self.metric is None:
            return evaluation
        scores = tuple(score for score in evaluation.scores if score.metric == self.metric)
        return evaluation.replace(scores=scores)

    def material(self) -> list[Material]:
        """Turns and labels brought together."""
        return collect(self.evaluations(), [*open_labels(self.db), *self._of_files()])

    def _of_files(self) -> Iterable[Label | PersonLabel]:
        places: dict[str, str] = {}
        metrics: set[str] = set()
        if any(path.suffix == ".json" for path in self.files):
            for evaluation in self.evaluations():
                metrics.update(score.metric for score in evaluation.scores)
                if trace := evaluation.trace:
                    ids = [place for place in (trace.trace_id, trace.span_id, trace.run_id) if place]
                    places |= dict.fromkeys(ids, evaluation.record_id)
        for path in self.files:
            found: list[str] = []
            yield from _labels(path, places, metrics, found)
            self.problems += [f"{path}: {problem}" for problem in found]


def _labels(
    path: Path, places: dict[str, str], metrics: set[str], problems: list[str]
) -> list[Label] | list[PersonLabel]:
    if path.suffix in (".csv", ".jsonl"):
        form: Literal["csv", "jsonl"] = "csv" if path.suffix == ".csv" else "jsonl"
        with path.open(encoding="utf-8", errors="replace", newline="") as opened:
            return list(import_labels(opened, form=form, problems=problems))
    if path.suffix != ".json":
        raise ConfigurationError(f"{str(path)!r} must end in .csv, .jsonl or .json")
    try:
        data = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise ConfigurationError(
            f"{str(path)!r} is not JSON; write one JSON object a line, or a CSV file"
        ) from None
    return read_annotations(data, records=places, metrics=metrics, problems=problems)


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnsToLabel:
    """The turns to label, and by which metric they were put in order."""

    metric: str
    """The metric whose scores decide what is worth labelling."""
    turns: list[tuple[Judged, float]]
    """The turns, the most useful first, each with the probability with which it was drawn."""
    labelled: int


def turns_to_label(db: str, *, metric: str | None = None, limit: int = 20) -> TurnsToLabel:
    """At most `limit` turns whose labels would tell the most; of one metric's claims, or of whole turns."""
    said = [label for label in open_labels(db) if label.metric == metric]
    with closing(open_results(db)) as results:
        counts = results.scored()
        judged = {
            name: _judged(results.judged(name, limit=_LIMIT))
            for name in ([metric] if metric else _most(counts))
        }
        if not any(judged.values()):
            what = f"scored by {metric!r}" if metric else "with a score"
            raise ConfigurationError(
                f"{db!r} holds no turn {what}; check that the labels are of these results"
            )
        first = max(judged, key=lambda name: (len(judged[name]), name == "faithfulness"))
        known = {label.record_id for label in said} & judged[first].keys()
        found = collect(*labelled_turns(results, (label for label in said if label.record_id in known)))
        pairs = [pair for one in found if one.key.metric == first for pair in one.labelled]
    # What somebody picked may come again: drawn turns must tell of all, not of those nobody had picked.
    drawn = {label.record_id for label in said if label.drawn is not None}
    turns = drawn_to_label(judged[first].values(), drawn, chance=chances_by(pairs), limit=limit)
    return TurnsToLabel(metric=first, turns=turns, labelled=len(known))


def _most(counts: Mapping[str, int]) -> list[str]:
    """The metrics with the most scores, `_LIMIT` counting as many as more do."""
    most = min(max(counts.values(), default=0), _LIMIT)
    return [name for name, count in counts.items() if count >= most]


def _judged(rows: Iterable[tuple[str, float, float]]) -> dict[str, Judged]:
    return {
        record: Judged(record_id=record, value=value, worst=None, inclusion=inclusion, claims=0)
        for record, value, inclusion in rows
    }
