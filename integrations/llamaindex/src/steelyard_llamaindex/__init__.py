"""Steelyard's recorder for LlamaIndex: engines, chat engines, agents and workflows, one Record a turn.

```python
from steelyard_llamaindex import instrument

instrument(monitor)
```

Importing this does not import LlamaIndex.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard.errors import MissingDependency
from steelyard_llamaindex._attach import attach, detach, instrument, uninstrument
from steelyard_llamaindex._manual import ManualTurn, record

if TYPE_CHECKING:
    from steelyard_llamaindex._legacy import CallbackHandler
    from steelyard_llamaindex.judge import LlamaIndexEmbedder, LlamaIndexJudge

__all__ = [
    "CallbackHandler",
    "LlamaIndexEmbedder",
    "LlamaIndexJudge",
    "ManualTurn",
    "attach",
    "detach",
    "instrument",
    "record",
    "uninstrument",
]

_LATE = {
    "CallbackHandler": "steelyard_llamaindex._legacy",
    "LlamaIndexEmbedder": "steelyard_llamaindex.judge",
    "LlamaIndexJudge": "steelyard_llamaindex.judge",
}


def __getattr__(name: str) -> Any:
    """Names that need LlamaIndex are imported when they are first asked for."""
    module = _LATE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "llama_index":
            raise
        raise MissingDependency("llama-index-core", extra="llamaindex") from error
