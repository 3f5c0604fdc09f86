"""Steelyard's recorder for LlamaIndex: engines, chat engines, agents and workflows, one Record a turn.

```python
from steelyard_llamaindex import instrument

instrument(monitor)
```

Importing this does not import LlamaIndex.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard._internal.lazy import lazy_exports
from steelyard.recording import ManualTurn
from steelyard_llamaindex._attach import attach, detach, instrument, record, uninstrument

if TYPE_CHECKING:
    from steelyard_llamaindex._legacy import CallbackHandler
    from steelyard_llamaindex._replay import replay_of
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
    "replay_of",
    "uninstrument",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "CallbackHandler": "steelyard_llamaindex._legacy",
        "LlamaIndexEmbedder": "steelyard_llamaindex.judge",
        "LlamaIndexJudge": "steelyard_llamaindex.judge",
        "replay_of": "steelyard_llamaindex._replay",
    },
    extras={"llama_index": ("llama-index-core", "llamaindex")},
)
