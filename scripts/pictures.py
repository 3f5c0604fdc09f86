"""Takes the pictures of docs/images: a report and the live view over simulated turns, in a real Chromium.

python scripts/pictures.py [--folder docs/images]
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import threading
import time
from contextlib import chdir
from pathlib import Path
from typing import Any

import uvicorn
from playwright.sync_api import sync_playwright

from steelyard.report import refresh_results, report
from steelyard.view import app

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
TURNS = 4_000
PLAIN_NAME = """() => {
  for (const one of document.querySelectorAll(".brand .quiet")) one.textContent = "steelyard.db";
}"""
"""Shows the file without its folder, which is another one each time."""


def serving(db: str) -> tuple[uvicorn.Server, str]:
    """The live view, on a free port."""
    server = uvicorn.Server(uvicorn.Config(app(db), port=0, log_level="warning"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    return server, f"http://127.0.0.1:{port}"


def opened(browser: Any, address: str, *, size: tuple[int, int], scheme: str = "light") -> Any:
    """A page with its charts drawn."""
    view = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    view.goto(address)
    view.wait_for_load_state("networkidle")
    view.evaluate(PLAIN_NAME)
    return view


def seen(view: Any, part: Any) -> None:
    """Scroll a part of the page to the top, and again: charts that come into sight change its height."""
    for _ in range(2):
        part.evaluate("one => one.scrollIntoView()")
        view.wait_for_timeout(500)


def of_metric(view: Any) -> Any:
    """The part of a report that shows faithfulness."""
    heading = view.get_by_role("heading", name="faithfulness")
    return view.locator("section, article").filter(has=heading).last


def of_report(browser: Any, page: Path, folder: Path) -> None:
    """A metric over time, and a turn on a telephone in the dark."""
    view = opened(browser, page.as_uri(), size=(1600, 1000))
    metric = of_metric(view)
    metric.locator("canvas").first.wait_for()
    seen(view, metric)
    view.screenshot(path=folder / "report.png")
    view = opened(browser, page.as_uri(), size=(390, 844), scheme="dark")
    turn = of_metric(view).locator("details").filter(has=view.locator("mark")).first
    turn.locator("summary").click()
    turn.locator("button").first.click()
    seen(view, turn)
    view.screenshot(path=folder / "turn.png")


def of_view(browser: Any, address: str, folder: Path) -> None:
    """The live overview, and a turn that is labelled."""
    view = opened(browser, f"{address}/?metric=faithfulness", size=(1600, 1000))
    view.locator("canvas").first.wait_for()
    view.locator("#slices table, #slices p").first.wait_for()
    view.screenshot(path=folder / "live-overview.png")
    view = opened(browser, f"{address}/turns?status=not_passed&metric=faithfulness", size=(1600, 1000))
    view.locator("#rows a.open").first.click()
    view.locator("#who").wait_for()
    view.evaluate(PLAIN_NAME)
    view.fill("#who", "Ann")
    view.fill("#note", "we do not pay it")
    view.keyboard.press("Tab")
    view.keyboard.press("Escape")
    view.locator(".labelbar [data-value=against]").click()
    view.locator("[data-labels=turn] li").wait_for()
    view.locator(".claim.bad, .claim").first.click()
    view.screenshot(path=folder / "live-turn.png")


def main() -> None:
    """Make results, look at them, keep what is seen."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=Path("docs/images"))
    folder = parser.parse_args().folder.resolve()
    sys.path.insert(0, str(BENCHMARKS))
    from results_file import write

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as made, chdir(made):
        write(Path("steelyard.db"), TURNS)
        refresh_results("steelyard.db")
        report("steelyard.db", by="version").write_html("report.html")
        server, address = serving("steelyard.db")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            of_report(browser, Path("report.html").resolve(), folder)
            of_view(browser, address, folder)
            browser.close()
        server.should_exit = True


if __name__ == "__main__":
    main()
