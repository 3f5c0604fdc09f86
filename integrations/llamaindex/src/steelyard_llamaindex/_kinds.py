"""What a span of the dispatcher is about, read from its name and from the classes of what it was called on.

Classes are told by the names of their bases, not by `isinstance`: watching must not import LlamaIndex into an
application that does not use it, and base classes have moved between modules more than once.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from types import FrameType
from typing import Any, Literal

# As deep as they call an engine, with room to spare.
_MOST_FRAMES = 60
_EVALUATORS = ("llama_index.core.evaluation", "llama_index.core.llama_dataset.generator")


_PASSED_ON = ("steelyard_llamaindex", "llama_index_instrumentation", "wrapt")
_NO_PASSAGES = frozenset({"BaseToolNodeMapping", "SQLTableNodeMapping"})


def finds_no_passages() -> bool:
    """Whether a retriever is asked by one of objects, which finds the tools of an agent, or tables."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and str(frame.f_globals.get("__name__")).startswith(_PASSED_ON):
        frame = frame.f_back
    caller = None if frame is None else frame.f_locals.get("self")
    # Looked up in its fields, since asking the object could run code of the application's.
    mapping = (getattr(caller, "__dict__", None) or {}).get("_object_node_mapping")
    return any(base.__name__ in _NO_PASSAGES for base in type(mapping).__mro__)


def is_asked_by_evaluator() -> bool:
    """Whether the caller is one of LlamaIndex's own evaluators or makers of test questions.

    They run a query engine over the passages of an answer, or send a model a prompt, and nothing but the
    caller tells these from a user's.
    """
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return False
        if str(frame.f_globals.get("__name__")).startswith(_EVALUATORS):
            return True
        frame = frame.f_back
    return False


Kind = Literal[
    "query", "chat", "agent", "workflow", "manual", "retrieve", "synthesis", "tool", "llm", "writer"
]
"""What a step of a turn is; the first five can be a turn of their own, a synthesis or model call one that
goes with the retrieval before it."""

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
    "synthesize": (("BaseSynthesizer", "synthesis"),),
    "asynthesize": (("BaseSynthesizer", "synthesis"),),
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


def kind_of(span_id: str, cls: Any) -> Kind | None:
    """What a span is about; None for what is of no interest.

    Args:
        span_id: Such as `RetrieverQueryEngine.query-`, followed by the 36 characters of a UUID.
        cls: The class of what the method was called on.
    """
    method = span_id[span_id.find(".") + 1 : -37]
    return _kind(cls, method) if method in _BY_METHOD else None


@lru_cache(maxsize=2048)
def _kind(cls: Any, method: str) -> Kind | None:
    bases = {base.__name__ for base in cls.__mro__}
    return next((kind for name, kind in _BY_METHOD[method] if name in bases), None)


@lru_cache(maxsize=512)
def stream_of(cls: Any) -> Stream | None:
    """How the answer in an object of this class arrives; None where it is there at once."""
    bases = {base.__name__ for base in cls.__mro__}
    return next((stream for name, stream in _STREAMS if name in bases), None)


@lru_cache(maxsize=512)
def passes(cls: Any) -> bool:
    """Whether an object of this class is what a step of a workflow passes on: an event."""
    return any(base.__name__ == "Event" for base in cls.__mro__)


@lru_cache(maxsize=512)
def is_memory(cls: Any) -> bool:
    """Whether an object of this class is the memory of a conversation."""
    return any(base.__name__ == "BaseMemory" for base in cls.__mro__)
