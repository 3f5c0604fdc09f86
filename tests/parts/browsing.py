"""A real Chromium for tests, one for all of them, in a thread of its own.

Playwright's synchronous interface keeps an event loop alive inside of a greenlet of the thread it is used in,
where other tests with event loops of their own would lose their context variables.
"""

from __future__ import annotations

import functools
import inspect
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest


class Chromium:
    """A browser that runs, and the thread that it may be used in."""

    def __init__(self, thread: ThreadPoolExecutor, browser: Any) -> None:
        self._thread = thread
        self._browser = browser

    def run(self, test: Callable[..., None], given: dict[str, Any]) -> None:
        """Run a test in the thread, and close what it opened."""

        def within() -> None:
            try:
                test(browser=self._browser, **given)
            finally:
                for context in self._browser.contexts:
                    context.close()

        self._thread.submit(within).result()


@contextmanager
def running() -> Iterator[Chromium]:
    """A browser until the end of the block; without any, tests skip with a reason."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium on this machine")
    with ThreadPoolExecutor(1) as thread:
        playwright = thread.submit(lambda: api.sync_playwright().start()).result()
        launch = functools.partial(playwright.chromium.launch, executable_path=path, args=["--no-sandbox"])
        browser = thread.submit(launch).result()
        yield Chromium(thread, browser)
        thread.submit(browser.close).result()
        thread.submit(playwright.stop).result()


def in_a_browser(test: Callable[..., None]) -> Callable[..., None]:
    """Give a test the parameter `browser`."""

    @functools.wraps(test)
    def run(chromium: Chromium, **given: Any) -> None:
        chromium.run(test, given)

    mine = inspect.signature(test)
    parameters = [one for name, one in mine.parameters.items() if name != "browser"]
    asked = inspect.Parameter("chromium", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    run.__signature__ = mine.replace(parameters=[asked, *parameters])  # type: ignore[attr-defined]
    return run
