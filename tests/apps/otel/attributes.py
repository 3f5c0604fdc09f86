"""OpenInference attributes, as its instrumentors write them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from apps.otel.shapes import PASSAGES, QUERY, SCORES


def oi(kind: str, given: object = None, came: object = None, **more: Any) -> dict[str, Any]:
    """A kind with input and output; what is not a text goes in as JSON. `__` stands for a dot."""
    told = {"openinference.span.kind": kind, **{key.replace("__", "."): value for key, value in more.items()}}
    for key, value in (("input.value", given), ("output.value", came)):
        if value is not None:
            told[key] = value if isinstance(value, str) else json.dumps(value)
            if not isinstance(value, str):
                told[key.replace("value", "mime_type")] = "application/json"
    return told


def oi_model(sent: Sequence[tuple[str, str]], reply: str) -> dict[str, Any]:
    """A model call with flattened messages; an empty reply is one that only calls tools."""
    told: dict[str, Any] = {}
    for number, (role, text) in enumerate(sent):
        told[f"llm.input_messages.{number}.message.role"] = role
        told[f"llm.input_messages.{number}.message.content"] = text
    told["llm.output_messages.0.message.role"] = "assistant"
    if reply:
        told["llm.output_messages.0.message.content"] = reply
    return oi("LLM", **told)


def oi_tool(name: str, came: object, given: object = None) -> dict[str, Any]:
    """A tool's run."""
    return oi("TOOL", {"query": QUERY} if given is None else given, came, tool__name=name)


def oi_documents(passages: Sequence[str] = PASSAGES, prefix: str = "retrieval.documents") -> dict[str, Any]:
    """Documents, flattened."""
    told: dict[str, Any] = {}
    for number, (text, score) in enumerate(zip(passages, SCORES, strict=False)):
        told[f"{prefix}.{number}.document.id"] = f"d{PASSAGES.index(text) if text in PASSAGES else number}"
        told[f"{prefix}.{number}.document.content"] = text
        told[f"{prefix}.{number}.document.score"] = score
    return told


def oi_retriever(query: str, passages: Sequence[str] = PASSAGES) -> dict[str, Any]:
    """A retriever's run."""
    return {**oi("RETRIEVER", query), **oi_documents(passages)}
