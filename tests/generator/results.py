"""What tools are called, and in what form they return what they found."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from generator.texts import JOINERS

TOOL_NAMES = (
    *("search", "get_policy", "query_orders", "fetch_page", "read_file", "execute_sql", "ask_handbook"),
    *("lookup", "weather_now", "tavily", "glorp", "crm", "load_skill", "compute_limits", "document_status"),
    "retrieve_context",
)


@dataclass
class Page:
    """A result of the application's own."""

    title: str
    body: str


@dataclass
class Note:
    """One whose fields have names that nothing else has."""

    heading: str
    words: str


def code_of(text: str) -> str:
    """What stands beside a passage in a row of records, and belongs to it."""
    return f"TX-{crc32(text.encode()) % 90_000 + 10_000}"


TEXTUAL: dict[str, Callable[[Sequence[str]], Any]] = {
    "text": "\n".join,
    "joined": JOINERS["dashes"],
    "sources": JOINERS["sources"],
    "list": list,
    "json": json.dumps,
    "json_objects": lambda found: json.dumps(
        {"results": [{"id": at, "content": text} for at, text in enumerate(found)]}
    ),
    "json_asked": lambda found: json.dumps(
        {"query": "what is asked for here", "results": [{"title": "A page", "content": t} for t in found]}
    ),
    "json_nested": lambda found: json.dumps({"hits": {"hits": [{"_source": {"body": t}} for t in found]}}),
    "objects": lambda found: [{"title": f"Page {at}", "snippet": text} for at, text in enumerate(found)],
    "rows": lambda found: json.dumps([[f"page-{at}.md", text] for at, text in enumerate(found)]),
    "records": lambda found: [{"ticket": code_of(t), "told": t, "state": "open since May"} for t in found],
    "printed_rows": lambda found: str([(code_of(text), text, "open") for text in found]),
    "dict": lambda found: {"count": len(found), "rows": [[at, text] for at, text in enumerate(found)]},
}
"""Forms that JSON can hold."""

RESULTS: dict[str, Callable[[Sequence[str]], Any]] = {
    **TEXTUAL,
    "model": lambda found: [Page(f"Page {at}", text) for at, text in enumerate(found)],
    "own": lambda found: [Note(f"Page {at}", text) for at, text in enumerate(found)],
    "blocks": lambda found: [{"type": "text", "text": text} for text in found],
}
"""All forms that need no framework."""
