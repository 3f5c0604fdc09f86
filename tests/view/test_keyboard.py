"""The pages by keys alone: where the focus goes, that it is seen, and that a turn is labelled by it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browsing import in_a_browser

pytest.importorskip("uvicorn", reason="uvicorn is not installed")

from report.parts import NOON, results, turn
from steelyard.results import open_labels
from view.serving import opened, serving


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return results(tmp_path / "s.db", [turn(n, (n % 10) / 10, at=NOON + n * 600) for n in range(120)])


@pytest.fixture
def address(db: Path) -> Iterator[str]:
    with serving(db) as server:
        yield server.address


FOCUSED = """async () => {
  const one = document.activeElement, style = getComputedStyle(one);
  await new Promise(requestAnimationFrame);
  const box = one.getBoundingClientRect();
  const shown = box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight
    && box.right > 0 && box.left < innerWidth;
  const all = [...document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']")]
    .filter((other) => other.checkVisibility() && !other.disabled);
  return {
    place: all.indexOf(one), count: all.length, name: one.id || one.textContent.trim().slice(0, 40),
    outlined: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0, shown,
  };
}"""


def tabbed(view: Any, times: int, key: str = "Tab") -> list[dict[str, Any]]:
    """What the focus is on after each of some presses of a key."""
    found = []
    for _ in range(times):
        view.keyboard.press(key)
        found.append(view.evaluate(FOCUSED))
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@in_a_browser
def test_the_keyboard_alone_reaches_everything_in_order_and_shows_where_it_is(
    address: str, browser: Any, scheme: str
) -> None:
    view, errors = opened(browser, 1280, scheme)
    for page in ("/", "/turns?text=capital", "/turn?id=r3"):
        view.goto(f"{address}{page}")
        if page == "/":  # what comes after the page may bring links with it
            view.wait_for_load_state("networkidle")
        stops = tabbed(view, view.evaluate(FOCUSED)["count"])
        assert [stop["place"] for stop in stops] == list(range(len(stops))), page
        assert stops[0]["name"] == "Skip to the content"
        assert [stop["name"] for stop in stops if not (stop["outlined"] and stop["shown"])] == [], page
        back = tabbed(view, 3, "Shift+Tab")
        assert [stop["place"] for stop in back] == [len(stops) - 2, len(stops) - 3, len(stops) - 4], page
    assert errors == []


@in_a_browser
def test_a_turn_is_found_opened_and_labelled_by_keys_alone(address: str, db: Path, browser: Any) -> None:
    view, errors = opened(browser, 1280, "light")
    view.goto(f"{address}/turns")
    view.keyboard.press("Tab")
    view.keyboard.press("Enter")
    assert view.evaluate("document.activeElement.id") == "main"
    view.keyboard.press("j")
    view.keyboard.press("j")
    view.keyboard.press("k")
    view.keyboard.press("Enter")
    view.wait_for_url(re.compile("/turn[?]id=r119"))
    view.keyboard.press("g")
    assert view.evaluate("document.activeElement.id") == "who"
    assert view.locator("#label-state").text_content() == "Give your name first."
    view.keyboard.type("Ann")
    view.keyboard.press("Tab")
    view.keyboard.type("by keys")
    view.keyboard.press("Tab")
    view.keyboard.press("g")
    view.locator("[data-labels=turn] li").wait_for()
    until(view, "claim", times=40)
    view.keyboard.press("n")
    view.locator("[data-labels='0'] li").wait_for()
    until(view, "claim")
    view.keyboard.press("s")
    view.locator("[data-labels='1'] li").wait_for()
    until(view, "claim", key="Shift+Tab")
    view.keyboard.press("Space")
    assert view.locator("mark.lit[data-claims]").count() == 2
    stored = [(one.value, one.claim, one.who, one.note) for one in open_labels(str(db))]
    assert stored == [
        ("good", None, "Ann", "by keys"),
        ("not_supported", 0, "Ann", ""),
        ("supported", 1, "Ann", ""),
    ]
    assert errors == []


def until(view: Any, name: str, *, times: int = 20, key: str = "Tab") -> None:
    """Go on to the next element of a class."""
    for _ in range(times):
        view.keyboard.press(key)
        if name in view.evaluate("document.activeElement.className").split():
            return
    raise AssertionError(f"no {name} within {times} steps")
