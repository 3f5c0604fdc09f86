"""Labels in the database stand beside the scores: the corrected mean, and how far judge and people agree."""

from __future__ import annotations

import io
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from report.parts import NOON, results, turn
from steelyard.errors import InvalidRecord
from steelyard.report import print_figures, render_html, report
from steelyard.results import open_labels
from steelyard.results.labels import Label, LabelValue
from steelyard.scores import Evaluation, Provenance


@pytest.mark.parametrize(
    "wrong",
    [
        *({"record_id": one} for one in ("", "r" * 1_001, "a\0b", "\udc80")),
        *({"who": one} for one in (" ", "w" * 101, "a\0b")),
        *({"note": one} for one in ("n" * 2_001, "\ud800")),
        *({"metric": one, "claim": 0, "value": "supported"} for one in (None, "m" * 201)),
        *({"value": one} for one in ("supported", "best")),
        {"claim": 0, "metric": "m"},
        {"labelled_at": float("nan")},
    ],
)
def test_what_is_no_label_is_refused(wrong: dict[str, Any]) -> None:
    right: dict[str, Any] = {"record_id": "r", "value": "good", "who": "Ann", "labelled_at": NOON}
    at_most = {"record_id": "r" * 1_000, "who": "w" * 100, "note": "n" * 2_000, "drawn": 1.0}
    assert Label(**{**right, **at_most}).note
    with pytest.raises(InvalidRecord):
        Label(**{**right, **wrong})


def judged(number: int, value: float, *, inclusion: float = 1.0) -> Evaluation:
    made = turn(number, value, at=NOON + 60 * number, inclusion=inclusion)
    return replace(
        made, scores=(replace(made.scores[0], id=f"s{number}", provenance=Provenance(judge="chat:one")),)
    )


def label(number: int, good: bool, who: str = "Ann", drawn: float | None = 1 / 6) -> Label:
    value: LabelValue = "good" if good else "bad"
    return Label(record_id=f"r{number}", value=value, who=who, labelled_at=NOON, drawn=drawn)


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """600 turns, of which people call 60 % good; the judge finds 90 %, and people looked at every sixth."""
    draw = random.Random(7)
    good = [draw.random() < 0.6 for _ in range(600)]
    path = results(tmp_path / "s.db", [judged(n, 0.95 if yes else 0.8) for n, yes in enumerate(good)])
    open_labels(path).put([label(n, good[n]) for n in range(0, 600, 6)])
    return path


def test_the_mean_is_corrected_by_labels_and_said_beside_the_raw_one(labelled: Path) -> None:
    figures = report(labelled).figures
    (people,) = figures.people
    assert people.labelled == 100 and people.scored == 600
    assert people.raw is not None and people.raw.value > 0.85
    assert people.corrected is not None and people.corrected.low < 0.6 < people.corrected.high
    assert people.corrected.margin < 0.1 and people.area is not None and people.area.value == 1.0
    page = render_html(figures)
    assert "What people say" in page and f"({people.corrected.low:.2f} to" in page
    console = Console(file=io.StringIO(), width=200)
    print_figures(console, figures)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert "people would call" in printed and "100 labelled turns, drawn from 600 scored ones" in printed


def test_labels_of_turns_that_people_picked_are_told_apart(tmp_path: Path) -> None:
    """Somebody labelled a hundred bad turns; forty were drawn, of which 90 % are good."""
    path = results(tmp_path / "s.db", [judged(n, 0.8) for n in range(400)])
    open_labels(path).put([label(n, False, drawn=None) for n in range(100)])
    (people,) = report(path).figures.people
    assert people.picked == people.labelled == 100 and people.corrected is None
    open_labels(path).put([label(n, n % 10 != 0, drawn=0.1) for n in range(100, 140)])
    (people,) = report(path).figures.people
    assert people.picked == 100 and people.labelled == 140
    assert people.corrected is not None and people.corrected.low < 0.9 < people.corrected.high
    assert "100 more were picked by people" in render_html(report(path).figures)


def test_few_labels_correct_nothing_and_say_from_how_many_on(tmp_path: Path) -> None:
    path = results(tmp_path / "s.db", [judged(n, n / 20) for n in range(20)])
    open_labels(path).put([label(3, False), label(15, True)])
    (people,) = report(path).figures.people
    assert people.corrected is None and people.labelled == 2
    assert "from 10 drawn ones on" in render_html(report(path).figures)


def test_people_who_differ_are_counted_and_their_agreement_is_told(labelled: Path) -> None:
    store = open_labels(labelled)
    store.put([label(n, n % 5 > 0, who="Bob") for n in range(0, 600, 6)])
    (people,) = report(labelled).figures.people
    assert people.contradictory > 0 and people.people is not None


def test_labels_of_turns_that_are_gone_or_out_of_the_period_do_not_count(labelled: Path) -> None:
    open_labels(labelled).put([label(10_000, True)])
    (people,) = report(labelled, since="2025-10-09T14:00").figures.people
    assert people.scored < 600 and people.labelled < 100
    assert report(labelled, tag="nosuch").figures.people == ()


def test_without_labels_nothing_is_said_of_people(tmp_path: Path) -> None:
    figures = report(results(tmp_path / "s.db", [judged(1, 0.5)])).figures
    assert figures.people == () and "What people say" not in render_html(figures)
