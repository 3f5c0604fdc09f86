"""Reading the shapes that chains take and return: strings, messages, mappings, documents, state objects.

Nothing is imported for it: messages and documents are told by their attributes, so that every version's
classes, and a framework's own, are read alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from steelyard.record import Context, text_of

__all__ = [
    "contexts_of",
    "documents_in",
    "is_document",
    "is_message",
    "last_human",
    "message_text",
    "messages_in",
    "prompt_texts",
    "role_of",
    "state_of",
]

_ROLES = {
    "user": "human",
    "assistant": "ai",
    "chatbot": "ai",
    "AIMessageChunk": "ai",
    "HumanMessageChunk": "human",
}
_IDS = ("id", "_id", "doc_id", "document_id", "chunk_id")
_SCORES = ("relevance_score", "rerank_score", "score", "_score", "similarity_score")
_SCORED = frozenset(_SCORES)


def state_of(value: Any) -> Mapping[str, Any] | None:
    """A mapping, or the fields of a state object (pydantic, dataclass, named tuple); None for all else."""
    if isinstance(value, Mapping):
        return value
    if is_message(value) or is_document(value) or isinstance(value, (str, bytes, list)):
        return None
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name, None) for field in fields(value)}
    names = getattr(type(value), "model_fields", None) or getattr(type(value), "_fields", None)
    return {name: getattr(value, name, None) for name in names} if names else None


def is_document(value: object) -> bool:
    """Whether this is a LangChain document."""
    return hasattr(value, "page_content")


def is_message(value: object) -> bool:
    """Whether this is a message object, or a message in one of the short forms (pair, mapping)."""
    if isinstance(value, Mapping):
        return "content" in value and ("role" in value or "type" in value)
    if isinstance(value, tuple):
        return len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], (str, list))
    return hasattr(value, "content") and isinstance(getattr(value, "type", None), str)


def role_of(message: Any) -> str:
    """`human`, `ai`, `system`, `tool`, or whatever the message calls itself."""
    if isinstance(message, str):
        return "human"
    if isinstance(message, Mapping):
        role = message.get("role") or message.get("type")
    else:
        role = message[0] if isinstance(message, tuple) else getattr(message, "type", "")
    return _ROLES.get(str(role), str(role))


def message_text(message: Any) -> str:
    """What a message says, without its images and tool calls."""
    if isinstance(message, str):
        return text_of(message)
    if isinstance(message, Mapping):
        content = message.get("content")
    else:
        content = message[1] if isinstance(message, tuple) else getattr(message, "content", "")
    if isinstance(content, str):
        return text_of(content)
    if isinstance(content, list):
        return "".join(map(_block_text, content))
    return ""


def _block_text(block: Any) -> str:
    if isinstance(block, str):
        return text_of(block)
    if isinstance(block, Mapping) and block.get("type") in ("text", "output_text", None):
        return text_of(block.get("text") or "")
    return ""


def messages_in(value: Any) -> list[Any]:
    """The conversation in a value: a list of messages, a prompt value, one message, a state's `messages`."""
    if isinstance(value, (str, bytes)) or value is None:
        return []
    if is_message(value):
        return [value]
    if isinstance(value, list):
        return value if value and all(is_message(item) or isinstance(item, str) for item in value) else []
    state = state_of(value)
    inner = state.get("messages") if state is not None else getattr(value, "messages", None)
    if is_message(inner) or isinstance(inner, str):
        return [inner]
    if isinstance(inner, (list, tuple)) and any(map(is_message, inner)):
        return [item for item in inner if is_message(item) or isinstance(item, str)]
    return []


def prompt_texts(prompt: Any) -> Iterator[str]:
    """The texts that one model run was sent, whether as messages or as strings."""
    for part in prompt or ():
        if isinstance(part, str):
            yield part
        elif isinstance(part, (list, tuple)):
            for message in part:
                yield message_text(message)


def documents_in(value: Any) -> list[Any]:
    """The documents that a chain returned: a list of them, or lists of them among the values of a mapping."""
    if isinstance(value, (list, tuple)):
        return [item for item in value if is_document(item)]
    state = state_of(value)
    if state is None:
        return []
    return [
        item
        for part in state.values()
        if isinstance(part, (list, tuple))
        for item in part
        if is_document(item)
    ]


def contexts_of(documents: Iterable[Any], *, query: str | None, hop: int, start: int = 0) -> list[Context]:
    """Documents, texts or mappings as Contexts, in their order; those without text are left out."""
    return [
        context
        for rank, document in enumerate(documents, start)
        if (context := _context(document, rank, query, hop)) is not None
    ]


def _context(document: Any, rank: int, query: str | None, hop: int) -> Context | None:
    text = getattr(document, "page_content", None)
    about = getattr(document, "metadata", None)
    own = getattr(document, "id", None)
    if text is None:
        text, about = _other(document)
    if type(text) is not str:
        text = text_of(text)
    if not text or text.isspace():
        return None
    score = None
    if about and isinstance(about, Mapping):
        if own is None:
            own = next((about[name] for name in _IDS if about.get(name) is not None), None)
        if not _SCORED.isdisjoint(about):
            score = _score(about)
    return Context(
        text=text,
        id=own if own is None or type(own) is str else text_of(own),
        score=score,
        rank=rank,
        query=query,
        hop=hop,
    )


def _other(document: Any) -> tuple[Any, Any]:
    """The text and the metadata of a passage that is no document: a text, or a mapping."""
    if isinstance(document, Mapping):
        return document.get("page_content") or document.get("text") or document.get("content"), document
    return (document if isinstance(document, str) else ""), None


def _score(metadata: Mapping[str, Any]) -> float | None:
    for name in _SCORES:
        value = metadata.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
        if value is not None and type(value).__module__ == "numpy":
            return float(value)
    return None


def last_human(messages: Sequence[Any]) -> int:
    """Where the last human message stands; -1 where there is none."""
    return next((at for at in range(len(messages) - 1, -1, -1) if role_of(messages[at]) == "human"), -1)
