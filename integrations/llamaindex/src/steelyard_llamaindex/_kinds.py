"""What a span of the dispatcher is about, read from its name and from the classes of what it was called on.

Classes are told by the names of their bases, not by `isinstance`: watching must not import LlamaIndex into an
application that does not use it, and base classes have moved between modules more than once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

__all__ = ["Kind", "Stream", "kind_of", "method_of", "stream_of"]

Kind = Literal["query", "chat", "agent", "workflow", "manual", "retrieve", "tool", "llm", "writer"]
"""What a step of a turn is; the first five can be a turn of their own."""

Stream = Literal["sync", "async", "chat"]
"""How a streamed answer comes: from a generator, an asynchronous one, or a chat engine's thread or task."""

_LLM_METHODS = (
    *("chat", "achat", "stream_chat", "astream_chat"),
    *("complete", "acomplete", "stream_complete", "astream_complete"),
)
_BY_METHOD: dict[str, tuple[tuple[str, Kind], ...]] = {
    "query": (("BaseQueryEngine", "query"),),
    "aquery": (("BaseQueryEngine", "query"),),
    "retrieve": (("BaseRetriever", "retrieve"),),
    "aretrieve": (("BaseRetriever", "retrieve"),),
    "run": (("BaseWorkflowAgent", "agent"), ("AgentWorkflow", "agent"), ("Workflow", "workflow")),
    "write_response_to_history": (("StreamingAgentChatResponse", "writer"),),
    "awrite_response_to_history": (("StreamingAgentChatResponse", "writer"),),
    **dict.fromkeys(("call", "acall", "__call__"), (("BaseTool", "tool"),)),
    **dict.fromkeys(_LLM_METHODS, (("BaseLLM", "llm"), ("BaseChatEngine", "chat"))),
}
_STREAMS: tuple[tuple[str, Stream], ...] = (
    ("AsyncStreamingResponse", "async"),
    ("StreamingResponse", "sync"),
    ("StreamingAgentChatResponse", "chat"),
)


def method_of(span_id: str) -> str:
    """The method's name in a span id such as `RetrieverQueryEngine.query-5b1c…`."""
    return span_id.partition("-")[0].rpartition(".")[2]


@lru_cache(maxsize=2048)
def kind_of(cls: Any, method: str) -> Kind | None:
    """What a call of this method on an instance of this class is about; None for what is of no interest."""
    candidates = _BY_METHOD.get(method)
    if candidates is None:
        return None
    bases = {base.__name__ for base in cls.__mro__}
    return next((kind for name, kind in candidates if name in bases), None)


@lru_cache(maxsize=512)
def stream_of(cls: Any) -> Stream | None:
    """How the answer in an object of this class arrives; None where it is there at once."""
    bases = {base.__name__ for base in cls.__mro__}
    return next((stream for name, stream in _STREAMS if name in bases), None)
