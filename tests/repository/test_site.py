"""The site as it is built: small, readable without a network, and usable by everybody."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from browsing import in_a_browser

ROOT = Path(__file__).parents[2]
SHOWN = ("", "tutorials/langchain/", "how-to/sample/", "explain/intervals/", "reference/python/metrics/")
SERIOUS = ("serious", "critical")
REACHED = """() => [...document.querySelectorAll("pre code")].every(
    code => code.scrollWidth <= code.clientWidth || code.tabIndex >= 0)"""
"""The theme makes code that is wider than its place reachable by key, a moment after the page is there."""

pytestmark = pytest.mark.slow


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: a dead link, a missing anchor or a missing name fails."""
    pytest.importorskip("zensical", reason="zensical is not installed: pip install -e '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    for part in ("docs", "src", "integrations"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "tests"))
    shutil.copy(ROOT / "zensical.toml", folder)
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder / "site"


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    handler = functools.partial(_Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_site_is_small(site: Path) -> None:
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < 15_000_000


@in_a_browser
def test_the_site_needs_no_network_when_it_is_read(address: str, browser: Any) -> None:
    view = browser.new_page()
    asked: list[str] = []
    view.on("request", lambda request: asked.append(request.url))
    for page in SHOWN:
        view.goto(f"{address}/{page}", wait_until="networkidle")
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@in_a_browser
def test_the_site_has_no_serious_finding_of_axe(address: str, browser: Any, scheme: str) -> None:
    script = Path(os.environ.get("AXE_CORE", "node_modules/axe-core")) / "axe.min.js"
    if not script.exists():
        pytest.skip("no axe-core here: npm install axe-core, or name its folder in AXE_CORE")
    view = browser.new_page(color_scheme=scheme)
    found: list[str] = []
    for page in SHOWN:
        view.goto(f"{address}/{page}", wait_until="networkidle")
        view.wait_for_function(REACHED)
        view.add_script_tag(path=str(script))
        found += [
            f"/{page}: {one['id']} ({one['impact']}): {one['nodes'][0]['html'][:200]}"
            for one in view.evaluate("axe.run()")["violations"]
            if one["impact"] in SERIOUS
        ]
    assert not found, "\n".join(found)
