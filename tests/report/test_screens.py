"""Two judges in a report: cheap, dear and corrected side by side, and never mixed up."""

from __future__ import annotations

import asyncio
import io
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from rich.console import Console

from report.parts import SCREENED as COUNT
from report.parts import results
from report.parts import screened_traffic as traffic
from steelyard.report import TurnFilter, open_results, print_figures, render_html, report
from steelyard.report.figures import ReportFigures
from steelyard.report.planning import plan_judging
from steelyard.results.queries import Scope
from steelyard.scores import Score, evaluation_from_json
from steelyard.sinks import JSONLSink, SQLiteSink, prune, read_evaluations


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return results(tmp_path_factory.mktemp("screens") / "s.db", traffic())


@pytest.fixture(scope="module")
def figures(path: Path) -> ReportFigures:
    return report(path, by="customer").figures


def alone(tmp_path: Path) -> ReportFigures:
    """The figures of the same turns as if there had been no screen."""
    judged = [one.replace(screen=()) for one in traffic() if one.scores]
    return report(results(tmp_path / "alone.db", judged), by="customer").figures


def test_the_judges_figures_are_narrower_and_rest_on_its_own_scores(
    figures: ReportFigures, tmp_path: Path
) -> None:
    (one,), (bare,) = figures.metrics, alone(tmp_path).metrics
    assert one.screen is not None and bare.screen is None
    judged = sum(bool(evaluation.scores) for evaluation in traffic())
    assert one.estimate.n == bare.estimate.n == one.screen.dear.n == judged
    assert one.screen.dear == bare.estimate
    assert one.estimate.margin < 0.92 * bare.estimate.margin
    assert one.pass_rate is not None and bare.pass_rate is not None
    assert one.pass_rate.margin < 0.92 * bare.pass_rate.margin
    assert one.screen.cheap.n == COUNT and one.screen.screens == ("cheap",)
    assert one.screen.judges == ("chat:dear",) and one.screen.worth > 1.2 * judged
    assert one.stands_for == COUNT
    # Each score is of the judge: the bars of its distribution have only its zeros and ones.
    assert sum(share > 0 for share in one.shares) == 2
    groups = zip(figures.groups, alone(tmp_path).groups, strict=True)
    for group, other in groups:
        assert (group.group, group.estimate.n) == (other.group, other.estimate.n)
        assert group.estimate.margin < other.estimate.margin
    assert len(one.points) == len(bare.points)


def test_a_slice_is_found_that_the_judge_alone_would_leave_open(figures: ReportFigures) -> None:
    found = {(one.attribute, one.value) for one in figures.slices}
    assert ("customer", "c") in found
    (slice_,) = [one for one in figures.slices if one.value == "c"]
    assert slice_.n < COUNT / 3 * 0.25


def test_the_screen_makes_no_slice_of_its_own(tmp_path: Path) -> None:
    """The judge finds all customers alike; the screen dislikes one, and is wrong about it."""
    turns = []
    for number, one in enumerate(traffic(worse=False, seed=3)):
        (cheap,) = one.screen
        turns.append(one.replace(screen=(replace(cheap, value=0.1),) if number % 3 == 2 else one.screen))
    found = report(results(tmp_path / "s.db", turns)).figures
    assert not found.slices and not found.findings


def test_the_page_and_the_terminal_show_cheap_dear_and_corrected(figures: ReportFigures) -> None:
    (one,) = figures.metrics
    assert one.screen is not None
    words = f"as {one.screen.worth:,.0f} turns judged by chat:dear; {one.estimate.n:,} were"
    page = render_html(figures)
    assert 'id="screen"' in page and words in page and f"{COUNT:,} turns by cheap" in page
    console = Console(file=io.StringIO(), width=200)
    print_figures(console, figures)
    assert isinstance(console.file, io.StringIO)
    said = console.file.getvalue()
    assert "Two judges" in said and words in said


