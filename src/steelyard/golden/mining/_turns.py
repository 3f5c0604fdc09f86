"""What is known of every stored turn before any is drawn: its question, its scores, how it was picked."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from steelyard.sinks import connect_readonly

Stratum = Literal["failing", "uncertain", "rest"]

_NEAR = 0.1
"""A value this close to its threshold is uncertain."""
_WIDE = 0.15
"""A standard error above this makes a score uncertain."""
# So many rows at a time: a file may hold millions of scores.
_BATCH = 10_000
_NOT_WORDS = re.compile(r"[\W_]+")


@dataclass(slots=True)
class StoredTurn:
    """One turn, without its texts but the question."""

    record_id: str
    """The record's id."""
    question: str = field(repr=False)
    """What was asked."""
    inclusion: float = 0.0
    """The probability with which it was picked for judging."""
    scores: dict[str, float] = field(default_factory=dict)
    """Values by metric."""
    stratum: Stratum = "rest"
    """Whether it failed a threshold, or nearly, or neither."""

    @property
    def key(self) -> str:
        """What turns with the same question share."""
        # Of a question in marks or pictures alone nothing would be left, and all such would be one.
        return _NOT_WORDS.sub(" ", self.question.casefold()).strip() or self.question


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """All stored turns that can be drawn, and how many cannot."""

    turns: tuple[StoredTurn, ...]
    """Those with a question and a score."""
    without_content: int
    """Turns stored without their texts."""
    without_score: int
    """Turns without any value, or that ended with an error."""


def read_turns(path: str | Path, *, metric: str | None = None, since: float | None = None) -> Stored:
    """Read every turn of a results file.

    Raises:
        ConfigurationError: If there is no such file.
    """
    turns: dict[str, StoredTurn] = {}
    without_content = 0
    with closing(connect_readonly(path)) as connection:
        found = connection.execute(
            """SELECT record_id, question FROM evaluations
               WHERE happened_at >= ? AND coalesce(record_status, 'ok') IN ('ok', 'truncated')
               ORDER BY happened_at, record_id""",
            (since or 0.0,),
        )
        for record_id, question in found:
            if question and question.strip():
                turns[record_id] = StoredTurn(record_id, question)
            else:
                without_content += 1
        _add_scores(connection, turns, metric)
    scored = tuple(turn for turn in turns.values() if turn.scores)
    return Stored(turns=scored, without_content=without_content, without_score=len(turns) - len(scored))


def _add_scores(connection: sqlite3.Connection, turns: Mapping[str, StoredTurn], metric: str | None) -> None:
    rows = connection.execute(
        """SELECT record_id, metric, value, passed, threshold, standard_error, inclusion_probability
           FROM scores
           WHERE status = 'scored' AND value IS NOT NULL AND (:metric IS NULL OR metric = :metric)""",
        {"metric": metric},
    )
    while batch := rows.fetchmany(_BATCH):
        for record_id, name, value, passed, threshold, error, inclusion in batch:
            turn = turns.get(record_id)
            if turn is None:
                continue
            turn.scores[name] = value
            # Picks for metrics are nested, so the largest of their probabilities is that of being judged at
            # all.
            turn.inclusion = max(turn.inclusion, inclusion)
            if passed == 0:
                turn.stratum = "failing"
            elif turn.stratum == "rest" and _is_uncertain(value, threshold, error):
                turn.stratum = "uncertain"


def _is_uncertain(value: float, threshold: float | None, error: float | None) -> bool:
    near = threshold is not None and abs(value - threshold) < _NEAR
    return near or (error is not None and error > _WIDE)
