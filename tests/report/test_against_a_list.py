"""Every store answers as a plain list of turns would, whatever it is asked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from statistics import fmean
from typing import Any

import pytest

from report.listing import (
    METRICS,
    TIMES,
    Turns,
    attribute,
    cause_of,
    evidence_of,
    filled,
    filters,
    fits,
    judge_of,
    key,
    now,
    said,
)
from report.test_stores import STORES
from steelyard.report import TurnFilter
from steelyard.results.looks import ORDERS
from steelyard.results.queries import Scope, TurnRow
from steelyard.scores import Evaluation, Score


@pytest.fixture(scope="module", params=STORES)
def known(request: pytest.FixtureRequest) -> Iterator[Turns]:
    with STORES[request.param](request) as store, closing(filled(store)) as reader:
        yield Turns(reader, sorted(now().values(), key=key), said())


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
        assert list(own.units) == [one.unit for one, _ in right]
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
        every = {(one.session, one.tenant or "") for one in known.turns if one.session}
        assert {(row.session, row.tenant) for row in rows} == every and len(rows) == len(every)
        for row in rows:
            named = TurnFilter(session=row.session, where=(("tenant", row.tenant),))
            own = [one for one in known.turns if fits(one, named, ())]
            assert {one.record_id for one in known.reader.turns(named)} <= {one.record_id for one in own}
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
