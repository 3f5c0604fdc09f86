"""The turns that can be drawn: grouped by question, in strata and clusters, each with its probability."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from steelyard._internal.threads import run_anywhere
from steelyard.errors import ConfigurationError
from steelyard.judge import StaticEmbedder
from steelyard.results import connect_readonly
from steelyard.stats import cluster, name_clusters

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
    question: str = field(repr=False)
    inclusion: float = 0.0
    """The probability with which it was picked for judging."""
    scores: dict[str, float] = field(default_factory=dict)
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
    """Read every turn of a results file."""
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
            near = threshold is not None and abs(value - threshold) < _NEAR
            if passed == 0:
                turn.stratum = "failing"
            elif turn.stratum == "rest" and (near or (error or 0.0) > _WIDE):
                turn.stratum = "uncertain"


SHARES: Mapping[Stratum, float] = {"failing": 0.3, "uncertain": 0.15, "rest": 0.55}
"""Which share of the cases each kind of turn gets, as far as there are such turns."""

_LEAST_SHARE = 0.02
"""No kind of turn gets less."""
_MOST_EMBEDDED = 20_000
"""Of more distinct questions, so many are drawn first, each with the same probability."""
_LARGEST = 16
"""At most so many clusters of questions within a stratum."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawn:
    """One turn that was drawn."""

    turn: StoredTurn
    probability: float
    """The probability with which it was picked for judging and drawn here."""
    cluster: str
    """The words that name its cluster of questions."""


@dataclass(frozen=True, kw_only=True)
class Population:
    """All turns of a results file that can be drawn, ready to draw from as often as one likes."""

    stored: Stored
    groups: Sequence[Sequence[StoredTurn]]
    """Turns with the same question, whatever its case and punctuation."""
    kept: float
    """The probability with which each group is here: 1, unless there were too many to cluster."""
    labels: npt.NDArray[np.intp]
    """The cluster of each group; no two strata share one."""
    names: Sequence[str]
    """The words that name the cluster of each group."""

    @classmethod
    def read(
        cls, db: str | Path, *, metric: str | None = None, since: float | None = None, seed: int = 0
    ) -> Population:
        """Read a results file."""
        stored = read_turns(db, metric=metric, since=since)
        if not stored.turns:
            raise ConfigurationError(
                f"no turn of {str(db)!r} can be drawn: {stored.without_content} are stored without their "
                f"texts, {stored.without_score} have no score; "
                "set store_content = true, and wait for turns that are scored"
            )
        groups, kept = _grouped(stored.turns), 1.0
        if len(groups) > _MOST_EMBEDDED:
            picked = np.random.default_rng(seed).choice(len(groups), _MOST_EMBEDDED, replace=False)
            # In their own order, as they are where nothing is left out.
            groups, kept = [groups[at] for at in np.sort(picked)], _MOST_EMBEDDED / len(groups)
        labels, names = _clusters(groups)
        return cls(stored=stored, groups=groups, kept=kept, labels=labels, names=names)

    def draw(self, n: int, *, shares: Mapping[Stratum, float] | None = None, seed: int = 0) -> list[Drawn]:
        """Draw turns of so many questions; all questions where there are fewer."""
        wanted = {**SHARES, **(shares or {})}
        if n < 1:
            raise ConfigurationError(f"n must be at least 1, not {n!r}")
        if any(share < 0 for share in wanted.values()) or not sum(wanted.values()) > 0:
            raise ConfigurationError(f"shares must not be negative, and not all 0: {dict(wanted)!r}")
        rng = np.random.default_rng(seed)
        probabilities = inclusion_probabilities(self._sizes(wanted), n)
        # In order of strata and clusters, so that a systematic sample goes through all of them evenly.
        order = np.lexsort((rng.random(len(self.groups)), self.labels, self._kinds))
        positions = order[systematic_sample(probabilities[order], rng=rng)]
        drawn = []
        for position in positions:
            turn, chance = _one_of(self.groups[position], rng)
            # All three draws: being judged at all, being among the 20,000, and being taken here.
            probability = chance * float(probabilities[position]) * self.kept
            drawn.append(Drawn(turn=turn, probability=probability, cluster=self.names[position]))
        return drawn

    @cached_property
    def _kinds(self) -> npt.NDArray[np.intp]:
        """The stratum of each group, by its place in `SHARES`."""
        return np.array([list(SHARES).index(group[0].stratum) for group in self.groups], np.intp)

    def _sizes(self, shares: Mapping[Stratum, float]) -> npt.NDArray[np.float64]:
        sizes = np.zeros(len(self.groups))
        for number, kind in enumerate(SHARES):
            members = np.flatnonzero(self._kinds == number)
            if len(members):
                _, own = np.unique(self.labels[members], return_inverse=True)
                weights = [
                    sum(1 / turn.inclusion for turn in self.groups[place]) for place in members.tolist()
                ]
                spread = spread_sizes(weights, own.tolist())
                # Without a share it is still drawn now and then: what never is cannot be estimated.
                sizes[members] = spread / spread.sum() * max(shares[kind], _LEAST_SHARE)
        return sizes


