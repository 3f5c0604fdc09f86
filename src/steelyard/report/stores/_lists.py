"""The list of turns out of any SQL database with our tables: narrowed, ordered, counted by facets."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from steelyard.report.queries import Facets, Marks, Scope, TurnFilter, TurnRow
from steelyard.report.stores._facets import FacetCounter
from steelyard.report.stores._looks import Looks
from steelyard.report.stores._turns import (
    Place,
    Row,
    Rows,
    TurnQuery,
    page_of,
    ranked_page_of,
    rows_with_scores,
)


class TurnLists(Looks):
    """What a database of results is asked for lists of turns."""

    among: ClassVar[str]
    """The rest of a condition: that a record is one of `:records`."""

    @abstractmethod
    def chosen(self, connection: Any, wanted: TurnFilter, *, is_after: bool) -> TurnQuery | None:
        """By what turns are found; None where it is sure that there are none."""

    @abstractmethod
    def given(self, records: Sequence[str]) -> Any:
        """The value of `:records`."""

    @abstractmethod
    def versions(self, connection: Any) -> Sequence[tuple[str, float | None]]:
        """Each `version` of the metadata, 400 at most, and when it was first used."""

    def has_labels(self, _connection: Any) -> bool:
        """Whether there is a table of labels."""
        return True

    @abstractmethod
    def attributes_reader(self) -> Callable[[Any, Any, Any], dict[str, list[str]]]:
        """From the stored tags, framework and metadata of a turn to what slices are cut by."""

    def turns(
        self, wanted: TurnFilter, *, before: Place = None, after: Place = None, limit: int = 50
    ) -> list[TurnRow]:
        """A page of turns, newest first by time of evaluation, then by id.

        Args:
            wanted: Which turns.
            before: Only turns older than the one with this key (`TurnRow.key`).
            after: Only turns newer than the one with this key; the oldest of these are given.
            limit: At most so many.
        """

        def page(rows: Rows, choice: TurnQuery) -> Sequence[Row]:
            return page_of(rows, choice, before=before, after=after, limit=limit)

        return self._listed(wanted, page, is_after=after is not None)

    def ranked(
        self, wanted: TurnFilter, by: str, *, reverse: bool = False, offset: int = 0, limit: int = 50
    ) -> list[TurnRow]:
        """A page of turns in another order than that of time.

        Args:
            wanted: Which turns.
            by: A metric, of which turns have a value and the worst come first; or `cost` or `duration`, of
                which the most come first.
            reverse: The other way round.
            offset: Leave out so many.
            limit: At most so many.
        """

        def page(rows: Rows, choice: TurnQuery) -> Sequence[Row]:
            return ranked_page_of(rows, choice, by, reverse=reverse, offset=offset, limit=limit)

        return self._listed(wanted, page)

    def _listed(
        self, wanted: TurnFilter, page: Callable[[Rows, TurnQuery], Sequence[Row]], *, is_after: bool = False
    ) -> list[TurnRow]:
        with self.reading() as connection:
            choice = self.choice(connection, wanted, is_after=is_after)
            if choice is None:
                return []
            rows = self.rows(connection)
            return rows_with_scores(rows, page(rows, choice), self.attributes_reader())

    def rows(self, connection: Any) -> Rows:
        """Runs queries on a connection."""

        def run(query: str, values: Mapping[str, Any]) -> list[Any]:
            return list(connection.execute(self.statement(query), values))

        return run

    def choice(self, connection: Any, wanted: TurnFilter, *, is_after: bool = False) -> TurnQuery | None:
        """By what turns are found, with what is asked of their time and of fields of one's own."""
        found = self.chosen(connection, wanted, is_after=is_after)
        if found is None:
            return None
        where, values = list(found.where), dict(found.values)
        if wanted.since is not None:
            where.append(f"{found.ordered}.happened_at >= :since")
        if wanted.until is not None:
            where.append(f"{found.ordered}.happened_at < :until")
        for at, name in enumerate(dict.fromkeys(name for name, _ in wanted.where)):
            column, _, by = self.grouping(name)
            held = {f"where{at}v{n}": one for n, one in enumerate(_spelled(wanted.where, name))}
            values |= {f"by{at}": by, **held}
            column = column.replace(":by", f":by{at}")
            where.append(f"{column} IN ({', '.join(f':{one}' for one in held)})")
        return replace(found, where=where, values=values)

    def marks(self, scope: Scope, *, width: float, deploys: int) -> Marks:
        """Deploys and labels on the time axis.

        Args:
            scope: Since and until when; nothing else of it counts.
            width: Seconds of the pieces of time by which labels are counted.
            deploys: At most so many, the latest ones.
        """
        values = {"since": -1e300 if scope.since is None else scope.since}
        values["until"] = 1e300 if scope.until is None else scope.until
        given: Counter[float] = Counter()
        with self.reading() as connection:
            rows = self.rows(connection)
            used = sorted((at, str(name)) for name, at in self.versions(connection) if at is not None)
            if self.has_labels(connection):
                query = """SELECT labelled_at FROM labels WHERE labelled_at >= :since
                    AND labelled_at < :until ORDER BY labelled_at DESC LIMIT 20000"""
                given.update(at // width * width for (at,) in rows(query, values))
        # With the first one nothing changed.
        found = [one for one in used[1:] if values["since"] <= one[0] < values["until"]]
        return Marks(
            deploys=tuple(found[-deploys:]),
            more=max(len(found) - deploys, 0),
            labels=tuple(sorted(given.items())),
        )

    def facets(self, wanted: TurnFilter) -> Facets:
        """What the turns that are asked for can be narrowed by, with counts.

        The values of what is narrowed by already are counted without that, so that one can choose others.
        Above 5,000 turns a part of them, taken evenly, is counted (`Facets.every`).

        Args:
            wanted: Which turns.
        """
        with self.reading() as connection:
            return FacetCounter(self, connection).count(wanted)


def _spelled(where: Sequence[tuple[str, str]], name: str) -> list[str]:
    """The values asked for under a name; a truth value as either database and Python write it."""
    bools = {"True": ("True", "true", "1"), "False": ("False", "false", "0")}
    return [form for own, value in where if own == name for form in bools.get(value, (value,))]
