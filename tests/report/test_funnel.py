"""What became of every turn, from the Monitor through the results file to the report."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from rich.console import Console

from online.helpers import FAITHFUL, turn, yes
from report.parts import results
from report.parts import turn as scored
from steelyard.online import Monitor
from steelyard.report import print_figures, render_html, report
from steelyard.sinks import SQLiteSink
from steelyard.testing import ScriptedJudge


def monitored(path: Path, *, rate: float, turns: int) -> None:
    monitor = Monitor(metrics=FAITHFUL, judge=ScriptedJudge(yes), sinks=[SQLiteSink(path)], sample_rate=rate)
    for number in range(turns):
        monitor.submit(turn(f"turn {number} of {turns}"))
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
    path = results(tmp_path / "s.db", [scored(1, 0.5)])
    made = report(path).figures
    assert made.funnel is None
    assert "No Monitor has stored" in render_html(made)


def test_counts_that_cannot_be_read_or_are_hostile_do_no_harm(tmp_path: Path) -> None:
    path = results(tmp_path / "s.db", [scored(1, 0.5)])
    rows = ["{half", "[]", '{"seen": "x", "skipped": 3, "dead": {"<b>\u202e": 2}}']
    with closing(sqlite3.connect(path)) as connection:
        for number, counts in enumerate(rows):
            connection.execute("INSERT INTO ledger VALUES (?, 'h', 1, 1, 2, ?)", (str(number), counts))
        connection.commit()
    made = report(path).figures
    assert made.funnel is not None and (made.funnel.runs, made.funnel.seen) == (1, 0)
    page = render_html(made)
    assert "<b>\u202e" not in page and "impossible to judge, &lt;b&gt;" in page