def _grouped(turns: Sequence[StoredTurn]) -> list[list[StoredTurn]]:
    """Turns by question; all of a group are in the stratum of its worst."""
    found: dict[str, list[StoredTurn]] = {}
    for turn in turns:
        found.setdefault(turn.key, []).append(turn)
    for group in found.values():
        worst = min((turn.stratum for turn in group), key=list(SHARES).index)
        for turn in group:
            turn.stratum = worst
    return list(found.values())


def _clusters(groups: Sequence[Sequence[StoredTurn]]) -> tuple[npt.NDArray[np.intp], list[str]]:
    """The cluster of each question, found within its stratum, so that kinds of failure stay apart."""
    questions = [group[0].question for group in groups]
    vectors, _ = run_anywhere(StaticEmbedder().embed(questions))
    rows = np.asarray(vectors, np.float32)
    kinds = np.array([list(SHARES).index(group[0].stratum) for group in groups])
    labels = np.zeros(len(groups), np.intp)
    names = [""] * len(groups)
    first = 0
    for kind in np.unique(kinds):
        members = np.flatnonzero(kinds == kind)
        own = cluster(rows[members], largest=_LARGEST)
        words = name_clusters([questions[index] for index in members], own.tolist())
        # Clusters of different strata are numbered apart.
        labels[members] = own + first
        first += int(own.max()) + 1
        for index, label in zip(members, own, strict=True):
            names[index] = words[label]
    return labels, names


def _one_of(group: Sequence[StoredTurn], rng: np.random.Generator) -> tuple[StoredTurn, float]:
    """One turn of a question, by its weight, and the probability of the whole: picked, and taken here."""
    if len(group) == 1:
        return group[0], group[0].inclusion
    # A turn that was picked with a low probability stands for many others like it.
    weights = np.array([1 / turn.inclusion for turn in group])
    chances = weights / weights.sum()
    index = int(rng.choice(len(group), p=chances))
    return group[index], float(chances[index] * group[index].inclusion)


def inclusion_probabilities(sizes: npt.ArrayLike, number: int) -> npt.NDArray[np.float64]:
    """Probabilities in proportion to sizes (above 0) that add up to `number`; none above 1.

    What would exceed 1 is taken for certain, and the rest shared out anew (Sarndal, Swensson & Wretman, Model
    Assisted Survey Sampling, 1992, section 3.6).

    >>> inclusion_probabilities([1.0, 1.0, 2.0, 12.0], 2)
    array([0.25, 0.25, 0.5 , 1.  ])
    """
    given = np.asarray(sizes, float)
    if number >= len(given):
        return np.ones_like(given)
    certain = np.zeros(len(given), bool)
    while True:
        free = ~certain
        shares = given * ((number - certain.sum()) / given[free].sum())
        over = free & (shares >= 1)
        if not over.any():
            return np.where(certain, 1.0, shares)
        certain |= over


def systematic_sample(probabilities: npt.ArrayLike, *, rng: np.random.Generator) -> list[int]:
    """Positions of a systematic sample: member i with its probability, as many as they add up to.

    Neighbours in the list are seldom drawn together, so a list in order of groups spreads the sample over
    them (Madow, Annals of Mathematical Statistics 20, 1949).
    """
    ends = np.cumsum(np.asarray(probabilities, float))
    # Rounding in the sum must not draw one member more.
    marks = np.arange(rng.random(), ends[-1] - 1e-9, 1.0) if len(ends) else np.array([])
    found = np.searchsorted(ends, marks, side="right")
    return [int(position) for position in np.minimum(found, len(ends) - 1)]


def spread_sizes(weights: Sequence[float], groups: Sequence[int]) -> npt.NDArray[np.float64]:
    """Sizes in proportion to weights within a group, and to the square root of their sum between groups.

    Small groups are drawn from more often than their share, large ones less (power allocation: Bankier, The
    American Statistician 42, 1988, with q = 1/2).
    """
    given, labels = np.asarray(weights, float), np.asarray(groups, int)
    totals = np.bincount(labels, weights=given)
    sizes: npt.NDArray[np.float64] = given / np.sqrt(totals[labels])
    return sizes
