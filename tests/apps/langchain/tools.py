"""What tools return beside passages: statements that nothing was found."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_core.tools import tool

from apps.app import BOTH, Truth, chain
from apps.island import FERRY, SUNDAY, SUNDAY_ANSWER
from apps.langchain.pieces import calls, model
from apps.langgraph.pieces import saying

UNKNOWN = "I could not find out."


def asks_again(*rules: Any) -> Any:
    """A model that searches with other words until it is told something."""
    return model(*rules, otherwise=calls("search", query="first ferry on Sundays"))


@chain(
    Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER, one_text=True), given=saying, ways=BOTH
)
def search_that_finds_nothing_at_first() -> Any:
    """The first search says in a sentence that it found nothing, the second returns a page."""

    @tool
    def search(query: str) -> str:
        """Searches the island's pages."""
        return FERRY if query == "ferry" else f"No relevant pages were found for '{query}'. Try other words."

    return create_agent(
        asks_again(("Signe", SUNDAY_ANSWER), ("No relevant", calls("search", query="ferry"))), [search]
    )


@chain(Truth(question=SUNDAY, contexts=(), answer=UNKNOWN), given=saying, ways=BOTH)
def search_that_finds_nothing() -> Any:
    """All that the search says, as one of a list, is that there is no result."""

    @tool
    def search(query: str) -> list[str]:
        """Searches the island's pages."""
        return ["There are no matching documents for this question."]

    return create_agent(asks_again(("no matching", UNKNOWN)), [search])
