"""The page: what is in it, what hostile text does to it, and how it behaves in a browser."""

from __future__ import annotations

import re
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from browsing import in_a_browser
from report.parts import NOON, results, turn
from steelyard.report import render_html, report
from steelyard.report.turn import evidence_words
from steelyard.results.queries import Totals

HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">{{ 7*7 }}"
)
STEERING = "safe \u202eesrever\u202c \x1b[31mred\x07 \u2066iso\u2069"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    turns = [turn(n, (n % 10) / 10, at=NOON + n * 7200, version=f"v{n // 60}") for n in range(1, 120)]
    turns.append(
        turn(
            0,
            0.0,
            at=NOON + 10**6,
            question=HOSTILE + STEERING,
            answer=HOSTILE,
            context=HOSTILE,
            version=HOSTILE,
        ).replace(record_id=f"r0 {STEERING}")
    )
    path = tmp_path / "report.html"
    report(results(tmp_path / "s.db", turns), by="version").write_html(path)
    return path


def test_hostile_text_stays_text(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.count("<script") == 2
    assert "<img" not in text
    assert "{{ 7*7 }}" in text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text.split("<body>")[1])


def test_the_page_asks_for_nothing_from_elsewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    policy = re.search('Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None
    assert "default-src &#39;none&#39;" in policy[1] and "unsafe" not in policy[1]
    assert not re.search(r"""(?:src|href)=["'](?!#)""", text.split("<script")[0])


def test_a_long_answer_is_cut_and_the_claim_still_shown(tmp_path: Path) -> None:
    long = "x" * 30_000
    answer = f"It is Paris. {long} It has nine million people."
    huge = turn(2, 0.6, answer="y" * 10_000_000, context="z" * 10_000_000)
    cut = turn(1, 0.5, answer=answer, context=long + " Paris is it.")
    text = render_html(report(results(tmp_path / "s.db", [cut, huge])).figures)
    assert len(text) < 200_000
    assert "more characters are not shown" in text
    assert "Paris is it." in text
    assert re.search(r"<mark[^>]*>It is Paris</mark>", text)


def test_a_claim_in_other_words_lights_the_sentence_it_was_taken_from(tmp_path: Path) -> None:
    made = turn(1, 0.5)
    (score,) = made.scores
    said = score.verdicts[0]
    (evidence,) = said.evidence
    claim = replace(
        said, about="The capital is Paris", span=(0, 12), evidence=(replace(evidence, located=True),)
    )
    made = replace(made, scores=(replace(score, verdicts=(claim,)),))
    text = render_html(report(results(tmp_path / "s.db", [made])).figures)
    assert re.search(r"<mark[^>]*>It is Paris\.</mark>", text)
    assert "context 1, place found by words" in text


def test_a_new_page_is_for_its_owner_alone(tmp_path: Path) -> None:
    made, out = report(results(tmp_path / "s.db", [turn(1, 0.5)])), tmp_path / "page.html"
    made.write_html(out)
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    out.chmod(0o644)
    made.write_html(out)
    assert stat.S_IMODE(out.stat().st_mode) == 0o644


def test_few_turns_are_marked(tmp_path: Path) -> None:
    few = render_html(report(results(tmp_path / "few.db", [turn(n, 0.5) for n in range(29)])).figures)
    many = render_html(report(results(tmp_path / "many.db", [turn(n, 0.5) for n in range(30)])).figures)
    assert "only 29 turns" in few and "only" not in many.split("<main")[1].split("<script")[0]


@pytest.mark.parametrize(("width", "scheme"), [(1600, "light"), (390, "dark")])
@in_a_browser
def test_in_a_browser_it_draws_fits_and_answers_the_keyboard(
    page: Path, browser: Any, width: int, scheme: str
) -> None:
    view = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    errors: list[str] = []
    asked: list[str] = []
    view.on("console", lambda message: errors.append(message.text))
    view.on("pageerror", lambda error: errors.append(str(error)))
    view.on("request", lambda request: asked.append(request.url))
    view.goto(page.as_uri())
    assert view.locator(".chart canvas").count() == 3
    assert view.title().startswith("Steelyard report")
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    view.locator(".turn:has(mark) summary").last.focus()
    view.keyboard.press("Enter")
    view.keyboard.press("Tab")
    while not view.evaluate("document.activeElement.matches('.claim')"):
        view.keyboard.press("Tab")
    view.keyboard.press("Enter")
    assert view.locator("mark.lit").count() == 2
    assert view.locator("mark.lit").all_text_contents() == ["It is Paris", "Paris is the capital of France."]
    assert errors == []
    assert asked == [page.as_uri()]


@pytest.mark.parametrize(
    ("guessed", "said"), [(1, "known above 99 %, guessed below 1 %"), (40, "known 96 %, guessed 4 %")]
)
def test_a_few_among_many_are_there_and_a_few_that_are_missing_are_missing(guessed: int, said: str) -> None:
    totals = Totals(turns=1_000, evidence={"known": 1_000 - guessed, "guessed": guessed})
    assert said in evidence_words(totals)
    assert "known 100 %" in evidence_words(Totals(turns=9, evidence={"known": 9}))
