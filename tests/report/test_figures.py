"""From a results file to figures, and what is said of files that hold little or nothing."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from online.helpers import FAITHFUL, yes
from online.helpers import turn as recorded
from report.parts import NOON, results, turn
from stats.session_parts import adjusted_rand
from steelyard.errors import MissingDependency
from steelyard.online import Monitor
from steelyard.report import print_figures, render_html, report
from steelyard.scores import Diagnosis, Evaluation, Score
from steelyard.sinks import SQLiteSink
from steelyard.stats import weighted_mean
from steelyard.testing import ScriptedJudge

DAY = NOON // 86400 * 86400


def test_the_sums_of_the_database_are_those_of_the_values(tmp_path: Path) -> None:
    draw = random.Random(1)
    drawn = [(draw.random(), draw.choice([0.1, 0.5, 1.0])) for _ in range(200)]
    path = results(
        tmp_path / "s.db",
        [turn(n, value, inclusion=p, at=NOON + n * 3600) for n, (value, p) in enumerate(drawn)],
    )
    with closing(sqlite3.connect(path)) as stored:
        stored.execute("UPDATE scores SET threshold = .7 WHERE happened_at > ?", (NOON + 100 * 3600,))
        stored.commit()
    (metric,) = report(path).figures.metrics
    assert metric.threshold == 0.7, "the one last used"
    expected = weighted_mean([value for value, _ in drawn], [p for _, p in drawn])
    assert expected is not None
    assert metric.estimate.value == pytest.approx(expected.value)
    assert (metric.estimate.low, metric.estimate.high) == pytest.approx(
        (expected.low, expected.high), abs=1e-3
    )
    assert metric.stands_for == pytest.approx(sum(1 / p for _, p in drawn))
    assert sum(metric.shares) == pytest.approx(1)
    assert sum(point.estimate.n for point in metric.points) == 200
    assert metric.unequal


def test_a_day_of_suspicious_turns_alone_tells_little_of_the_others(tmp_path: Path) -> None:
    calm = [turn(n, 1.0, inclusion=0.05, at=NOON + n * 3600) for n in range(72)]
    odd = [turn(100 + n, 0.0, at=NOON + 5 * 86400) for n in range(6)]
    (metric,) = report(results(tmp_path / "s.db", [*calm, *odd])).figures.metrics
    last = metric.points[-1].estimate
    assert last.value == 0 and last.high > 0.8


def test_a_group_of_suspicious_turns_alone_tells_little_of_its_others(tmp_path: Path) -> None:
    """Under v2 only suspicious turns were picked, all of them; the others are picked one in a hundred."""
    turns = [turn(n, 0.0, inclusion=1.0, version="v2") for n in range(10)]
    turns += [turn(n, 1.0, inclusion=0.01, version="v1") for n in range(10, 20)]
    found = report(results(tmp_path / "s.db", turns), by="version").figures.groups
    (suspicious,) = [group for group in found if group.group == "v2"]
    assert suspicious.estimate.high > 0.9


def test_the_team_whose_questions_fell_is_named_once(tmp_path: Path) -> None:
    draw = random.Random(2)
    kinds = ["How do I reset the password of account {}?", "Where is parcel {} from the warehouse?"]
    turns = []
    for n in range(400):
        kind = draw.randrange(2)
        bad = draw.random() < (0.6 if kind == 1 and n > 200 else 0.1)
        asked = kinds[kind].format(draw.choice(["one", "two", "three", "four", "five", "six"]))
        made = turn(n, 0.0 if bad else 1.0, at=NOON + n * 600, question=asked, team=f"t{kind}")
        turns.append(made.replace(diagnosis=Diagnosis(cause="invented" if bad else None)))
    (only,) = report(results(tmp_path / "s.db", turns)).figures.findings
    assert only.worse and only.names == (("team", "t1"),)
    assert only.cause is not None
    cause, before, since = only.cause
    assert cause == "invented" and before < 0.2 < 0.5 < since


def test_clusters_of_real_questions_are_found_again() -> None:
    """Four topics, each with several wordings, by static vectors."""
    from steelyard.judge import StaticEmbedder
    from steelyard.stats import cluster

    topics = [
        ["reset my password", "forgot the password", "change the login password", "password is not accepted"],
        ["where is my parcel", "the parcel is late", "track a parcel", "parcel arrived damaged"],
        ["refund for an order", "when is the refund paid", "money back refund", "refund was too low"],
        [
            "invoice shows wrong address",
            "download the invoice",
            "invoice with tax number",
            "send invoice again",
        ],
    ]
    texts = [
        f"{text} {more}".strip() for topic in topics for text in topic for more in ("", "please", "today?")
    ]
    truth = [index for index, topic in enumerate(topics) for _ in range(3 * len(topic))]
    vectors, _ = asyncio.run(StaticEmbedder().embed(texts))
    assert adjusted_rand(cluster(vectors).tolist(), truth) >= 0.7


def test_a_fall_comes_first_with_its_day_its_size_and_how_sure_it_is(tmp_path: Path) -> None:
    """Ten days of .9, then four of .6: said above the figures, on the page and in the terminal."""
    values = [0.6 if n >= 100 else 0.9 for n in range(140)]
    turns = [turn(n, value, at=DAY + n * 8640) for n, value in enumerate(values)]
    made = report(results(tmp_path / "s.db", turns))
    change = made.figures.metrics[0].change
    assert change is not None and change.worse and change.since == DAY + 10 * 86400
    assert change.difference.first == pytest.approx(0.9) and change.difference.second == pytest.approx(0.6)
    said = "faithfulness fell from 0.90 to 0.60 (by 0.14 to 0.47) in all turns since 2025-10-19: about 40"
    page = render_html(made.figures)
    assert "faithfulness got worse" in page and said in page and page.index(said) < page.index('id="metrics"')
    console = Console(record=True, width=100)
    print_figures(console, made.figures)
    assert said in " ".join(console.export_text().split())


def test_a_narrow_terminal_cuts_the_trend_and_no_figure(tmp_path: Path) -> None:
    made = report(results(tmp_path / "n.db", [turn(n, 0.9, at=DAY + n * 8640) for n in range(140)]))
    console = Console(record=True, width=56)
    print_figures(console, made.figures)
    row = next(line for line in console.export_text().splitlines() if line.startswith("faithfulness "))
    assert "…" not in row
    assert row.split()[1:4:2] == ["0.90", "140"]


@pytest.mark.parametrize(("count", "said"), [(40, "Too few turns to tell"), (100, "faithfulness holds")])
def test_where_nothing_fell_that_is_said(tmp_path: Path, count: int, said: str) -> None:
    turns = [turn(n, 0.9 - n % 3 / 10, at=DAY + n * 8640) for n in range(count)]
    assert said in render_html(report(results(tmp_path / "s.db", turns)).figures)


def test_what_has_two_values_stands_out_once_by_the_worse(tmp_path: Path) -> None:
    turns = [turn(n, 0.3 if n % 2 else 0.9, team=f"t{n % 2}") for n in range(80)]
    slices = report(results(tmp_path / "s.db", turns)).figures.slices
    assert [(one.value, one.difference.value < 0) for one in slices if one.attribute == "team"] == [
        ("t1", True)
    ]


def test_groups_carry_the_interval_of_their_difference(tmp_path: Path) -> None:
    turns = [turn(n, 0.9, version="v1") for n in range(40)]
    turns += [turn(n, 0.3 if n % 2 else 0.9, version="v2") for n in range(40, 80)]
    first, second = report(results(tmp_path / "s.db", turns), by="version").figures.groups
    assert (first.group, first.difference) == ("v1", None)
    assert second.difference is not None and second.difference.clear
    assert second.difference.value == pytest.approx(-0.3)


@pytest.mark.parametrize(
    ("turns", "said"),
    [
        ([], "no evaluated turns"),
        ([turn(1, 0.5)], "rests on 1 turn"),
        ([turn(n, None) for n in range(3)], "No score has a value"),
        ([turn(n, 0.5, content=False) for n in range(3)], "were not stored"),
    ],
    ids=["empty", "one record", "all failed", "without content"],
)
def test_a_file_that_holds_little_is_reported_as_such(tmp_path: Path, turns: list, said: str) -> None:  # type: ignore[type-arg]
    made = report(results(tmp_path / "s.db", turns), by="version")
    assert any(said in note for note in made.figures.notes)
    assert said in render_html(made.figures)


def test_turns_without_a_reference_are_counted_and_said(tmp_path: Path) -> None:
    missing = Score.not_applicable(
        "answer_correctness", cause="missing_reference", explanation="the record has no reference"
    )
    turns = [turn(n, 0.5) for n in range(3)]
    made = report(results(tmp_path / "s.db", [one.replace(scores=(*one.scores, missing)) for one in turns]))
    assert any("need a reference" in note for note in made.figures.notes)
    assert [(one.cause, one.count) for one in made.figures.missing] == [("missing_reference", 3)]
    assert "the record has no reference" in render_html(made.figures)


def test_answers_of_ten_megabytes_make_no_page_of_ten_megabytes(tmp_path: Path) -> None:
    path = results(tmp_path / "s.db", [turn(n, 0.1, answer="It is Paris. " * 800_000) for n in range(2)])
    made = report(path)
    kept = made.figures.worst[0].turns[0].record
    assert kept is not None and kept.answer and len(kept.answer) < 1_000_000, "a record has its limits"
    page = render_html(made.figures)
    assert len(page) < 1_000_000 and "more characters" in page


def test_a_question_that_is_asked_again_hides_no_other_bad_turn(tmp_path: Path) -> None:
    asked = [*("Where?",) * 9, "When?", "Why?"]
    turns = [turn(n, n / 20, question=question) for n, question in enumerate(asked)]
    (worst,) = report(results(tmp_path / "s.db", turns)).figures.worst
    assert [one.record_id for one in worst.turns] == ["r0", "r9", "r10"]


def test_figures_become_a_table_and_a_frame(tmp_path: Path) -> None:
    made = report(results(tmp_path / "s.db", [turn(n, 0.5, at=NOON + n * 86400) for n in range(3)]))
    table = made.to_pandas()
    with (
        pytest.MonkeyPatch.context() as patch,
        pytest.raises(MissingDependency, match=r"steelyard\[pandas\]"),
    ):
        patch.setitem(sys.modules, "pandas", None)
        made.to_pandas()
    assert list(table.columns) == ["metric", "time", "mean", "low", "high", "n"]
    assert len(table) == 3 and table["n"].sum() == 3
    assert made._repr_html_().startswith("<iframe srcdoc=")


def test_results_show_themselves_in_a_notebook() -> None:
    from steelyard.engine import Results

    shown = Results([turn(n, 1.0) for n in range(20)])._repr_html_()
    assert "<td>faithfulness</td><td>1.000</td><td>0.839 to 1.000</td><td>20</td><td>100%</td>" in shown


@pytest.mark.parametrize("tag", ["", "web"])
def test_what_the_missing_could_change_stands_beside_the_interval(tmp_path: Path, tag: str) -> None:
    """A third of the bad turns and a twentieth of the good ones has no value; picked by half."""
    draw = random.Random(3)
    turns = []
    for n in range(600):
        good = draw.random() < 0.8
        value = None if draw.random() < (0.05 if good else 0.33) else float(good)
        turns.append(turn(n, value, at=NOON + n))
    halves = [
        one.replace(scores=tuple(replace(score, inclusion_probability=0.5) for score in one.scores))
        for one in turns
    ]
    made = report(results(tmp_path / "s.db", halves), tag=tag or None)
    (metric,) = made.figures.metrics
    lost = sum(one.scores[0].value is None for one in turns)
    assert metric.missing == pytest.approx(lost / 600)
    assert metric.bounds is not None
    assert not metric.estimate.low <= 0.8 <= metric.estimate.high
    assert metric.bounds[0] < 0.8 < metric.bounds[1]
    assert metric.bounds == pytest.approx(metric.estimate.with_missing(lost / 600))
    said = f"{metric.bounds[0]:.2f} to {metric.bounds[1]:.2f} whatever the"
    console = Console(record=True, width=100)
    print_figures(console, made.figures)
    assert said in render_html(made.figures)
    assert said in console.export_text()


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        *[("no_claims", True), ("malformed_reply", True), ("", True)],
        *[("missing_reference", False), ("contexts_guessed", False)],
    ],
)
def test_turns_that_lack_what_a_metric_needs_are_not_missing(tmp_path: Path, cause: str, told: bool) -> None:
    turns = [turn(n, 0.9) for n in range(50)]
    without = Score.not_applicable("faithfulness", cause=cause, explanation="")
    turns += [turn(n, 0.9).replace(scores=(without,)) for n in range(50, 60)]
    (metric,) = report(results(tmp_path / "s.db", turns)).figures.metrics
    assert (metric.bounds is not None) == told


def test_few_missing_turns_are_not_spoken_of(tmp_path: Path) -> None:
    turns = [turn(n, None if n == 7 else 0.9) for n in range(60)]
    made = report(results(tmp_path / "s.db", turns)).figures
    assert made.metrics[0].missing == pytest.approx(1 / 60)
    assert "whatever the" not in render_html(made)


@pytest.mark.parametrize(
    ("hard", "shows", "said"),
    [
        ((1.0, 0.5), "expectation", "the expectation of the formula under the judge"),
        ((None, None), "verdicts", "the formula on the judge"),
        ((1.0, None), "both", "of some turns an expectation"),
    ],
)
def test_which_value_is_shown_is_said(
    tmp_path: Path, hard: tuple[float | None, float | None], shows: str, said: str
) -> None:
    turns = [
        one.replace(scores=tuple(replace(score, hard_value=value) for score in one.scores))
        for one, value in zip((turn(1, 0.7), turn(2, 0.8)), hard, strict=True)
    ]
    made = report(results(tmp_path / "s.db", turns)).figures
    assert made.metrics[0].shows == shows
    page = render_html(made).replace("&#39;", "'")
    assert said in page
    assert ("by bare verdicts 1.00" in page) == (hard[0] is not None)
    console = Console(record=True, width=200)
    print_figures(console, made)
    assert said in console.export_text()


def with_scores(one: Evaluation, *scores: Score) -> Evaluation:
    return one.replace(scores=(*one.scores, *scores))


LEVELS = random.Random(1)
ALIKE = [level for level in (LEVELS.random() for _ in range(40)) for _ in range(10)]
WITHOUT_REFERENCE = Score.not_applicable("correctness", cause="missing_reference", explanation="none given")
NOTED: dict[str, tuple[list[Evaluation], list[str]]] = {
    "nothing to say": ([turn(n, n % 7 / 7).replace(session=f"s{n}") for n in range(120)], []),
    "one turn": ([turn(0, 0.5)], ["All of this rests on 1 turn;"]),
    "few turns": ([turn(n, n % 3 / 3) for n in range(3)], ["All of this rests on 3 turns;"]),
    "no sessions": (
        [turn(n, value, at=NOON + n) for n, value in enumerate(ALIKE)],
        ["No turn says which session it is of"],
    ),
    "sessions": ([turn(n, value, at=NOON + n).replace(session=f"s{n}") for n, value in enumerate(ALIKE)], []),
    "no content": (
        [turn(n, n % 7 / 7, content=False).replace(session=f"s{n}") for n in range(120)],
        ["Questions and answers were not stored"],
    ),
    "no reference": (
        [with_scores(turn(n, n % 7 / 7), WITHOUT_REFERENCE).replace(session=f"s{n}") for n in range(120)],
        ["Some metrics need a reference answer"],
    ),
}


@pytest.mark.parametrize("name", NOTED)
def test_a_note_stands_where_its_cause_does_and_nowhere_else(name: str, tmp_path: Path) -> None:
    turns, begin = NOTED[name]
    notes = report(results(tmp_path / "s.db", turns)).figures.notes
    assert len(notes) == len(begin)
    for note, words in zip(notes, begin, strict=True):
        assert note.startswith(words)


def monitored(path: Path, *, rate: float, turns: int) -> None:
    monitor = Monitor(metrics=FAITHFUL, judge=ScriptedJudge(yes), sinks=[SQLiteSink(path)], sample_rate=rate)
    for number in range(turns):
        monitor.submit(recorded(f"turn {number} of {turns}"))
    monitor.close()


def test_turns_that_were_not_judged_are_counted_over_all_runs(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    monitored(path, rate=1.0, turns=3)
    monitored(path, rate=0.3, turns=60)
    made = report(path)
    funnel = made.figures.funnel
    assert funnel is not None
    assert (funnel.runs, funnel.seen) == (2, 63)
    assert funnel.accepted == funnel.evaluated == made.figures.totals.turns
    assert funnel.skipped == {"sampled_out": 63 - funnel.accepted}
    assert 3 < funnel.accepted < 63
    page = render_html(made.figures)
    assert "not judged, sampled out" in page and "2 Monitors saw" in page
    console = Console(width=120, record=True, file=(tmp_path / "out").open("w", encoding="utf-8"))
    print_figures(console, made.figures)
    console.file.close()
    assert "63  seen" in console.export_text()


def test_a_file_without_counts_says_so(tmp_path: Path) -> None:
    path = results(tmp_path / "s.db", [turn(1, 0.5)])
    made = report(path).figures
    assert made.funnel is None
    assert "No Monitor has stored" in render_html(made)


def test_counts_that_cannot_be_read_or_are_hostile_do_no_harm(tmp_path: Path) -> None:
    path = results(tmp_path / "s.db", [turn(1, 0.5)])
    rows = ["{half", "[]", '{"seen": "x", "skipped": 3, "dead": {"<b>\u202e": 2}}']
    with closing(sqlite3.connect(path)) as connection:
        for number, counts in enumerate(rows):
            connection.execute("INSERT INTO ledger VALUES (?, 'h', 1, 1, 2, ?)", (str(number), counts))
        connection.commit()
    made = report(path).figures
    assert made.funnel is not None and (made.funnel.runs, made.funnel.seen) == (1, 0)
    page = render_html(made)
    assert "<b>\u202e" not in page and "impossible to judge, &lt;b&gt;" in page
