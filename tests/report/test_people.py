"""Labels in a results database: the report shows the corrected mean and what more labels would bring."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from steelyard.record import Record
from steelyard.report import Label, open_labels, report
from steelyard.scores import Evaluation, Provenance, Score
from steelyard.sinks import SQLiteSink


def made(number: int, value: float) -> Evaluation:
    score = Score(
        id=f"s{number}",
        metric="faithfulness",
        status="scored",
        value=value,
        provenance=Provenance(judge="local-lexical", prompt_version="1"),
    )
    record = Record(id=f"r{number}", question="q?", answer="a", tags=("even",) if number % 2 == 0 else ())
    return Evaluation(record_id=record.id, scores=(score,), record=record, evaluated_at=1e9 + number)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """300 turns whose judge says .5 on average, of which people call about a third good; 100 are labelled."""
    drawn = random.Random(0)
    values = [drawn.random() for _ in range(300)]
    good = [drawn.random() < value**2 for value in values]

    async def run() -> None:
        sink = SQLiteSink(tmp_path / "s.db")
        await sink.write([made(number, value) for number, value in enumerate(values)])
        await sink.aclose()

    asyncio.run(run())
    open_labels(tmp_path / "s.db").put(
        Label(record_id=f"r{number}", value="good" if one else "bad", who="ada", labelled_at=1.0)
        for number, one in enumerate(good[:100])
    )
    return tmp_path / "s.db"


def test_the_mean_is_corrected_by_labels(db: Path) -> None:
    (found,) = report(db).figures.people
    assert found.agreement.n == 100 and found.turns == 300
    assert found.corrected_mean is not None and found.raw_mean is not None and found.to_halve is not None
    assert found.corrected_mean.low < 1 / 3 < found.corrected_mean.high < found.raw_mean.value


def test_terminal_and_page_show_it(db: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    from steelyard.report import print_figures, render_html

    figures = report(db).figures
    print_figures(Console(width=200, highlight=False), figures)
    page = render_html(figures)
    for text in (capsys.readouterr().out, page.replace("&#39;", "'")):
        for part in (
            "By people's labels",
            "100 labelled turns",
            "of all are good",
            "more labels would halve",
        ):
            assert part in text


def test_it_goes_by_period_tag_and_metric(db: Path) -> None:
    (even,) = report(db, tag="even").figures.people
    assert (even.agreement.n, even.turns) == (50, 150)
    assert report(db, metric="other").figures.people == ()
    assert report(db, until="2001-01-01").figures.people == ()


def test_without_labels_nothing_is_read_for_it(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from steelyard.report import SQLiteResults

    for number in range(100):
        open_labels(db).remove(f"r{number}", metric=None, claim=None, who="ada")
    monkeypatch.setattr(SQLiteResults, "written_after", lambda *_, **__: pytest.fail("turns were read"))
    assert report(db).figures.people == ()
