from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from llama_index.core import Settings
from llamaindex_parts import Receiver, Scripted

from steelyard_llamaindex import _attach, instrument, uninstrument

_FOREIGN_WARNINGS = (
    # LlamaIndex's agents read what Pydantic deprecates, and its default memory never closes its database.
    "ignore::pydantic.warnings.PydanticDeprecationWarning",
    "ignore:<aiosqlite:ResourceWarning",
    # Each test here collects garbage, also that of tests of other folders.
    "ignore:unclosed <socket:ResourceWarning",
    "ignore:is_running called from within a step:DeprecationWarning",
    "ignore:Skipping serialization of known unserializable key",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            for warning in _FOREIGN_WARNINGS:
                item.add_marker(pytest.mark.filterwarnings(warning))


@pytest.fixture(autouse=True)
def no_loop_left_open() -> None:
    """Where no loop is set, LlamaIndex's synchronous calls of asynchronous code close the one they make."""
    asyncio.set_event_loop(None)


@pytest.fixture(autouse=True)
def default_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some components want a model even if they never call it."""
    monkeypatch.setattr(Settings, "_llm", Scripted())


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Records everything in the test; after it, nothing may be left behind."""
    receiver = Receiver()
    instrument(receiver)
    turns = _attach.active()
    assert turns is not None
    yield receiver
    gc.collect()
    left = turns.left
    uninstrument()
    assert left == []
