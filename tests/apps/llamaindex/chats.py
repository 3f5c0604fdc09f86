"""Chat engines, agents and workflows of LlamaIndex."""

from __future__ import annotations

from typing import Any

from llama_index.core import SummaryIndex
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
)
from llama_index.core.memory import ChatMemoryBuffer, Memory, StaticMemoryBlock
from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer
from llama_index.core.schema import Document, NodeWithScore
from llama_index.core.tools import FunctionTool, QueryEngineTool
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step

from apps.app import BOTH, Truth, script
from apps.island import (
    FARES,
    FERRY,
    MOOR,
    MOOR_ANSWER,
    NEWS,
    PRICE,
    PRICE_ANSWER,
    STORM,
    SUNDAY,
    SUNDAY_ANSWER,
)
from apps.llamaindex.engines import over
from apps.llamaindex.pieces import Shelf, chats, completes

FOLLOW_UP = "And with a dog?"
THREAD = (
    Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER),
    Truth(question=FOLLOW_UP, contexts=(FARES,), answer=PRICE_ANSWER),
)
CONDENSED = (
    THREAD[0],
    Truth(question=FOLLOW_UP, contexts=(FARES,), answer=PRICE_ANSWER, standalone=PRICE),
)
UNNAMED: Any = {"instrument": ("contexts",)}


def by_dog(query: str) -> list[str]:
    """Fares where the query speaks of dogs."""
    return [FARES] if "dog" in query else [FERRY]


async def chat(engine: Any, way: str) -> list[str]:
    """Two turns of a conversation."""
    return [
        str(await engine.achat(question) if way == "ainvoke" else engine.chat(question))
        for question in (SUNDAY, FOLLOW_UP)
    ]


@script(*THREAD, framework="llamaindex", ways=BOTH)
async def chat_with_context(config: Any, way: str) -> list[str]:
    """The context chat engine: each message is searched for as it is."""
    llm = chats(("Grown-ups", PRICE_ANSWER), otherwise=SUNDAY_ANSWER)
    memory = ChatMemoryBuffer.from_defaults(token_limit=2000)
    return await chat(ContextChatEngine.from_defaults(Shelf(choose=by_dog), llm=llm, memory=memory), way)


@script(*CONDENSED, framework="llamaindex", ways=BOTH)
async def chat_that_condenses(config: Any, way: str) -> list[str]:
    """The condense-question engine: the second question is written out of the conversation."""
    llm = completes(("Follow Up", PRICE), ("Grown-ups", PRICE_ANSWER), otherwise=SUNDAY_ANSWER)
    return await chat(
        CondenseQuestionChatEngine.from_defaults(over(Shelf(choose=by_dog), llm=llm), llm=llm), way
    )


@script(*CONDENSED, framework="llamaindex", ways=BOTH)
async def chat_that_condenses_and_shows_context(config: Any, way: str) -> list[str]:
    """The condense-plus-context engine."""
    llm = chats(("Follow Up", PRICE), ("Grown-ups", PRICE_ANSWER), otherwise=SUNDAY_ANSWER)
    return await chat(CondensePlusContextChatEngine.from_defaults(Shelf(choose=by_dog), llm=llm), way)


@script(Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER, relayed=True), framework="llamaindex")
async def agent_with_an_engine(config: Any) -> str:
    """A function agent whose tool is a query engine."""
    tool = QueryEngineTool.from_defaults(
        over(Shelf(FERRY), llm=completes(otherwise="The first one leaves at 9:40.")),
        name="search",
        description="Ferries.",
    )
    llm = chats(("9:40", SUNDAY_ANSWER), otherwise=[("search", {"input": "Sunday ferry"})])
    return str(await FunctionAgent(tools=[tool], llm=llm, streaming=False).run(SUNDAY))


@script(
    Truth(question=SUNDAY, contexts=(FERRY, STORM), answer=SUNDAY_ANSWER, one_text=True),
    framework="llamaindex",
    allowed_notes=UNNAMED,
)
async def agent_with_a_search_function(config: Any) -> str:
    """A function agent whose tool is a Python function that retrieves and joins."""

    def search(query: str) -> str:
        """Searches the island's pages."""
        return "\n\n".join(each.text for each in Shelf(FERRY, STORM).retrieve(query))

    llm = chats(("Signe", SUNDAY_ANSWER), otherwise=[("search", {"query": "Sunday ferry"})])
    agent = FunctionAgent(tools=[FunctionTool.from_defaults(search)], llm=llm, streaming=False)
    return str(await agent.run(SUNDAY))


