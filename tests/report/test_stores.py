"""What every database owes to report, view, labels and alarms; another one is one more entry in STORES."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import fields, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pytest

import writing
from report.parts import NOON, turn
from report.parts import screened_traffic as traffic
from servers import PostgresServer
from steelyard.errors import ConfigurationError
from steelyard.probing import baselines, check_judge, load_probes
from steelyard.record import TraceRef
from steelyard.report import TurnFilter, build_figures, open_results
from steelyard.report.planning import plan_judging
from steelyard.results import ResultsReader, _lists, open_labels
from steelyard.results.labels import Label, LabelStore
from steelyard.results.queries import Scope, ScreenedTurns, StoredCanaries
from steelyard.scores import Evaluation, Provenance, Usage
from steelyard.sinks import PostgresSink, Sink, SQLiteSink


def test_a_part_of_screened_turns_stands_for_all_of_them() -> None:
    count = 12
    inclusion = np.where(np.arange(count) % 3 == 0, 0.5, np.nan)  # one in three was judged
    columns = {field.name: np.linspace(0.1, 1.0, count) for field in fields(ScreenedTurns)}
    turns = ScreenedTurns(**(columns | {"inclusion": inclusion, "screened": np.full(count, 0.8)}))
    part = turns.part([0, 1, 3, 4, 11], judged_every=2, every=4)
    assert part.inclusion.tolist() == pytest.approx([0.25, math.nan, 0.25, math.nan, math.nan], nan_ok=True)
    assert part.screened.tolist() == pytest.approx([0.4, 0.2, 0.4, 0.2, 0.2])
    assert part.times.tolist() == turns.times[[0, 1, 3, 4, 11]].tolist()


class Store(NamedTuple):
    """Where results are, and the sink that writes them there."""

    address: str
    sink: Callable[[], Sink]


@contextmanager
def sqlite(request: pytest.FixtureRequest) -> Iterator[Store]:
    factory: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
    file = str(factory.mktemp("results") / "results.db")
    yield Store(file, lambda: SQLiteSink(file))


@contextmanager
def postgres(request: pytest.FixtureRequest) -> Iterator[Store]:
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.new_database()
    yield Store(url, lambda: PostgresSink(url))


STORES = MappingProxyType({"sqlite": sqlite, "postgres": postgres})


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    with STORES[request.param](request) as made:
        write(made, [])
        yield made


def test_the_value_that_is_asked_for_is_told_however_many_are_more_frequent(store: Store) -> None:
    often = [(f"v{number:02}", 2) for number in range(80)]
    turns = [value for value, count in [*often, ("rare", 1)] for _ in range(count)]
    write(store, [turn(number, 0.5, kind=value) for number, value in enumerate(turns)])
    with closing(open_results(store.address)) as reader:
        facets = reader.facets(TurnFilter(where=(("kind", "rare"), ("kind", "never"))))
    (kind,) = [one.counts for one in facets.facets if one.name == "kind"]
    assert (kind["rare"], kind["never"]) == (1, 0) and len(kind) < len(often)


def test_a_tag_that_a_turn_has_twice_counts_once(store: Store) -> None:
    one = turn(0, 0.5)
    assert one.record is not None
    write(store, [one.replace(record=one.record.replace(tags=("new", "new", "vip")))])
    with closing(open_results(store.address)) as reader:
        facets = reader.facets(TurnFilter(tag="new"))
        groups = reader.groups_of(Scope(), "tag")
    (counts,) = [found.counts for found in facets.facets if found.name == "tag"]
    assert counts == {"new": 1, "vip": 1}
    assert sorted(groups[one.record_id]) == ["new", "vip"]


@pytest.fixture
def reader(store: Store) -> Iterator[ResultsReader]:
    with closing(open_results(store.address)) as opened:
        yield opened


@pytest.fixture
def labels(store: Store) -> LabelStore:
    return open_labels(store.address)


class Counted:
    """A Monitor as a sink sees it."""

    class Stats(NamedTuple):
        seen: int = 10
        accepted: int = 3
        pending: int = 1
        evaluated: int = 2
        abandoned: int = 0
        spooled: int = 0
        skipped: object = MappingProxyType({"sampled_out": 7})
        dead: object = MappingProxyType({})
        canaries: object = StoredCanaries(
            judge="j", state="changed", probes=9, asked=50, right=30, low=0.4, high=0.7, changed_at=NOON
        )

    def stats(self) -> Stats:
        return self.Stats()


def write(store: Store, turns: Sequence[Evaluation], *, monitor: object = None) -> None:
    sink = store.sink()
    if monitor is not None:
        sink.observe(monitor)  # type: ignore[attr-defined]
    writing.write(sink, *turns)


def judged(number: int, value: float | None, *, judge: str = "chat:one", **options: object) -> Evaluation:
    made = turn(number, value, at=NOON + 60 * number, **options)  # type: ignore[arg-type]
    (score,) = made.scores
    return replace(
        made,
        scores=(replace(score, id=f"s{number}", provenance=Provenance(judge=judge, prompt_version="3")),),
        usage=Usage(requests=2, prompt_tokens=100, completion_tokens=10, cost=0.5, seconds=1.0),
        trace=TraceRef(trace_id=f"{number:032x}", framework="langchain"),
    )


def label(
    record: str,
    value: str,
    *,
    at: float = 1.0,
    who: str = "Ann",
    claim: int | None = None,
    drawn: float | None = None,
) -> Label:
    metric = None if claim is None else "faithfulness"
    return Label(
        record_id=record,
        value=value,  # type: ignore[arg-type]
        who=who,
        labelled_at=at,
        claim=claim,
        metric=metric,
        note="näh ✓",
        drawn=drawn,
    )


def test_an_empty_store_has_no_figures_and_no_error(reader: ResultsReader, labels: LabelStore) -> None:
    assert reader.totals(Scope()).turns == 0
    assert not reader.scores(Scope(), turns=0)
    assert (reader.scored(), reader.spending(), reader.sessions("worst")) == ({}, [], [])
    assert not reader.missing(Scope()) and not reader.made(Scope()) and not reader.runs(limit=5)
    assert reader.funnel(Scope()) is None
    assert reader.evaluation("r1") is None
    assert not reader.turns(TurnFilter()) and not reader.sample(Scope(), "faithfulness", limit=5)
    assert reader.worst(Scope(), "faithfulness", limit=5) == []
    assert reader.position() == 0 and reader.written_after(0, limit=5) == []
    assert list(labels) == labels.of("r1") == []
    assert "no evaluated turns" in build_figures(reader).notes[0]


def test_what_is_new_is_given_once_and_what_is_judged_again_comes_again(
    store: Store, reader: ResultsReader
) -> None:
    write(store, [judged(1, 0.1), judged(2, 0.2)])
    found = reader.written_after(0, limit=9)
    assert [one.record_id for _, one in found] == ["r1", "r2"]
    assert [at for at, _ in found] == sorted(at for at, _ in found)
    assert found[-1][0] == reader.position()
    assert [one.record_id for _, one in reader.written_after(0, limit=1)] == ["r1"]
    write(store, [judged(1, 0.9)])
    ((at, again),) = reader.written_after(found[-1][0], limit=9)
    assert again.scores[0].value == 0.9 and at == reader.position()
    assert len(reader.written_after(0, limit=9)) == 2


def test_the_counts_of_monitors_are_added_up_and_listed(store: Store, reader: ResultsReader) -> None:
    first, second = Counted(), Counted()
    write(store, [judged(1, 0.5)], monitor=first)
    write(store, [judged(2, 0.5)], monitor=second)
    funnel = reader.funnel(Scope())
    assert funnel is not None and (funnel.runs, funnel.seen, funnel.accepted) == (2, 20, 6)
    assert funnel.skipped == {"sampled_out": 14}
    runs = reader.runs(limit=9)
    assert len(runs) == 2 and runs[0].updated_at >= runs[1].updated_at
    assert runs[0].counts.seen == 10 and runs[0].pid > 0 and runs[0].started_at <= runs[0].updated_at
    assert len(reader.runs(limit=1)) == 1
    assert runs[0].canaries == Counted.Stats().canaries


def test_a_later_word_of_the_same_person_replaces_the_earlier_one(labels: LabelStore) -> None:
    first = [label("r1", "good"), label("r1", "bad", who="Bob"), label("r1", "supported", claim=0)]
    assert labels.put(first) == 3
    assert labels.put([label("r1", "bad", at=2.0), label("r1", "bad", who="Bob", at=0.5)]) == 1
    assert [(one.who, one.value) for one in labels.of("r1")] == [
        ("Ann", "supported"),
        ("Bob", "bad"),
        ("Ann", "bad"),
    ]
    assert labels.of("r2") == [] and len(list(labels)) == 3
    assert {one.note for one in labels} == {"näh ✓"}


def test_a_turn_that_was_drawn_stays_so_whoever_labels_it_later(labels: LabelStore) -> None:
    labels.put([label("r1", "good", drawn=0.25), label("r2", "good")])
    labels.put([label("r1", "bad", at=2.0)])
    assert [(one.value, one.drawn) for one in labels] == [("good", None), ("bad", 0.25)]


def test_a_word_can_be_taken_back(labels: LabelStore) -> None:
    labels.put([label("r1", "good"), label("r1", "supported", claim=0)])
    labels.remove("r1", metric=None, claim=None, who="Bob")
    assert [one.value for one in labels.of("r1")] == ["good", "supported"]
    labels.remove("r1", metric=None, claim=None, who="Ann")
    assert [one.value for one in labels.of("r1")] == ["supported"]
    labels.remove("r1", metric="faithfulness", claim=0, who="Ann")
    assert list(labels) == []


def test_labels_are_stored_all_or_none(labels: LabelStore) -> None:
    def some() -> Iterator[Label]:
        yield label("r1", "good")
        raise RuntimeError("the file of labels ended")

    with pytest.raises(RuntimeError):
        labels.put(some())
    assert list(labels) == []


def test_an_address_of_an_unknown_kind_is_refused_without_its_password() -> None:
    with pytest.raises(ConfigurationError, match="nosuch://") as refused:
        open_results("nosuch://me:hunter2@there/db")
    assert "hunter2" not in str(refused.value)
    with pytest.raises(ConfigurationError, match="nosuch://"):
        open_labels("nosuch://me:hunter2@there/db")
    with pytest.raises(ConfigurationError, match=r"nosuch|cannot be read") as known:
        open_results("PostgreSQL://me:hunter2@127.0.0.1:1/db")
    assert "nosuch" not in str(known.value) and "hunter2" not in str(known.value)


def test_two_judges_are_read_alike_from_every_store(store: Store) -> None:
    turns = traffic()[:600]
    write(store, turns)
    with closing(open_results(store.address)) as reader:
        (one,) = build_figures(reader, by="customer").metrics
        (plan,) = plan_judging(reader, margin=0.05)
        (seen,) = reader.screened(Scope(), limit=1000).values()
        assert len(reader.unjudged(Scope(), "faithfulness", limit=1000, every=1)) + one.estimate.n == 600
        assert 150 < len(reader.unjudged(Scope(), "faithfulness", limit=1000, every=2)) < 350
    assert one.screen is not None and one.screen.cheap.n == 600 == len(seen.records)
    assert one.estimate.n == sum(bool(turn.scores) for turn in turns)
    assert one.estimate.margin < one.screen.dear.margin and plan.screened is not None
    stored = {turn.record_id: turn for turn in turns}
    with closing(open_results(store.address)) as reader:
        found = reader.evaluation("r7")
    assert found is not None and found.screen == stored["r7"].screen and found.scores == stored["r7"].scores


def test_what_probes_say_of_a_judge_is_kept_beside_results(
    store: Store, reader: ResultsReader, labels: LabelStore
) -> None:
    assert reader.checks() == []
    probes = load_probes()
    check = check_judge(baselines(probes.probes)[0], probes)
    for at in (NOON, NOON + 1):
        labels.put_check(check, checked_at=at)
    latest, before = reader.checks()
    assert (latest.checked_at, before.checked_at) == (NOON + 1, NOON)
    assert (latest.judge, latest.published, latest.right) == ("word-overlap", True, check.overall.right)
    assert latest.kinds == {kind: one.right for kind, one in check.kinds.items()}


def test_of_many_turns_an_even_part_is_counted_whatever_comes_round_in_them(
    store: Store, reader: ResultsReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_lists, "LOOK", 100)
    monkeypatch.setattr(_lists, "_PART", 100)
    monkeypatch.setattr(_lists, "_ENOUGH", 10)
    write(store, [judged(number, 0.5, place=f"p{number % 4}") for number in range(400)])
    found = reader.facets(TurnFilter())
    (place,) = [one for one in found.facets if one.name == "place"]
    assert (found.turns, found.every) == (400, 4)
    assert len(place.counts) == 4 and all(40 <= count <= 200 for count in place.counts.values())
    few = reader.facets(TurnFilter(where=(("place", "p1"),), until=NOON + 60 * 40))
    assert (few.turns, few.every) == (10, 1)
