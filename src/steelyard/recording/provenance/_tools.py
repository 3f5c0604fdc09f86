"""Which tools search, by their names: what those return as plain text is evidence."""

from __future__ import annotations

import re

_SEARCHES = re.compile(
    r"search|retriev|look_?up|knowledge|information|docs?(?![a-z])|document|wiki|query_engine|(?<![a-z])rag(?![a-z])"
    r"|(?<![a-z])faq|find_|get_context|tavily|duckduckgo|arxiv|pubmed",
    re.IGNORECASE,
)
_WRITES = re.compile(
    r"(?:^|[^a-z])(?:create|write|save|delete|remove|send|upload|update|add|insert|ingest|index|edit|store|set|mark|transfer)"
    r"(?![a-z])",
    re.IGNORECASE,
)


def is_search(tool: str) -> bool:
    """Whether a tool's name says that it searches, rather than computes or changes something.

    >>> [is_search(name) for name in ("search_docs", "retrieve_context", "calculator", "create_document")]
    [True, True, False, False]
    """
    return _SEARCHES.search(tool) is not None and _WRITES.search(tool) is None
