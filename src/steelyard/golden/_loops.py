"""Waiting for a coroutine, with or without a loop that runs already."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

_Result = TypeVar("_Result")


def run_anywhere(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Run a coroutine in a loop of our own, wherever we are called from."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1, thread_name_prefix="steelyard-golden") as thread:
        return thread.submit(lambda: asyncio.run(work)).result()