@script(
    Truth(question=MOOR, contexts=(NEWS,), answer=MOOR_ANSWER), framework="llamaindex", allowed_notes=UNNAMED
)
async def agent_that_searches_the_web(config: Any) -> str:
    """A function agent whose tool asks the web and returns a list of texts."""

    def web_search(query: str) -> list[str]:
        """Searches the web."""
        return [NEWS]

    llm = chats(("breakwater", MOOR_ANSWER), otherwise=[("web_search", {"query": "quay"})])
    tools: Any = [FunctionTool.from_defaults(web_search)]
    workflow = AgentWorkflow.from_tools_or_functions(tools, llm=llm)
    return str(await workflow.run(user_msg=MOOR))


@script(Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER, relayed=True), framework="llamaindex")
async def agent_that_reasons_in_text(config: Any) -> str:
    """The ReAct agent over a query engine."""
    tool = QueryEngineTool.from_defaults(
        over(Shelf(FERRY), llm=completes(otherwise="The first one leaves at 9:40.")),
        name="search",
        description="Ferries.",
    )
    llm = chats(
        ("leaves at 9:40.", f"Thought: I can answer.\nAnswer: {SUNDAY_ANSWER}"),
        otherwise='Thought: I need a tool.\nAction: search\nAction Input: {"input": "Sunday"}',
    )
    return str(await ReActAgent(tools=[tool], llm=llm, streaming=False).run(SUNDAY))


@script(
    Truth(question=MOOR, contexts=(NEWS,), answer=MOOR_ANSWER), framework="llamaindex", allowed_notes=UNNAMED
)
async def agents_with_a_state(config: Any) -> str:
    """Two function agents with a state around the question; the first hands over to the second."""

    def read_news(query: str) -> str:
        """Reads the news of the island."""
        return NEWS

    given = {"reason": "The news desk knows more about the harbour.", "to_agent": "desk"}
    desk = FunctionAgent(
        name="desk",
        description="Knows the news.",
        tools=[FunctionTool.from_defaults(read_news)],
        llm=chats(("breakwater", MOOR_ANSWER), otherwise=[("read_news", {"query": "quay"})]),
    )
    door = FunctionAgent(
        name="door",
        description="Knows who knows.",
        llm=chats(otherwise=[("handoff", given)]),
        can_handoff_to=["desk"],
    )
    workflow = AgentWorkflow(
        agents=[door, desk], root_agent="door", initial_state={"visits": 2, "island": "Known to few."}
    )
    return str(await workflow.run(user_msg=MOOR))


@script(
    Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER),
    framework="llamaindex",
)
async def agent_with_a_memory_that_was_set_up(config: Any) -> str:
    """A function agent whose memory was set up with a text about who it speaks for."""

    def search(query: str) -> list[str]:
        """Searches the island's pages."""
        return [FERRY]

    about: Any = "You speak for the tourist office of an island."  # the field's type leaves texts out
    house = StaticMemoryBlock(name="house", static_content=about)
    memory = Memory.from_defaults(session_id="guest", memory_blocks=[house])
    llm = chats(("Signe", SUNDAY_ANSWER), otherwise=[("search", {"query": "Sunday ferry"})])
    agent = FunctionAgent(tools=[FunctionTool.from_defaults(search)], llm=llm, streaming=False)
    return str(await agent.run(SUNDAY, memory=memory))


class Found(Event):
    """What was retrieved."""

    nodes: list[NodeWithScore]


class Ready(Event):
    """What is to be read."""

    text: str


@script(Truth(question=SUNDAY, contexts=(STORM,), answer=SUNDAY_ANSWER), framework="llamaindex")
async def workflow_that_reranks(config: Any) -> str:
    """Retrieve, rerank, synthesize: the documentation's workflow."""

    class Flow(Workflow):
        @step
        async def retrieve(self, ctx: Context, ev: StartEvent) -> Found:
            await ctx.store.set("query", ev.query)
            return Found(nodes=await Shelf(FERRY, STORM).aretrieve(ev.query))

        @step
        async def answer(self, ctx: Context, ev: Found) -> StopEvent:
            synthesizer = get_response_synthesizer(
                llm=completes(otherwise=SUNDAY_ANSWER), response_mode=ResponseMode.COMPACT
            )
            return StopEvent(
                result=await synthesizer.asynthesize(await ctx.store.get("query"), ev.nodes[-1:])
            )

    return str(await Flow().run(query=SUNDAY))


