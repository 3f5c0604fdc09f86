"""Agents: tools that retrieve, tools that do not, prompts made by middleware, and threads."""

from __future__ import annotations

import json
from typing import Annotated, Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentState, ModelRequest, before_model, dynamic_prompt
from langchain.agents.structured_output import ToolStrategy
from langchain_classic.agents import AgentExecutor, create_react_agent
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.prompts import PromptTemplate
from langchain_core.tools import InjectedToolCallId, ToolException, create_retriever_tool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import BaseModel

from apps.app import ALL, ASTREAM, BOTH, Truth, chain, script
from apps.island import (
    FARES,
    FERRY,
    LENS,
    LENS_ANSWER,
    MUSEUM,
    NEWS,
    PRICE,
    PRICE_ANSWER,
    STORM,
    SUNDAY,
    SUNDAY_ANSWER,
)
from apps.langchain.pieces import calls, joined, model, shelf, store

WAYS = (*ALL, ASTREAM)
PAIR = Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER)


def saying(question: str) -> dict[str, Any]:
    """The input of an agent."""
    return {"messages": [{"role": "user", "content": question}]}


def searching(answer: str = SUNDAY_ANSWER, mark: str = "Signe", **arguments: Any) -> Any:
    """A model that searches first and answers when it sees what it was looking for."""
    return model((mark, answer), otherwise=calls("search", **(arguments or {"query": "Sunday ferry"})))


@chain(PAIR, given=saying, ways=WAYS)
def retriever_tool() -> Any:
    """`create_retriever_tool`: the passages come back as one text, joined by blank lines."""
    return create_agent(searching(), [create_retriever_tool(shelf(FERRY, FARES), "search", "Searches.")])


@chain(PAIR, given=saying, ways=WAYS)
def retriever_tool_with_artifacts() -> Any:
    """The same tool with the documents as its artifact."""
    search = create_retriever_tool(
        shelf(FERRY, FARES), "search", "Searches.", response_format="content_and_artifact"
    )
    return create_agent(searching(), [search])


@chain(PAIR, given=saying, ways=WAYS)
def search_tool_with_artifacts() -> Any:
    """The tutorial's tool: `similarity_search`, a text of sources and contents, documents as artifact."""
    found = store(FERRY, FARES)

    @tool(response_format="content_and_artifact")
    def search(query: str) -> tuple[str, list[Document]]:
        """Searches the island's pages."""
        documents = found.similarity_search(query, k=2)
        return "\n\n".join(f"Source: {d.metadata}\nContent: {d.page_content}" for d in documents), documents

    return create_agent(searching(), [search])


@chain(
    Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER, one_text=True),
    given=saying,
)
def search_tool_with_text() -> Any:
    """A tool that searches a store by itself and returns one text."""
    found = store(FERRY, FARES)

    @tool
    def search(query: str) -> str:
        """Searches the island's pages."""
        return joined(found.similarity_search(query, k=2))

    return create_agent(searching(), [search])


@chain(PAIR, given=saying)
def search_tool_with_a_list() -> Any:
    """A tool that returns a list of texts; the framework writes it into the message as JSON."""

    @tool
    def search(query: str) -> list[str]:
        """Searches the island's pages."""
        return [FERRY, FARES]

    return create_agent(searching(), [search])


