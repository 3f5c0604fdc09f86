"""Labels as CSV and JSONL, out and in again without a loss."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from typing import Any, Literal, TextIO

from steelyard.errors import InvalidRecord
from steelyard.report import Label

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
            writer.writerow([_cell(values[name]) for name in _FIELDS])
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
        problems: Where lines that hold no label are told of; without it, the first of them raises.

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


def _cell(value: object) -> object:
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
    """The number in a cell; None in an empty one."""
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
