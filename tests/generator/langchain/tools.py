"""Tools that an agent looks things up with: any name, any form of result."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, create_retriever_tool

from generator.choices import Choices
from generator.langchain.models import now
from generator.langchain.retrievers import Shelf, documents
from generator.texts import JOINERS

NAMES = (
    *(
        "search",
        "get_policy",
        "query_orders",
        "fetch_page",
        "read_file",
        "execute_sql",
        "ask_handbook",
        "lookup",
    ),
    *(
        "weather_now",
        "tavily",
        "glorp",
        "crm",
        "load_skill",
        "compute_limits",
        "document_status",
        "retrieve_context",
    ),
)
RESULTS = (
    *(
        "retriever_tool",
        "text",
        "joined",
        "list",
        "json",
        "json_objects",
        "objects",
        "artifact",
        "dict",
        "sources",
    ),
    *("model", "blocks", "json_nested", "documents"),
)


@dataclass
class Page:
    """A result of the application's own."""

    title: str
    body: str


RESULT: dict[str, Callable[[Sequence[str]], Any]] = {
    "text": "\n".join,
    "joined": JOINERS["dashes"],
    "list": list,
    "json": json.dumps,
    "json_objects": lambda found: json.dumps(
        {"results": [{"id": at, "content": t} for at, t in enumerate(found)]}
    ),
    "json_nested": lambda found: json.dumps({"hits": {"hits": [{"_source": {"body": t}} for t in found]}}),
    "objects": lambda found: [{"title": f"Page {at}", "snippet": text} for at, text in enumerate(found)],
    "dict": lambda found: {"count": len(found), "rows": [[at, text] for at, text in enumerate(found)]},
    "sources": JOINERS["sources"],
    "model": lambda found: [Page(f"Page {at}", text) for at, text in enumerate(found)],
    "blocks": lambda found: [{"type": "text", "text": text} for text in found],
    "documents": documents,
}


def tool(choices: Choices) -> BaseTool:
    """The one tool of an agent."""
    name, kind = choices["tool_name"], choices["tool_result"]
    if kind == "retriever_tool":
        return create_retriever_tool(Shelf(), name, "Looks something up.")

    def artifact(query: str) -> tuple[str, Any]:
        found = now().find(query)
        return came("\n\n".join(found) or now().nothing), documents(found)

    def plain(query: str) -> Any:
        found = now().find(query)
        return came(RESULT[kind](found) if found else now().nothing)

    made: Callable[..., Any] = artifact if kind == "artifact" else plain
    return StructuredTool.from_function(
        made,
        name=name,
        description="Looks something up.",
        response_format="content_and_artifact" if kind == "artifact" else "content",
    )


def came(result: Any) -> Any:
    """A result, noted as the framework will write it."""
    now().came(result if isinstance(result, str) else str(result))
    return result