@chain(Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER), given=saying)
def search_tool_that_returns_a_command() -> Any:
    """A tool of a graph that updates the state itself: its message stands in a `Command`."""

    @tool
    def search(query: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Searches the island's pages."""
        return Command(update={"messages": [ToolMessage(FERRY, tool_call_id=tool_call_id)]})

    return create_agent(searching(), [search])


@chain(PAIR, given=saying)
def search_tool_with_an_object() -> Any:
    """A tool that returns a model of its own; the framework writes it into the message as text."""

    class Results(BaseModel):
        results: list[dict[str, str]]

    @tool
    def search(query: str) -> Any:
        """Searches the island's pages."""
        return Results(results=[{"content": FERRY}, {"content": FARES}])

    return create_agent(searching(), [search])


@chain(PAIR, given=saying)
def search_tool_with_results_as_json() -> Any:
    """A tool that writes its results as JSON, with titles and scores."""

    @tool
    def search(query: str) -> str:
        """Searches the island's pages."""
        hits = [(FERRY, 0.9), (FARES, 0.4)]
        return json.dumps(
            {
                "results": [
                    {"id": at, "content": text, "score": score} for at, (text, score) in enumerate(hits)
                ]
            }
        )

    return create_agent(searching(), [search])


@chain(PAIR, given=saying)
def web_search_tool() -> Any:
    """A web search tool: a list of mappings with url, title and content."""

    @tool
    def search(query: str) -> list[dict[str, str]]:
        """Searches the web."""
        return [
            {"url": "https://island.example/a", "title": "Timetable", "content": FERRY},
            {"url": "https://island.example/b", "title": "Fares", "content": FARES},
        ]

    return create_agent(searching(), [search])


@chain(
    Truth(question=SUNDAY, contexts=("[('07:15', 'Mo-Sa'), ('09:40', 'Su')]",), answer=SUNDAY_ANSWER),
    given=saying,
)
def database_tool() -> Any:
    """A tool that runs SQL; the rows come back as Python prints them."""

    @tool
    def search(query: str) -> str:
        """Runs a query."""
        return str([("07:15", "Mo-Sa"), ("09:40", "Su")])

    return create_agent(searching(mark="09:40", query="SELECT time, days FROM departures"), [search])


@chain(
    Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER, relayed=True),
    given=saying,
    ways=WAYS,
)
def tool_that_runs_a_chain() -> Any:
    """The tool is a whole chain that answers from passages; the agent passes its answer on."""

    @tool
    def search(query: str) -> str:
        """Answers questions about ferries."""
        context = joined(shelf(FERRY, FARES).invoke(query))
        return str(model(otherwise=SUNDAY_ANSWER).invoke(f"{context}\n\n{query}").content)

    return create_agent(searching(mark="9:40"), [search])


@chain(Truth(question=PRICE, contexts=(FARES, FERRY), answer=PRICE_ANSWER), given=saying, ways=WAYS)
def several_searches() -> Any:
    """Two searches one after the other; the second query depends on the first result."""
    speaks = model(
        (("Grown-ups", "Signe"), PRICE_ANSWER),
        ("Grown-ups", calls("search", query="timetable of the ferry")),
        otherwise=calls("search", query="fares"),
    )
    search = create_retriever_tool(shelf(FARES, by_word={"timetable": [FERRY]}), "search", "Searches.")
    return create_agent(speaks, [search])


@chain(Truth(question=PRICE, contexts=(FARES,), answer=PRICE_ANSWER), given=saying)
def search_beside_a_calculator() -> Any:
    """One tool retrieves, another calculates: a sum is not a passage."""

    @tool
    def multiply(a: int, b: int) -> int:
        """Multiplies."""
        return a * b

    speaks = model(
        (("Grown-ups", "24"), PRICE_ANSWER),
        ("Grown-ups", calls("multiply", a=2, b=12)),
        otherwise=calls("search", query="fares"),
    )
    return create_agent(speaks, [create_retriever_tool(shelf(FARES), "search", "Searches."), multiply])


@chain(
    Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER, one_text=True),
    given=saying,
    ways=WAYS,
)
def prompt_made_by_middleware() -> Any:
    """The documented two-step RAG: `@dynamic_prompt` searches the store and writes the system prompt."""
    found = store(FERRY, FARES)

    @dynamic_prompt
    def with_context(request: ModelRequest) -> str:
        query = str(request.state["messages"][-1].content)
        return f"Use this context:\n\n{joined(found.similarity_search(query, k=2))}"

    return create_agent(model(otherwise=SUNDAY_ANSWER), [], middleware=[with_context])


@chain(Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER), given=saying, ways=WAYS)
def documents_kept_by_middleware() -> Any:
    """Middleware before the model keeps the documents in the state and widens the user's message."""
    found = store(FERRY, FARES)

    class WithDocuments(AgentState[Any]):
        context: list[Document]

    @before_model(state_schema=WithDocuments)
    def retrieve(state: Any, runtime: Any) -> dict[str, Any]:
        last = state["messages"][-1]
        documents = found.similarity_search(str(last.content), k=2)
        widened = f"{last.content}\n\nContext:\n{joined(documents)}"
        return {"messages": [HumanMessage(widened, id=last.id)], "context": documents}

    return create_agent(model(otherwise=SUNDAY_ANSWER), [], middleware=[retrieve])


class Sourced(BaseModel):
    """An answer with its sources."""

    answer: str
    sources: list[str]


@chain(PAIR, given=saying, ways=BOTH)
def agent_that_answers_in_a_form() -> Any:
    """`response_format`: the answer is the arguments of a last tool call."""
    speaks = model(
        ("Signe", calls("Sourced", answer=SUNDAY_ANSWER, sources=["island/0.md"])),
        otherwise=calls("search", query="Sunday ferry"),
    )
    search = create_retriever_tool(shelf(FERRY, FARES), "search", "Searches.")
    return create_agent(speaks, [search], response_format=ToolStrategy(Sourced))


