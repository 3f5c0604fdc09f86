"""What people say of a turn or of one of its claims, and what probes say of a judge, kept beside results."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, get_args

from steelyard.errors import InvalidRecord
from steelyard.probing import JudgeCheck
from steelyard.results._schema import Execute
from steelyard.results._store import Store
from steelyard.stats import Estimate

LabelValue = Literal["good", "bad", "supported", "not_supported"]
"""`good` and `bad` are said of a turn, `supported` and `not_supported` of a claim."""

_COLUMNS: Final = ("record_id", "metric", "claim", "value", "note", "who", "labelled_at", "drawn")
"""The columns of the table `labels`, named as the fields."""
_PUT: Final = f"""INSERT INTO labels ({", ".join(_COLUMNS)})
    VALUES ({", ".join(f":{name}" for name in _COLUMNS)})
    ON CONFLICT (record_id, coalesce(metric, ''), coalesce(claim, -1), who) DO UPDATE
    SET value = excluded.value, note = excluded.note, labelled_at = excluded.labelled_at,
        drawn = coalesce(excluded.drawn, labels.drawn)
    WHERE excluded.labelled_at >= labels.labelled_at"""
_REMOVE: Final = """DELETE FROM labels WHERE record_id = :record_id AND coalesce(metric, '') = :metric
    AND coalesce(claim, -1) = :claim AND who = :who"""
_PUT_CHECK: Final = """INSERT INTO judge_checks (checked_at, judge, figures)
    VALUES (:checked_at, :judge, :figures)"""
_ORDER: Final = "labelled_at, record_id, who, coalesce(metric, ''), coalesce(claim, -1)"
_LONGEST: Final = {"record_id": 1_000, "metric": 200, "note": 2_000, "who": 100}
_LARGEST_CLAIM: Final = 100_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Label:
    """What one person says of a turn, or of one claim in it."""

    record_id: str
    value: LabelValue
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

    def __post_init__(self) -> None:
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


class LabelStore:
    """Keeps what people say, and what probes said of judges, beside results.

    Every method may raise `ConfigurationError` for a database that fails. The database is opened for each, so
    that it may be replaced. A label is kept when its turn is pruned: it is somebody's work, and small.
    """

    def __init__(self, opened: Callable[[], Store]) -> None:
        self._opened = opened

    def put(self, labels: Iterable[Label]) -> int:
        """Store labels, all or none; the same person's later word on the same thing replaces the earlier one.

        A turn that was drawn stays so, whoever says something of it later.

        Returns:
            How many were stored: those older than the one already there are not.
        """
        with self._writing() as execute:
            rows = ({**asdict(label), "who": label.who.strip()} for label in labels)
            return sum(execute(_PUT, row).rowcount for row in rows)

    def remove(self, record_id: str, *, metric: str | None, claim: int | None, who: str) -> None:
        """Take back what somebody said; nothing happens where they said nothing."""
        said = {"record_id": record_id, "metric": metric or "", "claim": -1 if claim is None else claim}
        with self._writing() as execute:
            execute(_REMOVE, {**said, "who": who})

    def put_check(self, check: JudgeCheck, *, checked_at: float) -> None:
        """Store what the probes said of a judge, at this Unix time; `ResultsReader.checks` gives it again."""
        figures = json.dumps(asdict(check), ensure_ascii=False)
        with self._writing() as execute:
            execute(_PUT_CHECK, {"checked_at": checked_at, "judge": check.judge, "figures": figures})

    def of(self, record_id: str) -> list[Label]:
        return self._read("WHERE record_id = :record_id", {"record_id": record_id})

    def __iter__(self) -> Iterator[Label]:
        return iter(self._read("", {}))

    def _read(self, where: str, values: Mapping[str, Any]) -> list[Label]:
        query = f"SELECT {', '.join(_COLUMNS)} FROM labels {where} ORDER BY {_ORDER}"
        with closing(self._opened()) as store, store.reading() as execute:
            rows = execute(query, values).fetchall()
        return [Label(**dict(zip(_COLUMNS, row, strict=True))) for row in rows]

    @contextmanager
    def _writing(self) -> Iterator[Execute]:
        with closing(self._opened()) as store, store.writing() as execute:
            yield execute


def _is_storable(text: str) -> bool:
    """Whether a text has neither a lone surrogate nor a zero character, which SQLite's tools cut it at."""
    return "\0" not in text and text.encode(errors="ignore").decode() == text


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredCheck:
    """One check of a judge by probes with known answers; see `steelyard.probing.JudgeCheck`."""

    checked_at: float
    """When, as Unix time."""
    judge: str
    prompt_version: str
    published: bool
    """Whether by the probes that ship with this version, and not by a set of one's own."""
    right: Estimate
    """Share of probes answered rightly."""
    kinds: Mapping[str, Estimate]
    """The same by kind of probe."""
    bins: tuple[tuple[float, float, int], ...]
    """By tenths of the probability of yes: its mean, the share of probes whose answer is yes, how many."""
    error: float | None
    """Expected calibration error; None for a judge without probabilities."""


def check_of_row(checked_at: float, judge: str, figures: str) -> StoredCheck | None:
    """What a row of the table says; None where it cannot be read."""
    try:
        found = json.loads(figures)
        reliability = found["calibration"] or {"bins": (), "error": None}
        return StoredCheck(
            checked_at=checked_at,
            judge=judge,
            prompt_version=found["prompt_version"],
            published=found["published"],
            right=Estimate(**found["overall"]["right"]),
            kinds={kind: Estimate(**one["right"]) for kind, one in found["kinds"].items()},
            bins=tuple((one["probability"], one["yes"], one["n"]) for one in reliability["bins"]),
            error=reliability["error"],
        )
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError):
        return None
