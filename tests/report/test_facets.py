"""What a list of turns is narrowed by and ranked by, in every kind of store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from report.parts import NOON
from report.test_stores import Store, ids, judged, label, labels, reader, store, write
from steelyard.report import ResultsReader, TurnFilter
from steelyard.report.labels import LabelStore
from steelyard.report.stores import _facets
from steelyard.scores import Diagnosis, Evaluation, Score

__all__ = ["labels", "reader", "store"]


def made(number: int) -> Evaluation:
    """Turns 0 to 11: every third of another team, every second in beta, of one judge or another."""
    one = judged(
        number,
        number / 12,
        judge=f"judge {number % 2}",
        version=f"v{number // 6}",
        team=f"team {number % 3}",
        beta=number % 2 == 0,
    )
    assert one.record is not None
    noise = Score(id=f"n{number}", metric="noise", status="scored", value=number % 5 / 5, direction="lower")
    return replace(
        one,
        scores=(*one.scores, noise) if number > 8 else one.scores,
        record=one.record.replace(tags=("web",) if number % 4 else ("phone", "vip")),
        tenant="acme" if number < 2 else None,
        diagnosis=Diagnosis(cause="invented", rule="no_passage") if number < 5 else Diagnosis(),
        duration=float(number),
    )


@pytest.fixture
def dozen(store: Store, labels: LabelStore) -> None:
    write(store, [made(number) for number in range(12)])
    labels.put(
        [label("r1", "good"), label("r1", "not_supported", claim=0), replace(label("r2", "bad"), note="")]
    )


def numbers(rows: object) -> list[int]:
    return [int(one.removeprefix("r")) for one in ids(rows)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (TurnFilter(tag=("vip", "phone")), [8, 4, 0]),
        (TurnFilter(tag=("vip", "web"), version="v0"), [5, 4, 3, 2, 1, 0]),
        (TurnFilter(tag=("none", "nothing")), []),
        (TurnFilter(judge=("judge 0", "judge 1"), version=("v0", "v1"), tag="vip"), [8, 4, 0]),
        (TurnFilter(metric=("noise", "other")), [11, 10, 9]),
        (TurnFilter(status=("failed", "passed"), metric="faithfulness"), [11, 10, 9, 8, 7, 6]),
        (TurnFilter(cause=("invented", "evasive"), since=NOON + 120, until=NOON + 240), [3, 2]),
        (TurnFilter(tag="web", since=NOON + 540), [11, 10, 9]),
        (TurnFilter(where=(("team", "team 1"), ("team", "team 2")), version="v0"), [5, 4, 2, 1]),
        (TurnFilter(where=(("team", "team 1"), ("beta", "True"))), [10, 4]),
        (TurnFilter(where=(("tenant", "acme"),)), [1, 0]),
        (TurnFilter(where=(("framework", "langchain"), ("team", "'; DROP TABLE scores; --"))), []),
        (TurnFilter(label="good"), [1]),
        (TurnFilter(label=("not_supported", "bad")), [2, 1]),
        (TurnFilter(noted=True), [1]),
    ],
)
@pytest.mark.usefixtures("dozen")
def test_a_turn_has_any_value_of_each_facet_that_is_asked_for(
    reader: ResultsReader, wanted: TurnFilter, found: list[int]
) -> None:
    assert numbers(reader.turns(wanted)) == found


@pytest.mark.usefixtures("dozen")
def test_a_list_is_ranked_by_a_metric_the_worst_first_or_by_what_it_took(reader: ResultsReader) -> None:
    vip = TurnFilter(tag="vip")
    assert numbers(reader.ranked(vip, "faithfulness")) == [0, 4, 8]
    assert numbers(reader.ranked(vip, "faithfulness", reverse=True)) == [8, 4, 0]
    assert numbers(reader.ranked(TurnFilter(), "noise")) == [9, 11, 10]  # lower is better; later comes first
    assert numbers(reader.ranked(TurnFilter(), "faithfulness", offset=10, limit=5)) == [10, 11]
    assert numbers(reader.ranked(TurnFilter(), "duration", limit=2)) == [11, 10]
    (row,) = reader.ranked(TurnFilter(where=(("tenant", "acme"),)), "duration", limit=1)
    assert (row.cause, row.duration, row.attributes["tenant"]) == ("invented", 1.0, ["acme"])


def counts_of(reader: ResultsReader, wanted: TurnFilter) -> Mapping[str, Mapping[str, int]]:
    return {one.name: dict(one.counts) for one in reader.facets(wanted).facets}


@pytest.mark.usefixtures("dozen")
def test_facets_count_turns_and_keep_the_alternatives_of_what_is_chosen(reader: ResultsReader) -> None:
    found = counts_of(reader, TurnFilter())
    assert found["tag"] == {"web": 9, "phone": 3, "vip": 3}
    assert found["team"] == {"team 0": 4, "team 1": 4, "team 2": 4}
    assert found["metric"] == {"faithfulness": 12, "noise": 3}
    assert found["status"] == {"not_passed": 6, "passed": 6}
    assert found["cause"] == {"invented": 5, "fine": 7}
    assert found["label"] == {"good": 1, "not_supported": 1, "bad": 1}
    assert found["noted"] == {"with a note": 1}
    narrowed = counts_of(reader, TurnFilter(tag="vip", where=(("team", "team 0"), ("team", "team 9"))))
    assert narrowed["team"] == {"team 0": 1, "team 1": 1, "team 2": 1, "team 9": 0}
    assert narrowed["tag"] == {"web": 3, "phone": 1, "vip": 1}
    assert reader.facets(TurnFilter(tag="none")).turns == 0
    assert counts_of(reader, TurnFilter(metric="noise", judge="judge 0"))["judge"] == {"judge 0": 0}


def test_of_many_turns_an_even_part_is_counted_whatever_comes_round_in_them(
    store: Store, reader: ResultsReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_facets, "LOOK", 100)
    monkeypatch.setattr(_facets, "_PART", 100)
    monkeypatch.setattr(_facets, "_ENOUGH", 10)
    write(store, [judged(number, 0.5, place=f"p{number % 4}") for number in range(400)])
    found = reader.facets(TurnFilter())
    (place,) = [one for one in found.facets if one.name == "place"]
    assert (found.turns, found.every) == (400, 4)
    assert len(place.counts) == 4 and all(40 <= count <= 200 for count in place.counts.values())
    few = reader.facets(TurnFilter(where=(("place", "p1"),), until=NOON + 60 * 40))
    assert (few.turns, few.every) == (10, 1)
