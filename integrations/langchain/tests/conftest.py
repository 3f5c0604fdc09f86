from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_parts import Receiver

from steelyard_langchain import CallbackHandler, detach


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.fixture
def handler(receiver: Receiver) -> Iterator[CallbackHandler]:
    """A handler with no options; after the test nothing may be left in it, and every event was readable."""
    handler = CallbackHandler(receiver)
    yield handler
    stats = handler.stats()
    assert (stats["open"], stats["runs"], stats["unreadable_event"]) == (0, 0, 0)


@pytest.fixture
def config(handler: CallbackHandler) -> Any:
    return {"callbacks": [handler]}


@pytest.fixture(autouse=True)
def detached() -> Iterator[None]:
    yield
    detach()
