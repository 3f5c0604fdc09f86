from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from llama_index.core import Settings
from llamaindex_parts import Receiver, Scripted

from steelyard_llamaindex import _instrument, instrument, uninstrument


def pytest_configure(config: pytest.Config) -> None:
    # LlamaIndex's default memory never closes its database.
    config.addinivalue_line("filterwarnings", "ignore:<aiosqlite:ResourceWarning")


@pytest.fixture(autouse=True)
def default_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some components want a model even if they never call it."""
    monkeypatch.setattr(Settings, "_llm", Scripted())


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Records everything in the test; after it, nothing may be left behind."""
    receiver = Receiver()
    instrument(receiver)
    turns = _instrument.active()
    assert turns is not None
    yield receiver
    gc.collect()
    left = turns.left
    uninstrument()
    assert left == []
