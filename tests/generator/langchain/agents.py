"""Agents: made by the framework, of nodes, of middleware, of the classic package, by plain code."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from langchain_classic.agents import AgentExecutor, create_tool_calling_agent
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import InjectedToolCallId, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import InjectedState, ToolNode, tools_condition
from langgraph.types import Command

from generator.choices import Choices
from generator.langchain.application import Application, all_found, single
from generator.langchain.messages import FORMS, formed, prompted, spoken, template
from generator.langchain.models import Speaker, now
from generator.langchain.retrievers import finder, retriever, shown
from generator.langchain.tools import tool
from generator.texts import JOINERS
from generator.turns import Turn
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRequest, before_model, dynamic_prompt

Given = Callable[[Turn], Any]
Graph = Annotated[dict[str, Any], InjectedState]


def given(choices: Choices, key: str = "messages") -> Given:
    """What an agent is given: its messages, the conversation among them where nobody remembers it."""
    history = choices["history"] if choices["turns"] != "1" else "none"
    form = history if history in FORMS and history != "typed" else "objects"

    def of(turn: Turn) -> Any:
        said = [] if history in ("none", "stored") else spoken(turn)
        if key != "messages":
            return {key: turn.question, "chat_history": said}
        return {"messages": formed([*said, HumanMessage(turn.question)], form)}

    return of


def instructions(choices: Choices) -> str:
    """A system message of the template's lines that have no place in them; empty for none."""
    if choices["agent_prompt"] == "none":
        return ""
    lines = [*template(choices).text().splitlines(), *(MEND,) * (choices["mending"] == "yes")]
    return "\n".join(line for line in lines if "{" not in line and line.strip())


MEND = "If a search fails, rewrite the search query and try again. Route what is no question to a colleague."
"""What an agent is told that speaks as helpers' prompts do."""


def speaker(choices: Choices, name: str) -> Speaker:
    """An agent's model, which may answer without a look-up, and then in a few words."""
    hops = choices.number("hops") if choices["calling"] == "yes" else 0
    return Speaker(role="agent", tool=name, hops=hops, terse=choices["mending"] == "yes")


def remembering(choices: Choices) -> Any:
    """What remembers the conversation, where something does."""
    return InMemorySaver() if choices["history"] == "stored" and choices["thread"] == "yes" else None


def framework(choices: Choices) -> Application:
    """`create_agent` with one tool, which is called as often as there are hops."""
    one = tool(choices)
    model = speaker(choices, one.name)
    made = create_agent(
        model,
        [one],
        system_prompt=instructions(choices) or None,
        checkpointer=remembering(choices),
    )
    return single(made, given(choices), hops=model.hops, shows=all_found)


def of_nodes(choices: Choices) -> Application:
    """A graph of a model's node and a `ToolNode`."""
    one, system = tool(choices), instructions(choices)
    model = speaker(choices, one.name)

    class Named(MessagesState):
        answer: str

    def think(state: Named) -> Any:
        before = [SystemMessage(system)] if system else []
        reply = model.invoke([*before, *state["messages"]])
        is_named = choices["naming"] == "first" and not (reply.tool_calls or now().before)
        return {"messages": [reply], **({"answer": reply.text} if is_named else {})}

    built = StateGraph(Named)
    built.add_node("think", think)
    built.add_node("tools", ToolNode([one]))
    built.add_edge(START, "think")
    built.add_conditional_edges("think", tools_condition)
    built.add_edge("tools", "think")
    return single(
        built.compile(checkpointer=remembering(choices)), given(choices), hops=model.hops, shows=all_found
    )


def collected(choices: Choices) -> Application:
    """A graph whose answer is made of all that tools told in the thread, put beside the question."""
    hops, one, fill = choices.number("hops"), tool(choices), prompted(choices, history=False)
    model, speaker = Speaker(role="searcher", tool=one.name, hops=hops), Speaker(role="answer")

    def think(state: MessagesState) -> Any:
        return {"messages": [model.invoke(state["messages"])]}

    def answer(state: MessagesState) -> Any:
        turn = now()
        told = [message.text for message in state["messages"] if isinstance(message, ToolMessage)]
        for earlier in turn.before if saver else ():
            turn.found += (earlier.everything(),)
            turn.wholes += [*earlier.wholes, *("\n\n".join(found) for found in earlier.found)]
        filled = fill.invoke({"context": "\n\n".join(told), "question": turn.question, "history": ""})
        return {"messages": [speaker.invoke(filled)]}

    saver = remembering(choices)
    built = StateGraph(MessagesState)
    built.add_node("think", think)
    built.add_node("tools", ToolNode([one]))
    built.add_node("answer", answer)
    built.add_edge(START, "think")
    built.add_conditional_edges("think", tools_condition, {"tools": "tools", END: "answer"})
    built.add_edge("tools", "think")
    return single(built.compile(checkpointer=saver), given(choices), hops=hops, shows=all_found)


