"""Steelyard's recorder for LangChain and LangGraph: running chains become Records, one per RAG turn.

```python
from steelyard_langchain import CallbackHandler

chain.invoke(question, config={"callbacks": [CallbackHandler(monitor)]})
```

Importing this does not import LangChain; the names do, when they are first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard.errors import MissingDependency

if TYPE_CHECKING:
    from steelyard_langchain._attach import attach, detach
    from steelyard_langchain._feedback import feedback
    from steelyard_langchain._manual import Recording, record
    from steelyard_langchain._recorder import CallbackHandler, Recorder
    from steelyard_langchain.judge import LangChainEmbedder, LangChainJudge

__all__ = [
    "CallbackHandler",
    "LangChainEmbedder",
    "LangChainJudge",
    "Recorder",
    "Recording",
    "attach",
    "detach",
    "feedback",
    "record",
]

_HOMES = {
    "CallbackHandler": "_recorder",
    "LangChainEmbedder": "judge",
    "LangChainJudge": "judge",
    "Recorder": "_recorder",
    "Recording": "_manual",
    "attach": "_attach",
    "detach": "_attach",
    "feedback": "_feedback",
    "record": "_manual",
}


def __getattr__(name: str) -> Any:
    """Find a public name in its file."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    try:
        return getattr(import_module(f"{__name__}.{home}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "langchain_core":
            raise
        raise MissingDependency("langchain-core", extra="langchain") from error
