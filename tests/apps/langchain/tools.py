"""What tools return: blocks of text, and statements that nothing was found."""

from __future__ import annotations

from typing import Annotated, Any

from langchain.agents import create_agent
from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState
from langgraph.types import Command

from apps.app import BOTH, Truth, chain
from apps.island import FARES, FERRY, SUNDAY, SUNDAY_ANSWER
from apps.langchain.pieces import calls, model
from apps.langgraph.pieces import saying

UNKNOWN = "I could not find out."

RESERVED = "Reserved {count} seats on the crossing of Sunday morning."
"""What the model is told of something done: it came from outside and stands in the prompt."""


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


@chain(Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER), given=saying, ways=BOTH)
def tool_that_takes_notes() -> Any:
    """A tool says back the plan that the model gave it, before another one searches."""

    @tool
    def keep_plan(plan: str) -> str:
        """Keeps a plan."""
        return f"Plan noted: {plan}"

    @tool
    def search(query: str) -> str:
        """Searches the island's pages."""
        return FERRY

    planned = calls("keep_plan", plan="1. Search the pages of the ferry.\n2. Look for Sundays.")
    speaks = model(
        ("Signe", SUNDAY_ANSWER), ("Plan noted", calls("search", query="ferry")), otherwise=planned
    )
    return create_agent(speaks, [keep_plan, search])


@chain(Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER), given=saying, ways=BOTH)
def colleague_that_takes_over() -> Any:
    """An agent hands the conversation to another one, by a tool whose name says nothing of it."""

    @tool
    def assign_expert(call: Annotated[str, InjectedToolCallId], state: Annotated[Any, InjectedState]) -> Any:
        """Asks an expert."""
        told = ToolMessage("Successfully transferred to expert", tool_call_id=call)
        update = {"messages": [*state["messages"], told]}
        return Command(goto="expert", graph=Command.PARENT, update=update)

    @tool
    def search(query: str) -> str:
        """Searches the island's pages."""
        return FERRY

    speaks = model(("Signe", SUNDAY_ANSWER), otherwise=calls("search", query="ferry"))
    builder = StateGraph(MessagesState)
    builder.add_node("front", create_agent(model(otherwise=calls("assign_expert")), [assign_expert]))
    builder.add_node("expert", create_agent(speaks, [search]))
    builder.add_edge(START, "front")
    return builder.compile()


def blocks(*texts: str) -> list[dict[str, str]]:
    """What a tool of an MCP server returns through LangChain's adapter."""
    return [{"type": "text", "text": text} for text in texts]


@chain(
    Truth(question=SUNDAY, contexts=(RESERVED.format(count=2), FERRY, FARES), answer=SUNDAY_ANSWER),
    given=saying,
    ways=BOTH,
)
def tools_of_a_server() -> Any:
    """Tools answer in blocks of text: one a result of a search, one of what another tool did."""

    @tool
    def search_pages(query: str) -> list[dict[str, str]]:
        """Searches the island's pages."""
        return blocks(FERRY, FARES)

    @tool
    def reserve_seats(count: int) -> list[dict[str, str]]:
        """Reserves seats on the next crossing."""
        return blocks(RESERVED.format(count=count))

    both = calls("reserve_seats", count=2)
    both.tool_calls.append(calls("search_pages", query="Sunday").tool_calls[0])
    return create_agent(model(("Signe", SUNDAY_ANSWER), otherwise=both), [search_pages, reserve_seats])


@chain(Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER), given=saying, ways=BOTH)
def results_in_blocks_of_their_own() -> Any:
    """A search returns results as a vendor's models take them: blocks with a title and blocks of text."""

    @tool
    def search_pages(query: str) -> list[dict[str, Any]]:
        """Searches the island's pages."""
        return [
            {"type": "search_result", "title": "Page", "source": "island", "content": blocks(text)}
            for text in (FERRY, FARES)
        ]

    return create_agent(
        model(("Signe", SUNDAY_ANSWER), otherwise=calls("search_pages", query="Sunday")), [search_pages]
    )