def printed(choices: Choices) -> Application:
    """A graph whose only prompt has all messages as Python prints them, what tools told among them."""
    hops, one = choices.number("hops"), tool(choices)
    written = ChatPromptTemplate.from_template("messages: {messages}\n\nRules:\n- Say no more than is asked.")

    def think(state: MessagesState) -> Any:
        messages = state["messages"]
        asked = max(at for at, message in enumerate(messages) if message.type == "human")
        looked = sum(message.type == "tool" for message in messages[asked:])
        model = Speaker(role="agent", tool=one.name, hops=hops, told=-looked)
        return {"messages": [(written | model).invoke({"messages": messages})]}

    built = StateGraph(MessagesState)
    built.add_node("think", think)
    built.add_node("tools", ToolNode([one]))
    built.add_edge(START, "think")
    built.add_conditional_edges("think", tools_condition, ["tools", END])
    built.add_edge("tools", "think")
    return single(
        built.compile(checkpointer=remembering(choices)), given(choices), hops=hops, shows=all_found
    )


def scratch(choices: Choices) -> Application:
    """A graph that keeps its tool messages apart, and what tools found in fields of the state."""
    hops, fill, join = choices.number("hops"), prompted(choices, history=False), JOINERS[choices["joining"]]

    def find(query: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Looks something up."""
        turn = now()
        found = turn.came(join(turn.find(query)))
        told = ToolMessage(f"{len(found)} characters were found.", tool_call_id=tool_call_id)
        return Command(update={"notes": [told], "found": [found] if found.strip() else []})

    look = StructuredTool.from_function(find, name=choices["tool_name"])
    model, speaker = Speaker(role="searcher", tool=look.name, hops=hops), Speaker(role="answer")

    def think(state: Any) -> Any:
        return {"notes": [model.invoke([HumanMessage(now().question), *state.get("notes", [])])]}

    def answer(state: Any) -> Any:
        found = "\n\n".join(state.get("found", []))
        filled = fill.invoke({"context": found, "question": now().question, "history": ""})
        return {"messages": [speaker.invoke(filled)]}

    fields = {"notes": Annotated[list[Any], operator.add], "found": Annotated[list[str], operator.add]}
    fields["messages"] = Annotated[list[Any], add_messages]
    built: Any = StateGraph(TypedDict("State", fields, total=False))  # type: ignore[operator]
    built.add_node("think", think)
    built.add_node("tools", ToolNode([look], messages_key="notes"))
    built.add_node("answer", answer)
    built.add_edge(START, "think")
    built.add_conditional_edges(
        "think", lambda state: bool(state["notes"][-1].tool_calls), {True: "tools", False: "answer"}
    )
    built.add_edge("tools", "think")
    return single(built.compile(), given(choices), hops=hops, shows=all_found)


def put_in(choices: Choices) -> Application:
    """A graph that puts what it found into the conversation, as a message in the user's place."""
    join, system = JOINERS[choices["joining"]], instructions(choices)
    model = Speaker(role="answer")

    def search(state: MessagesState) -> Any:
        turn = now()
        found = turn.came(f"Found for you:\n\n{join(turn.shown)}")
        return {"messages": [HumanMessage(found)] if turn.shown else []}

    def answer(state: MessagesState) -> Any:
        return {"messages": [model.invoke([SystemMessage(system or "You help."), *state["messages"]])]}

    built = StateGraph(MessagesState)
    built.add_node("search", search)
    built.add_node("answer", answer)
    built.add_edge(START, "search")
    built.add_edge("search", "answer")
    return single(built.compile(), given(choices))


def with_prompt(choices: Choices) -> Application:
    """Middleware that searches and writes the system prompt."""
    look = retriever(choices) if choices["looking"] == "retriever" else RunnableLambda(finder("documents"))
    join, opening = JOINERS[choices["joining"]], instructions(choices)
    seen = choices["looking"] != "outside"

    @dynamic_prompt
    def found(request: ModelRequest) -> str:
        turn = now()
        docs = look.invoke(turn.question) if seen else finder("documents")(turn.question)
        return f"{opening}\n\n{turn.came(join(shown(docs)))}"

    made = create_agent(Speaker(role="answer"), [], middleware=[found], checkpointer=remembering(choices))
    return single(made, given(choices))


def before_the_model(choices: Choices) -> Application:
    """Middleware that widens the user's message by what it found."""
    join = JOINERS[choices["joining"]]
    look = retriever(choices) if choices["looking"] == "retriever" else RunnableLambda(finder("documents"))

    @before_model
    def widen(state: Any, runtime: Any) -> dict[str, Any]:
        turn, last = now(), state["messages"][-1]
        text = f"{turn.question}\n\n{turn.came(join(shown(look.invoke(turn.question))))}"
        return {"messages": [HumanMessage(text, id=last.id)]}

    made = create_agent(Speaker(role="answer"), [], middleware=[widen], checkpointer=remembering(choices))
    return single(made, given(choices))


def executor(choices: Choices) -> Application:
    """`AgentExecutor`, of the classic package."""
    one = tool(choices)
    model = speaker(choices, one.name)
    prompt = ChatPromptTemplate.from_messages(
        [
            ("system", instructions(choices).replace("}", "") or "You help customers."),
            MessagesPlaceholder("chat_history", optional=True),
            ("human", "{input}"),
            MessagesPlaceholder("agent_scratchpad"),
        ]
    )
    made = AgentExecutor(agent=create_tool_calling_agent(model, [one], prompt), tools=[one])
    return single(made, given(choices, key="input"), hops=model.hops, shows=all_found, batches=False)


def supervisor(choices: Choices) -> Application:
    """An agent whose only tool is another agent, which searches and puts what it found in its own words."""
    hops, one = choices.number("hops"), tool(choices)
    expert = create_agent(
        Speaker(role="expert", tool=one.name, hops=hops), [one], system_prompt=instructions(choices) or None
    )

    def ask(query: str) -> str:
        """Asks a colleague."""
        state: Any = expert.invoke({"messages": [HumanMessage(query)]})
        return str(state["messages"][-1].text)

    async def ask_async(query: str) -> str:
        """Asks a colleague."""
        state: Any = await expert.ainvoke({"messages": [HumanMessage(query)]})
        return str(state["messages"][-1].text)

    colleague = StructuredTool.from_function(ask, coroutine=ask_async, name="colleague")
    made = create_agent(
        Speaker(role="agent", tool=colleague.name), [colleague], checkpointer=remembering(choices)
    )
    return single(made, given(choices), hops=hops, shows=all_found)


def with_notes(choices: Choices) -> Application:
    """An agent that takes a note first, by a tool that says back what it was given."""
    hops, one = choices.number("hops"), tool(choices)

    def keep(note: str) -> str:
        """Takes a note."""
        return f"Noted: {note}"

    notes = StructuredTool.from_function(keep, name="plan")
    speaker = Speaker(role="agent", tool=one.name, hops=hops, notes=notes.name, told=1)
    made = create_agent(
        speaker, [one, notes], system_prompt=instructions(choices) or None, checkpointer=remembering(choices)
    )
    return single(made, given(choices), hops=hops, shows=all_found)


def team(choices: Choices) -> Application:
    """An agent that hands the turn to another one, by a tool with a name of its own."""
    hops, one = choices.number("hops"), tool(choices)

    def assign(query: str, tool_call_id: Annotated[str, InjectedToolCallId], state: Graph) -> Any:
        """Hands over to a colleague."""
        told = ToolMessage("Successfully transferred to expert", tool_call_id=tool_call_id)
        update = {"messages": [*state["messages"], told]}
        return Command(goto="expert", graph=Command.PARENT, update=update)

    passing = StructuredTool.from_function(assign, name="assign_to_colleague")
    back, is_back = "transfer_back_to_front", choices["handing"] == "back"

    def before(_: Graph) -> dict[str, Any]:
        """Says in code's words that another agent was asked before, and handed the turn back."""
        call = {"name": back, "args": {}, "id": "b0", "type": "tool_call"}
        asked = AIMessage("Transferring back to front", tool_calls=[call])
        told = ToolMessage("Successfully transferred back to front", name=back, tool_call_id="b0")
        return {"messages": [asked, told] if is_back else []}

    expert = Speaker(role="agent", tool=one.name, hops=hops, told=1 + is_back)
    triage: Any = before
    built = StateGraph(MessagesState)
    built.add_node("triage", triage)
    front = Speaker(role="agent", tool=passing.name, told=int(is_back))
    built.add_node("front", create_agent(front, [passing]))
    built.add_node(
        "expert", create_agent(expert, [one], system_prompt=instructions(choices) or None, name="expert")
    )
    built.add_edge(START, "triage")
    built.add_edge("triage", "front")
    return single(
        built.compile(checkpointer=remembering(choices)), given(choices), hops=hops, shows=all_found
    )


AGENTS: dict[str, Callable[[Choices], Application]] = {
    "framework": framework,
    "nodes": of_nodes,
    "collected": collected,
    "printed": printed,
    "scratch": scratch,
    "put_in": put_in,
    "prompt": with_prompt,
    "before": before_the_model,
    "executor": executor,
    "supervisor": supervisor,
    "notes": with_notes,
    "team": team,
}


def agent(choices: Choices) -> Application:
    """An agent of one of these kinds."""
    return AGENTS[choices["agent"]](choices)
