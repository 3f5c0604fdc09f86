"""Steelyard's recorder for LangChain and LangGraph: running chains become Records, one per RAG turn.

```python
from steelyard_langchain import CallbackHandler

chain.invoke(question, config={"callbacks": [CallbackHandler(monitor)]})
```

Importing this does not import LangChain; the names do, when they are first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard._internal.lazy import lazy_exports
from steelyard.recording import ManualTurn

if TYPE_CHECKING:
    from steelyard_langchain._attach import attach, detach, record
    from steelyard_langchain._feedback import feedback
    from steelyard_langchain._recorder import CallbackHandler
    from steelyard_langchain._replay import replay_of
    from steelyard_langchain.judge import LangChainEmbedder, LangChainJudge

__all__ = [
    "CallbackHandler",
    "LangChainEmbedder",
    "LangChainJudge",
    "ManualTurn",
    "attach",
    "detach",
    "feedback",
    "record",
    "replay_of",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "CallbackHandler": "steelyard_langchain._recorder",
        "LangChainEmbedder": "steelyard_langchain.judge",
        "LangChainJudge": "steelyard_langchain.judge",
        "attach": "steelyard_langchain._attach",
        "detach": "steelyard_langchain._attach",
        "feedback": "steelyard_langchain._feedback",
        "record": "steelyard_langchain._attach",
        "replay_of": "steelyard_langchain._replay",
    },
    extras={"langchain_core": ("langchain-core", "langchain")},
)