@script(
    Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER),
    Truth(question=LENS, contexts=(MUSEUM,), answer=LENS_ANSWER),
    Truth(question="Thank you!", contexts=(), answer="You are welcome.", source="retrieved"),
    ways=BOTH,
)
async def agent_in_a_thread(config: Any, way: str) -> list[str]:
    """A checkpointer keeps the thread: each turn has the passages of its own search, the last none."""
    speaks = model(
        ("Thank you!", "You are welcome."),
        ("Fresnel", LENS_ANSWER),
        ("special", calls("search", query="lighthouse museum")),
        ("Signe", SUNDAY_ANSWER),
        otherwise=calls("search", query="Sunday ferry"),
    )
    search = create_retriever_tool(shelf(FERRY, by_word={"museum": [MUSEUM]}), "search", "Searches.")
    agent: Any = create_agent(speaks, [search], checkpointer=InMemorySaver())
    thread: Any = {**config, "configurable": {"thread_id": "1"}}
    shown = []
    for question in (SUNDAY, LENS, "Thank you!"):
        state: Any = (
            await agent.ainvoke(saying(question), thread)
            if way == "ainvoke"
            else agent.invoke(saying(question), thread)
        )
        shown.append(str(state["messages"][-1].content))
    return shown


@chain(PAIR, given=lambda q: {"input": q}, ways=BOTH)
def react_in_text() -> Any:
    """The classic ReAct agent: thoughts, actions and observations in one text."""
    template = PromptTemplate.from_template(
        "Tools: {tools} ({tool_names})\nQuestion: {input}\nThought:{agent_scratchpad}"
    )
    speaks = model(
        ("Signe", f"I now know.\nFinal Answer: {SUNDAY_ANSWER}"),
        otherwise="I should look.\nAction: search\nAction Input: Sunday ferry",
    )
    tools = [create_retriever_tool(shelf(FERRY, FARES), "search", "Searches.")]
    return AgentExecutor(agent=create_react_agent(speaks, tools, template), tools=tools)


@chain(Truth(question=SUNDAY, contexts=(FERRY, STORM), answer=SUNDAY_ANSWER), given=saying)
def retriever_and_web_tools() -> Any:
    """One tool wraps a retriever, the other searches the web: both gave passages."""

    @tool
    def web_search(query: str) -> list[dict[str, str]]:
        """Searches the web."""
        return [{"url": "https://island.example/storm", "content": STORM}]

    speaks = model(
        (("Signe", "harbour"), SUNDAY_ANSWER),
        ("Signe", calls("web_search", query="storm")),
        otherwise=calls("search", query="Sunday ferry"),
    )
    return create_agent(speaks, [create_retriever_tool(shelf(FERRY), "search", "Searches."), web_search])


@chain(Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER, relayed=True), given=saying)
def agent_that_calls_an_agent() -> Any:
    """A supervisor whose tool is another agent that searches."""
    inner = create_agent(searching(), [create_retriever_tool(shelf(FERRY), "search", "Searches.")])

    @tool
    def ask_the_ferry_expert(request: str) -> str:
        """Asks an agent that knows about ferries."""
        state: Any = inner.invoke({"messages": [{"role": "user", "content": request}]})
        return str(state["messages"][-1].content)

    outer = model(("9:40", SUNDAY_ANSWER), otherwise=calls("ask_the_ferry_expert", request="Sunday times"))
    return create_agent(outer, [ask_the_ferry_expert])


@chain(Truth(question=SUNDAY, contexts=(NEWS, FERRY), answer=SUNDAY_ANSWER), given=saying)
def parallel_searches() -> Any:
    """Two calls in one message; both results stand in the next prompt, in the order of the calls."""

    @tool
    def news(query: str) -> list[str]:
        """Searches the news."""
        return [NEWS]

    both = calls("news", query="quay")
    both.tool_calls.append(calls("search", query="Sunday ferry").tool_calls[0])
    speaks = model(("Signe", SUNDAY_ANSWER), otherwise=both)
    return create_agent(speaks, [create_retriever_tool(shelf(FERRY), "search", "Searches."), news])


@chain(Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER), given=saying)
def search_tool_that_fails_at_first() -> Any:
    """A tool whose error is told to the model, which calls it again."""
    tries: list[str] = []

    @tool
    def search(query: str) -> list[str]:
        """Searches the island's pages."""
        tries.append(query)
        if len(tries) == 1:
            raise ToolException("Error: HTTP 429, too many requests for this minute; try again later.")
        return [FERRY]

    search.handle_tool_error = True
    return create_agent(searching(), [search])
