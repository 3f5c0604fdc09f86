"""Which tools search, and which names hold passages, by their words: plain text from there is evidence."""

from __future__ import annotations

import re

_SEARCHES = re.compile(
    r"search|retriev|look_?up|knowledge|information|docs?(?![a-z])|document|wiki|query_engine|(?<![a-z])rag(?![a-z])"
    r"|(?<![a-z])(?:faq|kb)(?![a-z])|find_|get_context|tavily|duckduckgo|arxiv|pubmed",
    re.IGNORECASE,
)
_WRITES = re.compile(
    r"(?:^|[^a-z])(?:create|write|save|delete|remove|send|upload|update|add|insert|ingest|index|edit|store|set|mark|transfer)"
    r"(?![a-z])",
    re.IGNORECASE,
)
_ACTS = re.compile(
    r"(?:create|write|save|delete|remove|send|upload|update|add|insert|edit|book|cancel|pay|schedule|reply|notify"
    r"|submit|transfer|escalate)(?![a-z])",
    re.IGNORECASE,
)

_PASSAGES = re.compile(
    r"(?:\w{1,40}_)?(?:contexts?|documents?|docs?|passages|chunks|snippets|excerpts|sources|facts|evidence|knowledge"
    r"|results?|rows|records|memories|findings)(?:_str|_text)?",
    re.IGNORECASE,
)


def names_passages(key: str) -> bool:
    """Whether applications keep passages under such a name.

    >>> [names_passages(name) for name in ("retrieved_docs", "sql_result", "web_results", "answer")]
    [True, True, True, False]
    """
    return _PASSAGES.fullmatch(key) is not None


def is_search(tool: str) -> bool:
    """Whether a tool's name says that it searches, rather than computes or changes something.

    >>> [is_search(name) for name in ("search_docs", "retrieve_context", "calculator", "create_document")]
    [True, True, False, False]
    """
    return _SEARCHES.search(tool) is not None and _WRITES.search(tool) is None


def is_action(tool: str) -> bool:
    """Whether a tool's name begins with what it does to something, so that it brings no passages.

    >>> [is_action(name) for name in ("send_email", "create_document", "book_search", "get_weather")]
    [True, True, False, False]
    """
    return _ACTS.match(tool) is not None and not is_search(tool)