@script(
    Truth(question=MOOR, contexts=(FERRY, NEWS), answer=MOOR_ANSWER, one_text=True),
    framework="llamaindex",
)
async def workflow_that_corrects(config: Any) -> str:
    """Corrective RAG: nodes are graded, the web is asked, both texts go into a Document of an index."""
    judge = completes(("Signe", "yes"), otherwise="no")

    class Flow(Workflow):
        @step
        async def retrieve(self, ctx: Context, ev: StartEvent) -> Found:
            await ctx.store.set("query", ev.query_str)
            return Found(nodes=await Shelf(FERRY, FARES).aretrieve(ev.query_str))

        @step
        async def correct(self, ctx: Context, ev: Found) -> Ready:
            grades = [await judge.acomplete(f"Relevant?\n{each.text}") for each in ev.nodes]
            kept = [each.text for each, g in zip(ev.nodes, grades, strict=True) if g.text == "yes"]
            await completes(otherwise="boats mooring now").acomplete("Rewrite the query")
            return Ready(text="\n".join([*kept, NEWS]))

        @step
        async def answer(self, ctx: Context, ev: Ready) -> StopEvent:
            made = SummaryIndex.from_documents([Document(text=ev.text)])
            engine = made.as_query_engine(llm=completes(otherwise=MOOR_ANSWER))
            return StopEvent(result=await engine.aquery(await ctx.store.get("query")))

    return str(await Flow().run(query_str=MOOR))


@script(Truth(question=PRICE, contexts=(FARES, STORM), answer=PRICE_ANSWER), framework="llamaindex")
async def workflow_with_a_prompt_by_hand(config: Any) -> str:
    """A workflow that is given its index, formats the prompt itself, and returns what OpenAI's API would."""

    class Flow(Workflow):
        @step
        async def retrieve(self, ctx: Context, ev: StartEvent) -> Found:
            await ctx.store.set("query", ev.query)
            return Found(nodes=await ev.retriever.aretrieve(ev.query))

        @step
        async def answer(self, ctx: Context, ev: Found) -> StopEvent:
            shown = "\n".join(f"[{at}] {each.text}" for at, each in enumerate(ev.nodes, 1))
            query = await ctx.store.get("query")
            made = await completes(otherwise=PRICE_ANSWER).acomplete(f"{shown}\n\nQuestion: {query}")
            message = {"role": "assistant", "content": made.text}
            return StopEvent(result={"id": "chat-1", "choices": [{"index": 0, "message": message}]})

    return str(await Flow().run(query=PRICE, retriever=Shelf(FARES, STORM)))


@script(
    Truth(question=PRICE, contexts=(FARES, STORM), answer=PRICE_ANSWER, one_text=True), framework="llamaindex"
)
async def workflow_with_a_search_of_its_own(config: Any) -> str:
    """A step asks a database or a service by itself, so that only the prompt holds the passages."""

    class Flow(Workflow):
        @step
        async def answer(self, ev: StartEvent) -> StopEvent:
            context = "\n\n".join([FARES, STORM.replace("\n\n", "\n")])
            shown = f"Context:\n{context}\n\nQuestion: {ev.question}\nAnswer:"
            return StopEvent(result=(await completes(otherwise=PRICE_ANSWER).acomplete(shown)).text)

    return str(await Flow().run(question=PRICE))


@script(Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER), framework="llamaindex")
async def agent_whose_search_fails_at_first(config: Any) -> str:
    """A function agent whose tool raises, which the agent is told, and finds something when called again."""
    tries: list[str] = []

    def search(query: str) -> list[str]:
        """Searches the island's pages."""
        tries.append(query)
        if len(tries) == 1:
            raise RuntimeError("Error: HTTP 429, too many requests for this minute; try again later.")
        return [FERRY]

    llm = chats(("Signe", SUNDAY_ANSWER), otherwise=[("search", {"query": "Sunday ferry"})])
    agent = FunctionAgent(tools=[FunctionTool.from_defaults(search)], llm=llm, streaming=False)
    return str(await agent.run(SUNDAY))


@script(Truth(question=SUNDAY, contexts=(), answer=MOOR_ANSWER), framework="llamaindex")
async def search_without_a_result(config: Any) -> str:
    """A function that searches and says, as a text, that there is nothing."""

    def search(query: str) -> str:
        """Searches the island's pages."""
        return f"No pages were found for '{query}'."

    llm = chats(("No pages", MOOR_ANSWER), otherwise=[("search", {"query": "ferry"})])
    agent = FunctionAgent(tools=[FunctionTool.from_defaults(search)], llm=llm, streaming=False)
    return str(await agent.run(SUNDAY))


@script(
    Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER),
    Truth(question=PRICE, contexts=(FARES,), answer=PRICE_ANSWER),
    framework="llamaindex",
    allowed_notes=dict.fromkeys(("instrument", "openinference", "openllmetry"), ("turns",)),
)
async def workflow_that_answers_several(config: Any) -> Any:
    """A workflow is given a list of questions, asks an engine each, and returns the list of answers."""

    def by_fare(query: str) -> list[str]:
        return [FARES] if "How much" in query else [FERRY]

    class Several(Workflow):
        @step
        async def answer(self, ev: StartEvent) -> StopEvent:
            engine = over(
                Shelf(choose=by_fare), llm=completes(("How much", PRICE_ANSWER), otherwise=SUNDAY_ANSWER)
            )
            return StopEvent(result=[str(await engine.aquery(question)) for question in ev.questions])

    return await Several().run(questions=[SUNDAY, PRICE])
