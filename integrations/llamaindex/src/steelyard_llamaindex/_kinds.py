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
    return not _NO_PASSAGES.isdisjoint(bases_of(mapping))


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
    *("predict", "apredict", "structured_predict", "astructured_predict"),
)
_BY_METHOD: dict[str, tuple[tuple[str, Kind], ...]] = {
    "query": (("BaseQueryEngine", "query"),),
    "aquery": (("BaseQueryEngine", "query"),),
    "retrieve": (("BaseRetriever", "retrieve"),),
    "aretrieve": (("BaseRetriever", "retrieve"),),
    "synthesize": (("BaseSynthesizer", "synthesis"),),
    "asynthesize": (("BaseSynthesizer", "synthesis"),),
    "run": (("BaseWorkflowAgent", "agent"), ("AgentWorkflow", "agent"), ("Workflow", "workflow")),
    "predict_and_call": (("BaseLLM", "agent"),),
    "apredict_and_call": (("BaseLLM", "agent"),),
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
    return next((kind for name, kind in _BY_METHOD[method] if name in _bases(cls)), None)


@lru_cache(maxsize=2048)
def _bases(cls: Any) -> frozenset[str]:
    return frozenset(base.__name__ for base in cls.__mro__)


def bases_of(value: Any) -> frozenset[str]:
    """The names of an object's class and of all that it is made of."""
    cls: Any = type(value)
    return _bases(cls)


def stream_of(value: Any) -> Stream | None:
    """How the answer in an object arrives; None where it is there at once."""
    return next((stream for name, stream in _STREAMS if name in bases_of(value)), None)
