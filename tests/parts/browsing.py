"""A real Chromium for a test, in a thread of the test's own.

Playwright's synchronous interface keeps an event loop alive inside of a greenlet of the thread it is used in,
where later tests with event loops of their own would lose their context variables.
"""

from __future__ import annotations

import functools
import inspect
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest


def in_a_browser(test: Callable[..., None]) -> Callable[..., None]:
    """Give a test the parameter `browser`; it skips, with a reason, where there is none."""

    def within(**given: Any) -> None:
        api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        if chromium is None:
            pytest.skip("no Chromium on this machine")
        with api.sync_playwright() as playwright:
            running = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            test(browser=running, **given)
            running.close()

    @functools.wraps(test)
    def run(**given: Any) -> None:
        with ThreadPoolExecutor(1) as own:
            own.submit(within, **given).result()

    signature = inspect.signature(test)
    others = [one for name, one in signature.parameters.items() if name != "browser"]
    run.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
    return run
