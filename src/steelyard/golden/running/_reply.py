"""What an application handed back: the answer in it, and the contexts where it gives them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steelyard.errors import SteelyardError
from steelyard.record import Context, Record
from steelyard.recording.reading import ANSWERS, DOCUMENT_TEXTS, contexts_of

_CONTEXTS = (
    *("contexts", "retrieved_contexts", "source_documents", "source_nodes", "documents", "context"),
    *("sources", "retrieval_context"),
)


class OddReply(SteelyardError):
    """An application handed back something in which no answer can be found."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AppReply:
    """An application's answer."""

    answer: str = field(repr=False)
    contexts: tuple[Context, ...] = ()
    """What the application says it retrieved; empty where it says nothing of that."""


def read_reply(value: object) -> AppReply:
    """The answer in what an application returned.

    Strings, messages, Records, responses of query engines, pairs of answer and contexts, and mappings or
    objects with fields of the usual names (`answer`, `response`, `output`, `result`; `contexts`,
    `source_documents`, `source_nodes`) are understood.
    """
    if isinstance(value, Record):
        return AppReply(answer=value.answer, contexts=value.contexts)
    if isinstance(value, str):
        return AppReply(answer=value)
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
        return AppReply(answer=value[0], contexts=_contexts(value[1]))
    answer = _answer(value)
    if answer is None:
        raise OddReply(
            f"the application returned {_named(value)}, in which there is no answer; return a string, a "
            "mapping with 'answer' and 'contexts', or a steelyard Record"
        )
    found = next((_field(value, name) for name in _CONTEXTS if _field(value, name)), ())
    return AppReply(answer=answer, contexts=_contexts(found))


def join_pieces(pieces: Iterator[Any]) -> object:
    """A streamed reply as one text."""
    return _joined(list(pieces))


async def join_async_pieces(pieces: AsyncIterator[Any]) -> object:
    """An asynchronously streamed reply as one text."""
    return _joined([piece async for piece in pieces])


def _joined(pieces: list[Any]) -> object:
    if pieces and all(isinstance(piece, Mapping) for piece in pieces):
        merged: dict[str, Any] = {}
        for piece in pieces:
            for key, value in piece.items():
                # Texts come in pieces; what else is streamed, contexts for one, comes whole.
                merged[key] = merged[key] + value if isinstance(merged.get(key), str) else value
        return merged
    texts = [piece if isinstance(piece, str) else _text(piece) for piece in pieces]
    return "".join(text for text in texts if text)


def _answer(value: object) -> str | None:
    for name in (*ANSWERS, "text", "content"):
        found = _field(value, name)
        if isinstance(found, str):
            return found
        # A message or a document as the answer; mappings are looked into below.
        if found is not None and not isinstance(found, Mapping | Sequence) and (text := _text(found)):
            return text
        if isinstance(found, Mapping) and (inner := _answer(found)) is not None:
            return inner
    if isinstance(messages := _field(value, "messages"), Sequence) and messages:
        # Of a graph's state: its last message is what the user is shown.
        return _text(messages[-1])
    return _text(value)


def _field(value: object, name: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(name)
    # Their attributes are methods (`tuple.count`), never a field of a reply.
    return None if isinstance(value, list | tuple | int | float) else getattr(value, name, None)


def _text(value: object) -> str | None:
    """The text of a message, a document or a node."""
    node = _field(value, "node")
    if node is not None:
        return _text(node)
    for name in ("text", "content", *DOCUMENT_TEXTS):
        found = _field(value, name)
        if isinstance(found, str):
            return found
        if isinstance(found, list) and found:
            parts = [part if isinstance(part, str) else _field(part, "text") for part in found]
            return "".join(part for part in parts if isinstance(part, str))
    get = getattr(value, "get_content", None)
    content = get() if callable(get) else None
    return content if isinstance(content, str) else None


def _contexts(found: object) -> tuple[Context, ...]:
    if isinstance(found, str):
        return (Context(text=found, rank=0),) if found else ()
    if not isinstance(found, Sequence):
        return ()
    given = [{"text": one.text, "id": one.id} if isinstance(one, Context) else one for one in found]
    return tuple(contexts_of(given))


def _named(value: object) -> str:
    if value is None:
        return "None"
    if isinstance(value, Mapping):
        return f"a mapping with the keys {sorted(map(str, value))[:8]}"
    return f"a {type(value).__name__}"
