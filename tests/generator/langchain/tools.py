"""Tools that an agent looks things up with: any name, any form of result."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, create_retriever_tool

from generator.choices import Choices
from generator.langchain.models import now
from generator.langchain.retrievers import Shelf, documents
from generator.results import RESULTS

KINDS = ("retriever_tool", "fused", "artifact", "hits", "less", "documents", *RESULTS)
_BESIDE = {"artifact": documents, "hits": RESULTS["model"], "less": RESULTS["dict"]}
"""What a tool keeps as an artifact, beside what it shows the model."""


def tool(choices: Choices) -> BaseTool:
    """The one tool of an agent."""
    name, kind = choices["tool_name"], choices["tool_result"]
    if kind == "retriever_tool":
        return create_retriever_tool(Shelf(), name, "Looks something up.")

    def fused(query: str) -> str:
        Shelf(most=1).invoke(query)
        found = now().find(query)
        return str(came("\n---\n".join(found) if found else now().nothing))

    def artifact(query: str) -> tuple[str, Any]:
        found = now().find(query)
        told = json.dumps([{"content": text} for text in found]) if kind == "hits" else "\n\n".join(found)
        return came(told if found else now().nothing), _BESIDE[kind](found)

    def plain(query: str) -> Any:
        found = now().find(query)
        make = documents if kind == "documents" else RESULTS[kind]
        return came(make(found) if found else now().nothing)

    made: Callable[..., Any] = {"fused": fused}.get(kind, artifact if kind in _BESIDE else plain)
    return StructuredTool.from_function(
        made,
        name=name,
        description="Looks something up.",
        response_format="content_and_artifact" if kind in _BESIDE else "content",
    )


def came(result: Any) -> Any:
    """A result, noted as the framework will write it."""
    now().came(result if isinstance(result, str) else str(result))
    return result
