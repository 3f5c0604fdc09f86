"""Every store answers as a plain list of turns would, whatever it is asked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from statistics import fmean
from typing import Any, NamedTuple

import pytest

from report.parts import NOON
from report.test_stores import STORES, Store, label, write
from steelyard.record import Context, Record, Timings, TraceRef
from steelyard.report import TurnFilter, open_results
from steelyard.results import ResultsReader, open_labels
from steelyard.results.labels import Label
from steelyard.results.looks import ORDERS
from steelyard.results.queries import EVIDENCE, STATUSES, Scope, TurnRow
from steelyard.scores import Diagnosis, Evaluation, Evidence, Provenance, Score, Usage, Verdict

METRICS = ("faithfulness", "noise", "own")
JUDGES = ("chat:one", "chat:two", None)
WORDS = ("Where is the harbour?", "WHERE is 100% of it?", "a_b", "a!b", "Wo ist Ähre?", "")
TIMES = tuple(NOON + 3600 * hour for hour in range(0, 120, 5))
ASKED = 100


class Turns(NamedTuple):
    """What was stored, as it is known without a database."""

    reader: ResultsReader
    turns: Sequence[Evaluation]
    labels: Sequence[Label]


def made(draw: Random, number: int) -> Evaluation:
    """A turn of which anything may be missing."""
    some = draw.choice
    metadata = {
        "version": some(["v1", "v2", "v3"]),
        "team": some(["a", "b", "c'"]),
        "beta": some([True, False]),
        "long": "x" * 81,
        "part": 0.5,
    }
    if draw.random() < 0.7:
        metadata["route"] = some(["/ask", "/chat"])
    source: Any = some(["in_prompt", "told", "guessed", "retrieved"])
    record = Record(
        id=f"r{number:03}",
        question=some(WORDS),
        answer=some(WORDS),
        contexts=(Context(text="c"),) if draw.random() < 0.8 else (),
        contexts_source=source,
        tags=tuple(draw.sample(["web", "vip", "phone"], draw.randint(0, 3))),
        metadata=metadata,
        session=some(["s1", "s2", "s3", None]),
        tenant=some(["acme", "bolt", None]),
        timings=Timings(started_at=TIMES[number * 7 % len(TIMES)]),
        trace=TraceRef(trace_id=f"{number % 40:032x}", framework=some(["langchain", "llamaindex"])),
    )
    one = Evaluation(
        record_id=record.id,
        record=record,
        scores=tuple(scored(draw, metric) for metric in draw.sample(METRICS, draw.randint(0, 3))),
        usage=Usage(
            requests=draw.randint(0, 5),
            prompt_tokens=draw.randint(0, 999),
            completion_tokens=draw.randint(0, 99),
            cost=some([None, 0.25, 0.5]),
            seconds=draw.random(),
        ),
        trace=record.trace,
        evaluated_at=some(TIMES) + 7,
        duration=draw.random(),
        diagnosis=some([None, Diagnosis(), Diagnosis(cause="invented"), Diagnosis(cause="evasive")]),
    )
    return one if draw.random() < 0.8 else replace(one, record=None)


def scored(draw: Random, metric: str) -> Score:
    judge = draw.choice(JUDGES)
    way: dict[str, Any] = {
        "direction": "lower" if metric == "noise" else "higher",
        "provenance": judge and Provenance(judge=judge, prompt_version=draw.choice("12")),
        "inclusion_probability": draw.choice([0.25, 0.5, 1.0]),
    }
    if draw.random() < 0.25:
        lack: Any = draw.choice([Score.failed, Score.not_applicable])
        cause = draw.choice(["timeout", "missing_reference"])
        made: Score = lack(metric, cause=cause, explanation="why")
        return replace(made, **way)
    value = draw.choice([-0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5] if metric == "own" else [0.0, 0.25, 0.5, 1.0])
    passed = draw.choice([True, False, None])
    threshold = None if passed is None else 0.5
    evidence = (Evidence(context=0),)
    verdict = Verdict(about="näh ✓", kind="supported", value=True, reason="so", evidence=evidence)
    return Score(
        metric=metric,
        status="scored",
        value=value,
        passed=passed,
        threshold=threshold,
        verdicts=(verdict,),
        **way,
    )


def stored() -> list[list[Evaluation]]:
    """Several writes, in which some turns are judged again."""
    draw = Random(11)
    return [[made(draw, number) for number in range(start, start + 60)] for start in (0, 40, 80, 0)]


def said() -> list[Label]:
    words = ("good", "bad", "supported", "not_supported")
    given = [
        label(f"r{n:03}", words[n % 4], at=TIMES[n % 24], claim=0 if n % 4 > 1 else None)
        for n in range(0, 140, 3)
    ]
    return [replace(one, note="" if place % 2 else one.note) for place, one in enumerate(given)]


@pytest.fixture(scope="module", params=STORES)
def known(request: pytest.FixtureRequest) -> Iterator[Turns]:
    with STORES[request.param](request) as store, closing(filled(store)) as reader:
        yield Turns(reader, sorted(now().values(), key=key), said())


def filled(store: Store) -> ResultsReader:
    for some in stored():
        write(store, some)
    open_labels(store.address).put(said())
    return open_results(store.address)


def now() -> dict[str, Evaluation]:
    """The turns by id, as they are in the end."""
    turns: dict[str, Evaluation] = {}
    for some in stored():
        turns |= {one.record_id: judged_anew(one, turns.get(one.record_id)) for one in some}
    return turns


def judged_anew(one: Evaluation, before: Evaluation | None) -> Evaluation:
    """The turn as it is now; scores of metrics that were not asked for again stay."""
    metrics = {score.metric for score in one.scores}
    stay = [score for score in before.scores if score.metric not in metrics] if before else []
    return replace(one, scores=(*one.scores, *stay))


def key(one: Evaluation) -> tuple[float, str]:
    assert one.happened_at is not None
    return one.happened_at, one.record_id


# What a turn has under each name that is asked for, read off the Evaluation.


def evidence_of(one: Evaluation) -> str:
    return one.evidence or "unknown"


def cause_of(one: Evaluation) -> str | None:
    return (one.diagnosis.cause or "fine") if one.diagnosis else None


def attribute(one: Evaluation, name: str) -> list[str]:
    if name == "tenant":
        return [one.tenant] if one.tenant else []
    if name == "framework":
        return [one.trace.framework] if one.trace and one.trace.framework else []
    if one.record is None:
        return []
    if name == "tag":
        return list(one.record.tags)
    return [str(one.record.metadata[name])] if name in one.record.metadata else []


def status_of(score: Score) -> str:
    if score.status != "scored":
        return score.status
    return {True: "passed", False: "not_passed", None: ""}[score.passed]


def judge_of(score: Score) -> str | None:
    return score.provenance.judge if score.provenance else None


def fits(one: Evaluation, wanted: TurnFilter, labels: Sequence[Label]) -> bool:
    """Whether a plain list would keep this turn."""

    def any_of(field: str, values: Iterable[str | None]) -> bool:
        return not wanted.chosen(field) or bool(set(wanted.chosen(field)) & set(values))

    own = [label for label in labels if label.record_id == one.record_id]
    of_scores = wanted.metric or wanted.status or wanted.judge
    named = {name: {value for by, value in wanted.where if by == name} for name, _ in wanted.where}
    low = wanted.text.casefold()
    content = [one.record.question, one.record.answer] if one.record else []
    return (
        (wanted.since is None or key(one)[0] >= wanted.since)
        and (wanted.until is None or key(one)[0] < wanted.until)
        and all(any_of(name, attribute(one, name)) for name in ("tag", "version", "route"))
        and any_of("evidence", [evidence_of(one)])
        and any_of("cause", [cause_of(one)])
        and any_of("session", [one.session])
        and any_of("label", [label.value for label in own])
        and (not wanted.noted or any(label.note for label in own))
        and (not wanted.trace or (one.trace is not None and one.trace.trace_id == wanted.trace))
        and all(values & set(attribute(one, name)) for name, values in named.items())
        and (not low or any(low in text.casefold() for text in content))
        and (
            not of_scores
            or any(
                any_of("metric", [score.metric])
                and any_of("status", [status_of(score)])
                and any_of("judge", [judge_of(score)])
                for score in one.scores
            )
        )
    )


def some_of(draw: Random, values: Sequence[str]) -> Any:
    """One of them, or several."""
    found = tuple(draw.sample(list(values), draw.randint(1, 2)))
    return found if len(found) > 1 or draw.random() < 0.5 else found[0]


def filters(seed: int) -> Iterator[TurnFilter]:
    """What somebody might ask for: up to three things at a time."""
    draw = Random(seed)
    choices: dict[str, Callable[[], Any]] = {
        "metric": lambda: some_of(draw, (*METRICS, "none")),
        "status": lambda: some_of(draw, STATUSES),
        "judge": lambda: some_of(draw, ("chat:one", "chat:two", "none")),
        "tag": lambda: some_of(draw, ("web", "vip", "phone", "none")),
        "version": lambda: some_of(draw, ("v1", "v2", "v3", "none")),
        "route": lambda: some_of(draw, ("/ask", "/chat", "none")),
        "evidence": lambda: some_of(draw, EVIDENCE),
        "cause": lambda: some_of(draw, ("invented", "evasive", "fine")),
        "label": lambda: some_of(draw, ("good", "bad", "supported", "not_supported")),
        "noted": lambda: True,
        "where": lambda: tuple(draw.sample(WHERE, draw.randint(1, 2))),
        "since": lambda: draw.choice(TIMES),
        "until": lambda: draw.choice(TIMES),
        "text": lambda: draw.choice(["where IS", "%", "_", "!", "Ähre", "nowhere"]),
        "trace": lambda: f"{draw.randint(0, 40):032x}",
        "session": lambda: some_of(draw, ("s1", "s2", "none")),
    }
    for _ in range(ASKED):
        names = draw.sample(list(choices), draw.choice([0, 1, 1, 2, 2, 3]))
        yield TurnFilter(**{name: choices[name]() for name in names})


WHERE = [
    *[("team", "a"), ("team", "b"), ("team", "c'"), ("beta", "True"), ("beta", "False")],
    *[("tenant", "acme"), ("tenant", "bolt"), ("framework", "langchain"), ("nothing", "x")],
]


def test_a_page_of_turns(known: Turns) -> None:
    draw = Random(1)
    for wanted in filters(2):
        found = [one for one in reversed(known.turns) if fits(one, wanted, known.labels)]
        place, limit = draw.choice(known.turns), draw.choice([1, 5, 500])
        older = [one for one in found if key(one) < key(place)]
        newer = [one for one in found if key(one) > key(place)]
        ways: list[tuple[dict[str, Any], Sequence[Evaluation]]] = [
            ({}, found[:limit]),
            ({"before": key(place)}, older[:limit]),
            ({"after": key(place)}, newer[-limit:]),
        ]
        way, right = draw.choice(ways)
        rows = known.reader.turns(wanted, limit=limit, **way)
        assert [row.key for row in rows] == [key(one) for one in right], (wanted, way)
        for row, one in zip(rows, right, strict=True):
            same(row, one)


def same(row: TurnRow, one: Evaluation) -> None:
    """A row says what is stored of its turn."""
    assert row.question == (one.record.question if one.record else "")
    assert row.answer == (one.record.answer if one.record else "")
    assert sorted(row.scores, key=str) == sorted(
        ((score.metric, score.value, score.passed, score.status) for score in one.scores), key=str
    )
    assert (row.cause, row.session) == (cause_of(one), one.session)
    assert (row.cost, row.duration) == (one.usage.cost, one.duration)
    for name in ("tenant", "framework", "team", "beta", "version", "route"):
        assert row.attributes.get(name, []) == attribute(one, name)
    assert row.attributes.get("tag", []) == attribute(one, "tag")
    assert not row.attributes.keys() & {"long", "part"}


def rank(one: Evaluation, by: str) -> float | None:
    """What a list is ordered by, the first the least."""
    if by == "duration":
        return -one.duration
    if by == "cost":
        return math.inf if one.usage.cost is None else -one.usage.cost
    for score in one.scores:
        if score.metric == by and score.value is not None:
            return -score.value if score.direction == "lower" else score.value
    return None


@pytest.mark.parametrize("by", [*METRICS, "cost", "duration"])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_ranked_page(known: Turns, by: str, reverse: bool) -> None:
    for wanted in [TurnFilter(), *list(filters(3))[:8]]:
        right = [
            (place, one)
            for one in known.turns
            if fits(one, wanted, known.labels) and (place := rank(one, by)) is not None
        ]
        right.sort(key=lambda pair: key(pair[1]), reverse=True)
        # What is not known comes last either way.
        right.sort(key=lambda pair: -pair[0] if reverse and pair[0] < math.inf else pair[0])
        rows = known.reader.ranked(wanted, by, reverse=reverse, offset=2, limit=7)
        assert [row.record_id for row in rows] == [one.record_id for _, one in right[2:9]], wanted


NAMES = ("evidence", "cause", "session", "tenant", "tag", "version", "route", "framework", "team", "beta")


def test_facets(known: Turns) -> None:
    for wanted in [TurnFilter(), *list(filters(4))[:40]]:
        found = known.reader.facets(wanted)
        facets = {one.name: one.counts for one in found.facets}
        turns = [one for one in known.turns if fits(one, wanted, known.labels)]
        assert (found.turns, found.every) == (len(turns), 1)
        asked = {name for name, _ in wanted.where} | {n for n in NAMES if getattr(wanted, n, "")}
        for name in set(NAMES) - asked:
            values = Counter(value for one in turns for value in set(values_of(one, name)))
            assert facets.get(name, {}) == (values if len(values) > 1 else {}), (name, wanted)
        for name in asked & set(NAMES):
            where = tuple(pair for pair in wanted.where if pair[0] != name)
            without: dict[str, Any] = {name: ""} if hasattr(wanted, name) else {"where": where}
            wider = replace(wanted, **without)
            others = [one for one in known.turns if fits(one, wider, known.labels)]
            values = Counter(value for one in others for value in set(values_of(one, name)))
            assert {value: n for value, n in facets[name].items() if n} == values, (name, wanted)
        if not (wanted.metric or wanted.judge or wanted.status):
            pairs = {(one.record_id, score.metric) for one in turns for score in one.scores}
            metrics = Counter(metric for _, metric in pairs)
            assert facets.get("metric", {}) == (metrics if len(metrics) > 1 else {})
            assert set(found.metrics) == set(metrics)
            made = {(one.record_id, s.provenance.judge) for one in turns for s in one.scores if s.provenance}
            judges = Counter(judge for _, judge in made if judge)
            assert facets.get("judge", {}) == (judges if len(judges) > 1 else {})
        if not (wanted.label or wanted.noted):
            own = {one.record_id for one in turns}
            noted = {one.record_id for one in known.labels if one.note and one.record_id in own}
            assert sum(facets.get("noted", {}).values()) == len(noted)


def values_of(one: Evaluation, name: str) -> list[str]:
    if name == "evidence":
        return [evidence_of(one)]
    if name == "cause":
        return [cause] if (cause := cause_of(one)) else []
    if name == "session":
        return [one.session] if one.session else []
    return attribute(one, name)


SCOPES = [
    Scope(),
    Scope(since=TIMES[5]),
    Scope(until=TIMES[9]),
    Scope(since=TIMES[3], until=TIMES[15], tag="vip"),
    Scope(metric="faithfulness"),
    Scope(metric="noise", tag="web"),
    Scope(metric="own", since=TIMES[2], evidence="known"),
    Scope(evidence="unknown"),
    Scope(tag="v_p"),
    Scope(tag="%"),
]


def within(one: Evaluation, scope: Scope) -> bool:
    return (
        (scope.since is None or key(one)[0] >= scope.since)
        and (scope.until is None or key(one)[0] < scope.until)
        and (scope.tag is None or scope.tag in attribute(one, "tag"))
        and (scope.evidence is None or scope.evidence == evidence_of(one))
    )


def whole(known: Turns, scope: Scope) -> list[Evaluation]:
    """The turns of a scope; of a metric those that have a score of it, whatever became of it."""
    return [
        one
        for one in known.turns
        if within(one, scope)
        and (scope.metric is None or any(score.metric == scope.metric for score in one.scores))
    ]


def pairs(known: Turns, scope: Scope) -> list[tuple[Evaluation, Score]]:
    """The scores of a scope, in order of time."""
    return [
        (one, score)
        for one in whole(known, scope)
        for score in one.scores
        if scope.metric is None or score.metric == scope.metric
    ]


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_what_a_report_asks(known: Turns, scope: Scope) -> None:
    reader, turns, scores = known.reader, whole(known, scope), pairs(known, scope)
    totals, brief = reader.totals(scope), reader.totals(scope, brief=True)
    assert (totals.turns, brief.turns) == (len(turns), len(turns))
    assert totals.with_content == sum(one.record is not None for one in turns)
    assert totals.evidence == Counter(map(evidence_of, turns))
    if turns:
        assert (
            (totals.first, totals.last) == (brief.first, brief.last) == (key(turns[0])[0], key(turns[-1])[0])
        )
        took = sorted(one.duration for one in turns)
        assert totals.median_duration == pytest.approx(took[len(took) // 2], abs=0.1)
        assert totals.high_duration == pytest.approx(took[len(took) * 95 // 100], abs=0.1)
    for name in ("requests", "prompt_tokens", "completion_tokens", "seconds"):
        assert getattr(totals, name) == pytest.approx(sum(getattr(one.usage, name) for one in turns))
    costs = [one.usage.cost for one in turns if one.usage.cost is not None]
    assert totals.priced == len(costs)
    assert (totals.cost or 0) == pytest.approx(sum(costs))
    causes = Counter(cause for one in turns if (cause := cause_of(one)))
    assert {cause: count for cause, (count, _) in reader.causes(scope).items()} == causes

    lacks = {(s.metric, s.status, s.cause) for _, s in scores if s.status != "scored"}
    missing = {(one.metric, one.status, one.cause): one for one in reader.missing(scope)}
    assert set(missing) == lacks
    for kind, one in missing.items():
        chances = [s.inclusion_probability for _, s in scores if (s.metric, s.status, s.cause) == kind]
        assert (one.count, one.explanation) == (len(chances), "why")
        assert one.weight == pytest.approx(sum(1 / p for p in chances))
    ways = Counter((s.provenance.judge, s.provenance.prompt_version) for _, s in scores if s.provenance)
    assert {(one.judge, one.prompt_version): one.scores for one in reader.made(scope)} == ways
    lost = Counter(
        (s.provenance.judge, s.provenance.prompt_version)
        for _, s in scores
        if s.provenance and s.status != "scored" and not (s.cause or "").startswith("missing_")
    )
    found = {(one.judge, one.prompt_version): one.missing for one in reader.made(scope)}
    assert found == {way: lost[way] for way in ways}

    columns = reader.scores(scope, turns=len(turns), by="tag")
    by_judge = reader.scores(scope, turns=len(turns), by="judge")
    for metric in METRICS:
        right = [(one, s) for one, s in scores if s.metric == metric and s.value is not None]
        if not right:
            assert metric not in columns
            continue
        own = columns[metric]
        assert own.values.tolist() == [clipped(s) for _, s in right]
        assert own.times.tolist() == [key(one)[0] for one, _ in right]
        assert own.inclusion.tolist() == [s.inclusion_probability for _, s in right]
        assert [None if math.isnan(p) else bool(p) for p in own.passed] == [s.passed for _, s in right]
        assert list(own.units) == [one.session for one, _ in right]
        assert list(own.owners) == [one.record_id for one, _ in right]
        assert list(by_judge[metric].owners) == [judge_of(s) for _, s in right]
        assert (own.every, own.direction) == (1, right[0][1].direction)
        worst = sorted(right, key=lambda pair: pair[0].record_id)
        worst.sort(key=lambda pair: (rank(pair[0], metric), -key(pair[0])[0]))
        assert [one.record_id for one in reader.worst(scope, metric, limit=5)] == [
            one.record_id for one, _ in worst[:5]
        ]
        sample = reader.sample(scope, metric, limit=10**6)
        assert sorted((one.record_id, one.value, one.inclusion) for one in sample) == sorted(
            (one.record_id, clipped(s), s.inclusion_probability) for one, s in right
        )
        assert [one.happened_at for one in sample] == sorted(one.happened_at for one in sample)


def clipped(score: Score) -> float:
    assert score.value is not None
    return min(max(score.value, 0.0), 1.0)


@pytest.mark.parametrize("by", ["tag", "version", "team", "tenant", "framework", "cause", "judge"])
def test_groups(known: Turns, by: str) -> None:
    for scope in (Scope(), Scope(since=TIMES[5], until=TIMES[15])):
        turns = {one.record_id: one for one in whole(known, scope)}
        if by != "judge":
            groups = {
                name: Counter(values)
                for name, one in turns.items()
                if (values := [value for value in values_of(one, by) if value])
            }
            assert {
                name: Counter(found) for name, found in known.reader.groups_of(scope, by).items()
            } == groups
        for value in known.reader.groups_seen(by):
            right = {
                one.record_id
                for one, score in pairs(known, scope)
                if score.metric == "faithfulness"
                and score.value is not None
                and value in ([judge_of(score)] if by == "judge" else values_of(one, by))
            }
            found = known.reader.group_scores("faithfulness", scope, by=by, value=value, limit=999)
            assert {one.record_id for one in found} == right
            latest = [key(turns[one.record_id])[0] for one in found]
            assert latest == sorted(latest, reverse=True)


def test_sessions_and_spending(known: Turns) -> None:
    def bad(one: Evaluation) -> bool:
        return any(score.passed is False for score in one.scores)

    for order in ORDERS:
        rows = known.reader.sessions(order)
        assert {row.session for row in rows} == {one.session for one in known.turns if one.session}
        for row in rows:
            own = [one for one in known.turns if one.session == row.session]
            assert (row.turns, row.bad) == (len(own), sum(map(bad, own)))
            assert (row.first, row.last) == (key(own[0])[0], key(own[-1])[0])
            assert row.course == tuple(not bad(one) for one in own[:40])
            assert row.question == (own[0].record.question if own[0].record else "")
        ranked = [row.last if order == "latest" else row.bad for row in rows]
        assert ranked == sorted(ranked, reverse=True)
    days: dict[str, list[Evaluation]] = {}
    for one in known.turns:
        days.setdefault(f"{datetime.fromtimestamp(one.evaluated_at, UTC):%Y-%m-%d}", []).append(one)
    for day in known.reader.spending():
        own = days.pop(day.name)
        costs = [one.usage.cost for one in own if one.usage.cost is not None]
        assert (day.turns, day.priced) == (len(own), len(costs))
        assert day.cost == pytest.approx(sum(costs))
        assert day.requests == sum(one.usage.requests for one in own)
        assert day.tokens == sum(one.usage.prompt_tokens + one.usage.completion_tokens for one in own)
    assert not days
    shares: dict[str, list[float | None]] = {}
    for one in known.turns:
        judged = [score.metric for score in one.scores if score.provenance]
        for metric in judged:
            shares.setdefault(metric, []).append(one.usage.cost and one.usage.cost / len(judged))
    dear = known.reader.spending_by_metric()
    for spent in dear:
        priced = [cost for cost in shares[spent.name] if cost is not None]
        assert (spent.turns, spent.priced) == (len(shares[spent.name]), len(priced))
        assert spent.cost == pytest.approx(sum(priced))
    assert [spent.cost or 0 for spent in dear] == sorted((spent.cost or 0 for spent in dear), reverse=True)


def test_what_turns_cost_with_and_without_a_judge(known: Turns) -> None:
    for judged, seen, requests, cost in known.reader.spent(Scope()):
        own = [one for one in known.turns if any(s.value is not None for s in one.scores) == judged]
        assert not seen
        assert requests == pytest.approx(fmean(one.usage.requests for one in own))
        assert cost == pytest.approx(fmean(one.usage.cost for one in own if one.usage.cost is not None))


def test_marks_and_judged_scores(known: Turns) -> None:
    first: dict[str, float] = {}
    for one in known.turns:
        for version in attribute(one, "version"):
            first.setdefault(version, key(one)[0])
    used = sorted((at, name) for name, at in first.items())[1:]
    marks = known.reader.marks(Scope(), width=86400.0, deploys=9)
    assert marks.deploys == tuple(used) and marks.more == 0
    assert dict(marks.labels) == Counter(one.labelled_at // 86400 * 86400 for one in known.labels)
    assert known.reader.marks(Scope(), width=1.0, deploys=1).more == len(used) - 1
    valued = [(one, score) for one, score in pairs(known, Scope()) if score.value is not None]
    assert known.reader.scored() == Counter(score.metric for _, score in valued)
    for metric in METRICS:
        right = sorted(
            (one.record_id, 1 - score.value if score.direction == "lower" else score.value)
            for one, score in valued
            if score.metric == metric
            and score.provenance
            and score.value is not None
            and 0 <= score.value <= 1
        )
        assert sorted((name, value) for name, value, _ in known.reader.judged(metric, limit=999)) == right


def test_each_turn_comes_back_as_it_was_written(known: Turns) -> None:
    for one in known.turns[::3]:
        found = known.reader.evaluation(one.record_id)
        assert found is not None
        assert sorted(found.scores, key=str) == sorted(one.scores, key=str)
        assert (found.record, found.usage, found.trace) == (one.record, one.usage, one.trace)
        assert (found.diagnosis, found.session, found.tenant) == (one.diagnosis, one.session, one.tenant)
    written = [one.record_id for _, one in known.reader.written_after(0, limit=999)]
    assert sorted(written) == [one.record_id for one in sorted(known.turns, key=lambda one: one.record_id)]