def test_lists_scores_and_files_keep_both_judges_apart(path: Path, tmp_path: Path) -> None:
    judged = sum(bool(evaluation.scores) for evaluation in traffic())
    with closing(open_results(path)) as reader:
        assert [one.judge for one in reader.made(Scope())] == ["chat:dear"]
        rows = reader.turns(TurnFilter(), limit=COUNT)
        assert len(rows) == COUNT and sum(len(row.scores) for row in rows) == judged
        assert not reader.turns(TurnFilter(metric="faithfulness", judge="cheap"))
        worst = reader.worst(Scope(), "faithfulness", limit=5)
        assert all(one.scores and one.screen for one in worst)
        scores = reader.scores(Scope(), turns=COUNT)
        assert sum(len(one.values) for one in scores.values()) == judged
        assert reader.screened(Scope(), limit=COUNT + 1) and not reader.screened(Scope(), limit=COUNT)
    stored = list(read_evaluations(path))
    lines = tmp_path / "s.jsonl"
    asyncio.run(JSONLSink(lines).write(stored))
    assert [evaluation_from_json(line) for line in lines.read_text().splitlines()] == stored
    assert sum(len(one.screen) for one in stored) == COUNT


def test_what_is_pruned_takes_what_the_screen_said_along(tmp_path: Path) -> None:
    pruned = results(tmp_path / "s.db", traffic()[:50])
    assert prune(pruned, keep=10).left == 10
    with closing(open_results(pruned)) as reader:
        (turns,) = reader.screened(Scope(), limit=100).values()
        assert len(turns.records) == 10


def test_a_screen_that_said_nothing_changes_nothing(tmp_path: Path) -> None:
    failed = Score.failed("faithfulness", cause="timeout", explanation="it did not answer")
    turns = [one.replace(screen=(failed,)) for one in traffic()]
    (one,), (bare,) = report(results(tmp_path / "s.db", turns)).figures.metrics, alone(tmp_path).metrics
    assert one.estimate == bare.estimate and one.screen is None


def test_turns_that_are_judged_later_take_the_place_of_those_that_were_not(tmp_path: Path) -> None:
    turns = traffic()[:100]
    target = results(tmp_path / "s.db", [one.replace(scores=()) for one in turns])
    bare = report(target).figures
    assert not bare.metrics and "The judge has scored no turn yet." in bare.notes
    asyncio.run(SQLiteSink(target).write(turns))
    (one,) = report(target).figures.metrics
    assert one.screen is None or one.screen.cheap.n == 100
    assert one.estimate.n == sum(bool(evaluation.scores) for evaluation in turns)


@pytest.mark.parametrize("seed", range(3))
def test_a_screen_that_tells_nothing_is_worth_no_less_than_none(seed: int, tmp_path: Path) -> None:
    draw = Random(seed)
    turns = [
        one.replace(screen=tuple(replace(score, value=draw.random()) for score in one.screen))
        for one in traffic(judged=0.05, seed=seed)
    ]
    (figure,) = report(results(tmp_path / "s.db", turns)).figures.metrics
    assert figure.screen is not None and figure.screen.worth >= sum(bool(one.scores) for one in turns)


def test_a_plan_asks_for_four_times_as_many_turns_for_half_the_width_and_spreads_them_over_its_days(
    path: Path,
) -> None:
    """With a screen as without; turns of some hours are those of a day, and not of so many a day."""
    with closing(open_results(path)) as reader:
        totals = reader.totals(Scope())
        assert totals.first is not None and totals.last is not None
        (week,), (narrow,), (month,) = (
            plan_judging(reader, margin=width, days=days)
            for width, days in ((0.02, 7), (0.01, 7), (0.02, 28))
        )
        (hours,) = plan_judging(reader, Scope(until=totals.first + 43_200), margin=0.02)
        few = reader.totals(Scope(until=totals.first + 43_200)).turns
    assert week.turns == pytest.approx(COUNT / ((totals.last - totals.first) / 86_400))
    assert hours.turns == pytest.approx(few, rel=0.01)
    for one, other, often in ((week, narrow, 4), (week, month, 1 / 4)):
        assert one.screened is not None and other.screened is not None
        assert other.alone.judged == pytest.approx(often * one.alone.judged)
        assert other.screened.judged == pytest.approx(often * one.screened.judged)
    assert week.screened is not None and week.screened.judged < week.alone.judged
