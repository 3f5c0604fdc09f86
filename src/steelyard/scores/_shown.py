"""An Evaluation for people: as text and as a table for notebooks.

Its `repr` tells what it is without what it says, since that may be logged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING

from steelyard._internal.text import printable, shorten

if TYPE_CHECKING:
    from steelyard.scores._scores import Evaluation, Score

_WIDTH = 200
_MOST_CHARACTERS = 2_000
_MOST_CONTEXTS = 20
# Notebooks align cells to the right, where sentences are hard to read.
_CELL = '<{tag} style="text-align:left">{text}</{tag}>'


def as_text(evaluation: Evaluation) -> str:
    """The turn, if its content is stored, and one line a metric; no character acts as code in a terminal."""
    turn = str(evaluation.record) if evaluation.record else shorten(f"turn {evaluation.record_id}", _WIDTH)
    return "\n".join([turn, *map(_line, evaluation.scores)])


def as_html(evaluation: Evaluation) -> str:
    """The scores as a table, the turn below it, if its content is stored; everything escaped."""
    heads = _row("th", ("metric", "value", "", "why"))
    rows = "".join(_row("td", _cells(score)) for score in evaluation.scores)
    table = f"<table><thead>{heads}</thead><tbody>{rows}</tbody></table>"
    terms = "".join(f"<dt>{_escaped(name)}</dt><dd>{_escaped(said)}</dd>" for name, said in _turn(evaluation))
    return f"{table}<dl>{terms}</dl>" if terms else table


def _line(score: Score) -> str:
    metric, value, label, why = (shorten(cell, _WIDTH) for cell in _cells(score))
    return f"{metric:<24} {value:<14} {label:<5} {why}".rstrip()


def _cells(score: Score) -> tuple[str, str, str, str]:
    value = score.status.replace("_", " ") if score.value is None else f"{score.value:.3f}"
    if score.value is not None and score.standard_error is not None:
        value += f" ± {score.standard_error:.3f}"
    return score.metric, value, score.label or "", score.explanation


def _turn(evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    record = evaluation.record
    if record is None:
        return
    contexts = ((f"context {rank}", context.text) for rank, context in enumerate(record.contexts))
    named: Iterable[tuple[str, str | None]] = [
        ("question", record.asked),
        ("answer", record.answer),
        ("reference", record.reference),
        *list(contexts)[:_MOST_CONTEXTS],
    ]
    yield from ((name, said) for name, said in named if said)


def _row(tag: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(_CELL.format(tag=tag, text=_escaped(cell)) for cell in cells)}</tr>"


def _escaped(text: str) -> str:
    cut = text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "…"
    return escape(printable(cut, lines=True))
