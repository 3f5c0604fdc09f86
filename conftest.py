"""Test configuration for the whole repository: slow tests run only when asked for, long ones are marked."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import warnings
from collections.abc import Generator, Iterator
from contextvars import copy_context
from functools import partial
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from browsing import Chromium
    from servers import PostgresServer

# Shared machines stall; a slow example is no failure. CI explores the same examples every time.
settings.register_profile("steelyard", deadline=None, derandomize=bool(os.environ.get("CI")), max_examples=40)
settings.register_profile("slow", settings.get_profile("steelyard"), max_examples=400)

# A shell's background job ignores SIGINT, and so would every program that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module", autouse=True)
def _garbage_ends_with_its_file() -> Iterator[None]:
    """Collect what a file's tests dropped before another file's begin.

    A generator that was dropped unfinished leaves its `with` blocks when it is collected. Frameworks set
    context variables back there, which would be in the middle of whatever test runs then.
    """
    yield
    _collect_and_freeze()


@pytest.fixture(autouse=True)
def _no_templates_of_other_tests() -> None:
    """Prompts of one test teach nothing to the next."""
    learnt = sys.modules.get("steelyard.recording.building._templates")
    if learnt is not None:
        learnt.TEMPLATES.forget()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """One server for all the tests that need any."""
    from servers import PostgresServer

    if not PostgresServer.there():
        pytest.skip("needs a Postgres: apt-get install postgresql")
    server = PostgresServer(tmp_path_factory.mktemp("postgres")).start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """One browser for all the tests that need any."""
    from browsing import running

    with running() as browser:
        yield browser


def _collect_and_freeze() -> None:
    """Collect garbage, then keep later collections off what is left.

    A worker holds some 5,000 modules. Every collection of the oldest generation would walk all of their
    objects again, which took half of the time of some rooms' tests.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Run each test in a copy of the context variables, and one that is a coroutine in a loop of its own.

    What a test drops unfinished sets variables back whenever it is collected: in one context for all tests
    that took away what a later test of the same file had set.
    """
    function = pyfuncitem.obj
    if iscoroutinefunction(function):
        pyfuncitem.obj = lambda **given: asyncio.run(function(**given))
    else:
        pyfuncitem.obj = partial(copy_context().run, function)
    try:
        return (yield)
    finally:
        pyfuncitem.obj = function


def pytest_configure(config: pytest.Config) -> None:
    """Every run draws other examples, so that few are enough for each; the slow tests have many."""
    settings.load_profile("slow" if config.getoption("--slow") else "steelyard")


def pytest_collection(session: pytest.Session) -> None:
    """Do without collections while modules are imported; hardly anything they make is garbage."""
    gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Begin with an empty heap, as far as the collector is concerned."""
    gc.enable()
    _collect_and_freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--slow`."""
    parser.addoption("--slow", action="store_true", help="also run tests marked slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what is slow unless asked, and mark what takes long by `tests/long.txt`."""
    long = set((config.rootpath / "tests/long.txt").read_text(encoding="utf-8").split())
    for item in items:
        if item.nodeid.partition("[")[0] in long:
            item.add_marker(pytest.mark.long)
    if config.getoption("--slow"):
        return
    skip = pytest.mark.skip(reason="slow; run with --slow")
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(skip)
