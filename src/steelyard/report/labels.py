"""What people say of a turn or of one of its claims, and where it is kept."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, get_args

from steelyard.errors import InvalidRecord
from steelyard.probing import JudgeCheck

LabelValue = Literal["good", "bad", "supported", "not_supported"]
"""`good` and `bad` are said of a turn, `supported` and `not_supported` of a claim."""

COLUMNS: Final = ("record_id", "metric", "claim", "value", "note", "who", "labelled_at", "drawn")
"""The columns of the table `labels`, named as the fields."""
_LONGEST: Final = {"record_id": 1_000, "metric": 200, "note": 2_000, "who": 100}
_LARGEST_CLAIM: Final = 100_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Label:
    """What one person says of a turn, or of one claim in it."""

    record_id: str
    """The turn's record."""
    value: LabelValue
    """What is said."""
    who: str
    """Who says so, at most 100 characters."""
    labelled_at: float
    """When, as Unix time."""
    metric: str | None = None
    """The metric whose claim is meant; None for the whole turn."""
    claim: int | None = None
    """The claim's index among the metric's verdicts, from 0; None for the whole turn."""
    note: str = ""
    """Why, at most 2,000 characters."""
    drawn: float | None = None
    """The probability with which `steelyard label` drew the turn; None if a person picked it, or nobody
    knows."""

    def row(self) -> tuple[str, str | None, int | None, str, str, str, float, float | None]:
        """As a row of the table `labels`, in the order of `COLUMNS`."""
        return (
            *(self.record_id, self.metric, self.claim, self.value),
            *(self.note, self.who.strip(), self.labelled_at, self.drawn),
        )

    @classmethod
    def of_row(cls, row: Sequence[Any]) -> Label:
        """The label that `row` gave."""
        return cls(**dict(zip(COLUMNS, row, strict=True)))

    def __post_init__(self) -> None:
        """Refuse what is not a label.

        Raises:
            InvalidRecord: If a field is missing, too long, or does not go with the others.
        """
        if (self.metric is None) != (self.claim is None):
            raise InvalidRecord("a label is of a whole turn, or of a claim of a metric: give both or neither")
        of_turn = self.claim is None
        if self.value not in get_args(LabelValue) or (self.value in ("good", "bad")) != of_turn:
            wanted = "good or bad" if of_turn else "supported or not_supported"
            raise InvalidRecord(f"the value of this label must be {wanted}")
        self._check_texts()
        if self.claim is not None and not (type(self.claim) is int and 0 <= self.claim < _LARGEST_CLAIM):
            raise InvalidRecord("the claim of a label is an index from 0")
        if not math.isfinite(self.labelled_at):
            raise InvalidRecord("the time of a label is a finite number of seconds")
        if self.drawn is not None and not 0 < self.drawn <= 1:
            raise InvalidRecord("a turn is drawn for a label with a probability above 0, at most 1")

    def _check_texts(self) -> None:
        if not self.record_id or not self.who.strip():
            raise InvalidRecord("a label needs a record and the name of who gave it")
        for name, longest in _LONGEST.items():
            text = getattr(self, name) or ""
            if len(text) > longest or not _is_storable(text):
                raise InvalidRecord(f"the {name} of a label is longer than {longest} characters or not text")


class LabelStore(Protocol):
    """Keeps what people say, and what probes said of judges, beside results.

    Every method may raise `ConfigurationError` for a database that fails.
    A label is kept when its turn is pruned: it is somebody's work, and small.
    """

    def put(self, labels: Iterable[Label]) -> int:
        """Store labels, all or none; the same person's later word on the same thing replaces the earlier one.

        A turn that was drawn stays so, whoever says something of it later.

        Returns:
            How many were stored: those older than the one already there are not.
        """

    def remove(self, record_id: str, *, metric: str | None, claim: int | None, who: str) -> None:
        """Take back what somebody said; nothing happens where they said nothing."""

    def put_check(self, check: JudgeCheck, *, checked_at: float) -> None:
        """Store what the probes said of a judge, at this Unix time; `ResultsReader.checks` gives it again."""

    def of(self, record_id: str) -> list[Label]:
        """The labels of one turn, in order of time."""

    def __iter__(self) -> Iterator[Label]:
        """All labels, in order of time."""


def _is_storable(text: str) -> bool:
    """Whether a text has neither a lone surrogate nor a zero character, which SQLite's tools cut it at."""
    return "\0" not in text and text.encode(errors="ignore").decode() == text
