"""What every database owes to report, view, labels and alarms; another one is one more entry in STORES."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from report.parts import NOON, by_judge, turn
from report.parts import screened_traffic as traffic
from servers import PostgresServer
from steelyard.errors import ConfigurationError
from steelyard.probing import baselines, check_judge, load_probes
from steelyard.record import TraceRef
from steelyard.report import (
    Label,
    ResultsReader,
    Scope,
    TurnFilter,
    build_figures,
    open_labels,
    open_results,
)
from steelyard.report.labels import LabelStore
from steelyard.report.planning import plan_judging
from steelyard.report.queries import EVIDENCE, StoredCanaries
from steelyard.scores import Cause, Diagnosis, Evaluation, Provenance, Score, Usage
from steelyard.sinks import PostgresSink, Sink, SQLiteSink


class Store(NamedTuple):
    """Where results are, and the sink that writes them there."""

    address: str
    sink: Callable[[], Sink]


@contextmanager
def sqlite(request: pytest.FixtureRequest) -> Iterator[Store]:
    folder: Path = request.getfixturevalue("tmp_path")
    file = str(folder / "results.db")
    yield Store(file, lambda: SQLiteSink(file))


@contextmanager
def postgres(request: pytest.FixtureRequest) -> Iterator[Store]:
    server: PostgresServer = request.getfixturevalue("postgres_server")
    url = server.new_database()
    yield Store(url, lambda: PostgresSink(url))


STORES = MappingProxyType({"sqlite": sqlite, "postgres": postgres})


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    with STORES[request.param](request) as made:
        write(made, [])
        yield made


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
    async def run() -> None:
        sink = store.sink()
        if monitor is not None:
            sink.observe(monitor)  # type: ignore[attr-defined]
        await sink.write(list(turns))
        await sink.aclose()

    asyncio.run(run())


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


def scored(reader: ResultsReader, scope: Scope) -> int:
    turns = reader.totals(scope).turns
    return sum(len(one.values) for one in reader.scores(scope, turns=turns).values())


def ids(rows: Sequence[object]) -> list[str]:
    return [row.record_id for row in rows]  # type: ignore[attr-defined]


def test_an_empty_store_has_no_figures_and_no_error(reader: ResultsReader, labels: LabelStore) -> None:
    assert reader.totals(Scope()).turns == 0
    assert not reader.scores(Scope(), turns=0)
    assert not reader.missing(Scope()) and not reader.made(Scope()) and not reader.runs(limit=5)
    assert reader.funnel(Scope()) is None
    assert reader.evaluation("r1") is None
    assert not reader.turns(TurnFilter()) and not reader.sample(Scope(), "faithfulness", limit=5)
    assert reader.worst(Scope(), "faithfulness", limit=5) == []
    assert reader.position() == 0 and reader.written_after(0, limit=5) == []
    assert list(labels) == labels.of("r1") == []
    assert "no evaluated turns" in build_figures(reader).notes[0]


def test_what_was_written_comes_back_whole(store: Store, reader: ResultsReader) -> None:
    made = judged(1, 0.5, question="Où ?\N{SNOWMAN}", version="v1")
    write(store, [made])
    found = reader.evaluation("r1")
    assert found is not None and found.record is not None and made.record is not None
    assert found.record.question == "Où ?\N{SNOWMAN}"
    assert found.scores[0].verdicts == made.scores[0].verdicts
    assert found.trace == made.trace and found.usage == made.usage


def test_totals_add_up_turns_tokens_and_cost(store: Store, reader: ResultsReader) -> None:
    write(store, [judged(1, 0.5), judged(2, 1.0), judged(3, None, content=False)])
    totals = reader.totals(Scope())
    assert (totals.turns, totals.with_content, totals.priced) == (3, 2, 3)
    assert (totals.requests, totals.prompt_tokens, totals.completion_tokens) == (6, 300, 30)
    assert totals.cost == pytest.approx(1.5) and totals.seconds == pytest.approx(3.0)
    assert (totals.first, totals.last) == (NOON + 60, NOON + 180)
    assert totals.median_duration == totals.high_duration == 1.0


def test_scores_come_in_order_of_time_with_what_weighs_them(store: Store, reader: ResultsReader) -> None:
    turns = [judged(n, 0.2 if n < 3 else 1.0, inclusion=1.0 if n < 3 else 0.1) for n in range(20)]
    write(store, turns[::-1])
    ((name, one),) = reader.scores(Scope(), turns=20, by="judge").items()
    assert name == "faithfulness" and one.threshold == 0.5 and one.direction == "higher"
    assert one.times.tolist() == [turn.evaluated_at for turn in turns]
    assert one.values.tolist() == [0.2] * 3 + [1.0] * 17
    assert one.inclusion.tolist() == [1.0] * 3 + [0.1] * 17
    assert one.passed.tolist() == [0.0] * 3 + [1.0] * 17 and set(one.owners) == {"chat:one"}
    assert one.every == 1 and len(one.units) == 20


@pytest.mark.parametrize(
    ("by", "groups"), [("version", ["v0", "v1"]), ("tag", ["web"]), ("framework", ["langchain"])]
)
def test_groups_are_cut_by_tag_framework_or_metadata(
    store: Store, reader: ResultsReader, by: str, groups: list[str]
) -> None:
    write(store, [judged(n, 0.5, version=f"v{n % 2}") for n in range(6)])
    assert [one.group for one in build_figures(reader, by=by).groups] == groups


@pytest.mark.parametrize(
    ("scope", "turns"),
    [
        (Scope(since=NOON + 180), 3),
        (Scope(until=NOON + 180), 3),
        (Scope(metric="faithfulness"), 6),
        (Scope(metric="other"), 0),
        (Scope(tag="web"), 6),
        (Scope(tag="w%"), 0),
    ],
)
def test_a_scope_leaves_out_the_same_turns_everywhere(
    store: Store, reader: ResultsReader, scope: Scope, turns: int
) -> None:
    write(store, [judged(n, 0.5) for n in range(6)])
    assert reader.totals(scope).turns == turns
    assert scored(reader, scope) == turns
    assert len(reader.worst(scope, "faithfulness", limit=9)) == turns
    assert len(reader.sample(scope, "faithfulness", limit=9)) == turns
    assert sum(one.scores for one in reader.made(scope)) == turns


KINDS = ("known", "told", "guessed", "none", "known", "unknown")


def of_kind(number: int) -> Evaluation:
    made = judged(number, 0.5, content=KINDS[number] != "unknown")
    source: Any = {"known": "in_prompt", "none": "retrieved"}.get(KINDS[number], KINDS[number])
    if made.record is None:
        return made
    contexts = () if KINDS[number] == "none" else made.record.contexts
    record = made.record.replace(contexts=contexts, contexts_source=source)
    return made.replace(record=record, evidence=None)


@pytest.mark.parametrize("kind", EVIDENCE)
def test_turns_are_counted_and_found_by_how_their_passages_are_known(
    store: Store, reader: ResultsReader, kind: str
) -> None:
    write(store, [of_kind(n) for n in range(6)])
    counts = {kind: KINDS.count(kind) for kind in EVIDENCE}
    assert reader.totals(Scope()).evidence == reader.totals(Scope(), brief=True).evidence == counts
    scope, turns = Scope(evidence=kind), counts[kind]
    for totals in (reader.totals(scope), reader.totals(scope, brief=True)):
        assert totals.turns == turns and totals.evidence == {kind: turns}
    assert scored(reader, scope) == turns
    assert len(reader.worst(scope, "faithfulness", limit=9)) == turns
    assert sum(one.scores for one in reader.made(scope)) == turns
    found = [n for n in range(5, -1, -1) if KINDS[n] == kind]
    assert ids(reader.turns(TurnFilter(evidence=kind))) == [f"r{n}" for n in found]


def test_the_kind_of_evidence_stays_where_content_is_not_stored(store: Store, reader: ResultsReader) -> None:
    write(store, [of_kind(2).replace(record=None)])
    (found,) = (reader.evaluation("r2"),)
    assert found is not None and found.record is None and found.evidence == "guessed"
    assert reader.totals(Scope(metric="faithfulness", tag=None)).evidence == {"guessed": 1}


def suffering(number: int, cause: Cause | None) -> Evaluation:
    return judged(number, 0.5).replace(diagnosis=Diagnosis(cause=cause))


def test_turns_are_found_by_their_session(store: Store, reader: ResultsReader) -> None:
    write(store, [judged(number, 0.5).replace(session=f"s{number % 2}") for number in range(4)])
    assert [one.record_id for one in reader.turns(TurnFilter(session="s1"))] == ["r3", "r1"]
    before_all = (float("-inf"), "")
    assert [one.record_id for one in reader.turns(TurnFilter(session="s0"), after=before_all)] == ["r2", "r0"]


def test_turns_are_counted_and_found_by_what_they_suffer_from(store: Store, reader: ResultsReader) -> None:
    write(store, [suffering(1, "invented"), suffering(2, "invented"), suffering(3, None), judged(4, 0.5)])
    assert reader.causes(Scope()) == {"invented": (2, "r2"), "fine": (1, "r3")}
    assert [one.record_id for one in reader.turns(TurnFilter(cause="invented"))] == ["r2", "r1"]
    groups = build_figures(reader, by="cause").groups
    assert [(one.group, one.estimate.n) for one in groups] == [("fine", 1), ("invented", 2)], (
        "beside the fine"
    )
    write(store, [suffering(1, None)])
    assert reader.causes(Scope()) == {"fine": (2, "r3"), "invented": (1, "r2")}, (
        "a turn judged again counts once"
    )


def test_scores_without_a_value_are_counted_by_cause(store: Store, reader: ResultsReader) -> None:
    write(store, [judged(1, 0.5), judged(2, None), judged(3, None)])
    (missing,) = reader.missing(Scope())
    assert (missing.metric, missing.status, missing.cause) == ("faithfulness", "failed", "timeout")
    assert missing.count == 2 and missing.explanation == "the judge did not answer in time"


def test_the_worst_turns_come_first_whichever_way_is_better(store: Store, reader: ResultsReader) -> None:
    write(store, [judged(n, n / 10) for n in (5, 1, 3)])
    assert ids(reader.worst(Scope(), "faithfulness", limit=2)) == ["r1", "r3"]
    noisy = [
        replace(
            judged(n, None),
            scores=(Score(id=f"n{n}", metric="noise", status="scored", value=n / 10, direction="lower"),),
        )
        for n in (6, 8, 7)
    ]
    write(store, noisy)
    assert ids(reader.worst(Scope(), "noise", limit=2)) == ["r8", "r7"]


def test_a_sample_is_the_latest_scores_with_what_slices_are_cut_by(
    store: Store, reader: ResultsReader
) -> None:
    write(store, [judged(n, n / 10, version="v1", inclusion=0.5) for n in range(5)])
    found = reader.sample(Scope(), "faithfulness", limit=2)
    assert [one.value for one in found] == [0.3, 0.4]
    assert found[0].inclusion == 0.5 and found[0].question.startswith("What is")
    assert found[0].attributes == {"tag": ["web"], "framework": ["langchain"], "version": ["v1"]}


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (TurnFilter(), [5, 4, 3, 2, 1, 0]),
        (TurnFilter(status="not_passed"), [4, 3, 2, 1, 0]),
        (TurnFilter(status="passed"), [5]),
        (TurnFilter(version="v1", tag="web"), [5, 3, 1]),
        (TurnFilter(route="/ask"), [5, 4, 3, 2, 1, 0]),
        (TurnFilter(text="WHERE IS 4?"), [4]),
        (TurnFilter(text="%"), []),
        (TurnFilter(text="_"), []),
        (TurnFilter(judge="chat:one", metric="faithfulness"), [5, 4, 3, 2, 1, 0]),
        (TurnFilter(judge="nobody"), []),
        (TurnFilter(trace=f"{3:032x}"), [3]),
        (TurnFilter(version="'; DROP TABLE scores; --"), []),
    ],
)
def test_a_filter_finds_its_turns_newest_first(
    store: Store, reader: ResultsReader, wanted: TurnFilter, found: list[int]
) -> None:
    write(
        store,
        [judged(n, n / 10, question=f"Where is {n}?", version=f"v{n % 2}", route="/ask") for n in range(6)],
    )
    rows = reader.turns(wanted)
    assert ids(rows) == [f"r{n}" for n in found]
    if found:
        assert rows[0].scores == (("faithfulness", found[0] / 10, found[0] >= 5, "scored"),)


def test_pages_follow_each_other_without_a_gap_or_a_repeat(store: Store, reader: ResultsReader) -> None:
    write(store, [replace(judged(n, 0.5), evaluated_at=NOON + n // 3) for n in range(10)])
    seen: list[str] = []
    key = None
    while page := reader.turns(TurnFilter(), before=key, limit=3):
        seen += ids(page)
        key = page[-1].key
        write(store, [replace(judged(50 + len(seen), 0.5), evaluated_at=NOON + 100)])  # not seen any more
    assert len(seen) == len(set(seen)) == 10
    assert ids(reader.turns(TurnFilter(), after=(NOON + 2, "r7"), limit=2)) == ["r9", "r8"]


def test_what_is_new_is_given_once_and_what_is_judged_again_comes_again(
    store: Store, reader: ResultsReader
) -> None:
    write(store, [judged(1, 0.1), judged(2, 0.2)])
    found = reader.written_after(0, limit=9)
    assert ids([one for _, one in found]) == ["r1", "r2"]
    assert [at for at, _ in found] == sorted(at for at, _ in found)
    assert found[-1][0] == reader.position()
    assert ids([one for _, one in reader.written_after(0, limit=1)]) == ["r1"]
    write(store, [judged(1, 0.9)])
    ((at, again),) = reader.written_after(found[-1][0], limit=9)
    assert again.scores[0].value == 0.9 and at == reader.position()
    assert len(reader.written_after(0, limit=9)) == 2


def test_judging_again_replaces_a_result(store: Store, reader: ResultsReader) -> None:
    write(store, [judged(1, 0.1)])
    write(store, [judged(1, 0.9)])
    (one,) = reader.scores(Scope(), turns=1).values()
    assert one.values.tolist() == [0.9]


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
        ("Bob", "bad"),
        ("Ann", "supported"),
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


def test_labels_do_not_stand_in_the_way_of_results(store: Store, labels: LabelStore) -> None:
    labels.put([label("r1", "good")])
    write(store, [judged(1, 0.5)])
    assert [one.record_id for one in labels] == ["r1"]


def test_an_address_of_an_unknown_kind_is_refused_without_its_password() -> None:
    with pytest.raises(ConfigurationError, match="nosuch://") as refused:
        open_results("nosuch://me:hunter2@there/db")
    assert "hunter2" not in str(refused.value)
    with pytest.raises(ConfigurationError, match="nosuch://"):
        open_labels("nosuch://me:hunter2@there/db")


def test_the_pages_beside_the_first_one_get_the_same_from_every_database(
    store: Store, reader: ResultsReader
) -> None:
    assert (reader.scored(), reader.spending(), reader.sessions("worst")) == ({}, [], [])
    turns = [
        by_judge(turn(n, n / 10, at=NOON + n * 9_000, version=f"v{n % 2}", question=f"Q{n}")).replace(
            session=f"s{n // 4}", usage=Usage(requests=1, prompt_tokens=10, cost=None if n == 9 else 0.5)
        )
        for n in range(10)
    ]
    write(store, turns)
    assert reader.scored() == {"faithfulness": 10}
    assert [(record, value) for record, value, _ in reader.judged("faithfulness", limit=2)] == [
        ("r9", 0.9),
        ("r8", 0.8),
    ]
    assert reader.groups_seen("version") == ["v1", "v0"]
    assert (reader.groups_seen("judge"), reader.groups_seen("tag")) == (["local-lexical"], ["web"])
    scope = Scope(since=NOON + 9_000, until=NOON + 8 * 9_000)
    for by, value, wanted in (
        ("version", "v1", ["r7", "r5", "r3", "r1"]),
        ("tag", "web", ["r7", "r6", "r5", "r4", "r3", "r2", "r1"]),
        ("judge", "none", []),
    ):
        found = reader.group_scores("faithfulness", scope, by=by, value=value, limit=99)
        assert [score.record_id for score in found] == wanted
    assert (found, len(reader.group_scores("faithfulness", Scope(), by="", value="", limit=99))) == ([], 10)
    days = reader.spending()
    assert [(day.name, day.turns, day.cost) for day in days] == [
        ("2025-10-09", 7, 3.5),
        ("2025-10-10", 3, 1.0),
    ]
    (metric,) = reader.spending_by_metric()
    assert (metric.name, metric.turns, metric.cost, metric.priced) == ("faithfulness", 10, 4.5, 9)
    latest = reader.sessions("latest")
    assert [(one.session, one.turns, one.bad, one.question) for one in latest] == [
        ("s2", 2, 0, "Q8"),
        ("s1", 4, 1, "Q4"),
        ("s0", 4, 4, "Q0"),
    ]
    assert latest[1].course == (False, True, True, True)
    assert [one.session for one in reader.sessions("worst", skip=1, limit=1)] == ["s1"]


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
