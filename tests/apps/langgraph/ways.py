"""Ways in which applications pass things on: drafts that are revised, artifacts, threads, given texts."""

from __future__ import annotations

import json
import operator
from typing import Annotated, Any, TypedDict

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph, add_messages
from pydantic import BaseModel

from apps.app import BOTH, Truth, chain, script
from apps.island import (
    BIKES,
    DOG,
    FARES,
    FERRY,
    MOOR,
    MOOR_ANSWER,
    MUSEUM,
    NEWS,
    PRICE,
    PRICE_ANSWER,
    STORM,
    SUNDAY,
    SUNDAY_ANSWER,
)
from apps.langchain.pieces import answering, calls, joined, model, prompt, shelf
from apps.langgraph.pieces import WAYS, asking, line, saying


class Revised(TypedDict, total=False):
    """A state in which an answer is written, judged and written again."""

    question: str
    documents: list[Any]
    draft: str
    critique: dict[str, Any]
    final_text: str


@chain(Truth(question=SUNDAY, contexts=(FERRY, STORM), answer=SUNDAY_ANSWER), given=asking, ways=WAYS)
def graph_that_revises_its_draft() -> Any:
    """A draft, what another call finds wrong with it as JSON, and the text that takes that in."""

    def retrieve(state: Revised) -> Revised:
        return {"documents": shelf(FERRY, STORM).invoke(state["question"])}

    def write(state: Revised) -> Revised:
        given = {"context": joined(state["documents"]), "question": state["question"]}
        return {"draft": answering("The ferry leaves at 9:40 on that day of the week.").invoke(given)}

    def judge(state: Revised) -> Revised:
        found = '{"is_complete": false, "why": "It does not say which of the days is meant."}'
        said = (prompt("Judge this answer: {draft}") | model(otherwise=found)).invoke(
            {"draft": state["draft"]}
        )
        return {"critique": json.loads(str(said.content))}

    def revise(state: Revised) -> Revised:
        asked = prompt("{context}\n\nMake this answer better: {draft}\nIt lacks: {why}")
        given = {
            "context": joined(state["documents"]),
            "draft": state["draft"],
            "why": state["critique"]["why"],
        }
        said = (asked | model(otherwise=json.dumps({"text": SUNDAY_ANSWER}))).invoke(given)
        return {"final_text": json.loads(str(said.content))["text"]}

    return line(retrieve, write, judge, revise, state=Revised)


class Hit(BaseModel):
    """A hit of a search as the application keeps it."""

    number: int
    body: str
    weight: float


@chain(Truth(question=SUNDAY, contexts=(FERRY, STORM), answer=SUNDAY_ANSWER), given=saying, ways=BOTH)
def tool_that_keeps_its_hits_as_an_artifact() -> Any:
    """A tool that shows the model its hits as JSON, and keeps objects of its own beside."""

    @tool(response_format="content_and_artifact")
    def search(query: str) -> tuple[str, list[Hit]]:
        """Searches the island's pages."""
        hits = [Hit(number=at, body=text, weight=1 / (at + 1)) for at, text in enumerate((FERRY, STORM))]
        return json.dumps([{"content": hit.body} for hit in hits]), hits

    return create_agent(model(("Signe", SUNDAY_ANSWER), otherwise=calls("search", query="ferry")), [search])


@chain(
    Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER, one_text=True), given=saying, ways=BOTH
)
def tool_that_shows_less_than_its_artifact() -> Any:
    """A tool that shows the model one hit in words, and keeps all as an artifact for the page beside."""

    @tool(response_format="content_and_artifact")
    def search(query: str) -> tuple[str, dict[str, Any]]:
        """Searches the island's pages."""
        return FERRY, {"shown": 1, "all": [FERRY, STORM, MUSEUM], "query": query}

    return create_agent(model(("Signe", SUNDAY_ANSWER), otherwise=calls("search", query="ferry")), [search])


class Thread(TypedDict, total=False):
    """A state that a checkpoint keeps over the turns of a thread."""

    messages: Annotated[list[AnyMessage], add_messages]
    context: str
    reply: str


@script(
    Truth(question=SUNDAY, contexts=(FERRY, STORM), answer=SUNDAY_ANSWER, one_text=True),
    Truth(question=PRICE, contexts=(FARES, BIKES), answer=PRICE_ANSWER, one_text=True),
    ways=BOTH,
)
def thread_that_keeps_its_context(config: Any) -> list[str]:
    """What was looked up in one turn stands in the state of the next, and its answer in the prompt."""
    found = {SUNDAY: (FERRY, STORM), PRICE: (FARES, BIKES)}

    def look(state: Thread) -> Thread:
        return {"context": "\n".join(found[str(state["messages"][-1].content)])}

    def answer(state: Thread) -> Thread:
        told = [("system", f"You know this:\n{state['context']}"), *state["messages"]]
        said = model((PRICE, PRICE_ANSWER), otherwise=SUNDAY_ANSWER).invoke(told)
        return {"messages": [AIMessage(str(said.content))], "reply": str(said.content)}

    builder = StateGraph(Thread)
    builder.add_sequence([look, answer])
    builder.add_edge(START, "look")
    builder.add_edge("answer", END)
    graph = builder.compile(checkpointer=InMemorySaver())
    thread: Any = {**config, "configurable": {"thread_id": "7"}}
    return [
        graph.invoke({"messages": [HumanMessage(question)]}, thread)["reply"] for question in (SUNDAY, PRICE)
    ]


@chain(
    Truth(question=PRICE, contexts=(FARES, BIKES), answer=DOG),
    given=lambda question: {
        "question": question,
        "context": FARES,
        "style": "Be short and kind, please.",
    },
    ways=BOTH,
)
def given_context_beside_a_retriever() -> Any:
    """The caller brings a passage along, a retriever finds another one; both are in the prompt."""
    template = prompt("{style}\n\n{context}\n\n{more}\n\nQuestion: {question}")

    def fill(given: dict[str, str]) -> dict[str, str]:
        return {**given, "more": joined(shelf(BIKES).invoke(given["question"]))}

    return RunnableLambda(fill) | answering(DOG, template)


class Spoken(TypedDict, total=False):
    """A state with the conversation as text, and what the last turn left behind."""

    question: str
    turns: Annotated[list[dict[str, str]], operator.add]
    passages: list[str]
    reply: str


@script(
    Truth(question=SUNDAY, contexts=(FERRY, STORM), answer=SUNDAY_ANSWER),
    Truth(question=PRICE, contexts=(FARES,), answer=PRICE_ANSWER),
    Truth(question=MOOR, contexts=(NEWS,), answer=MOOR_ANSWER),
    ways=BOTH,
)
def thread_that_writes_its_history_down(config: Any) -> list[str]:
    """Questions and answers so far stand as lines in the prompt, out of a state that holds them as pairs."""
    found = {SUNDAY: [FERRY, STORM], PRICE: [FARES], MOOR: [NEWS]}

    def look(state: Spoken) -> Spoken:
        return {"passages": found[state["question"]]}

    def answer(state: Spoken) -> Spoken:
        so_far = "\n".join(f"Q: {one['asked']}\nA: {one['replied']}" for one in state.get("turns", []))
        known = "\n---\n".join(state["passages"])
        asked = f"So far:\n{so_far}\n\nMaterial:\n{known}\n\nNow answer: {state['question']}"
        said = model((MOOR, MOOR_ANSWER), (PRICE, PRICE_ANSWER), otherwise=SUNDAY_ANSWER).invoke(asked)
        text = str(said.content)
        return {"reply": text, "turns": [{"asked": state["question"], "replied": text}]}

    builder = StateGraph(Spoken)
    builder.add_sequence([look, answer])
    builder.add_edge(START, "look")
    builder.add_edge("answer", END)
    graph = builder.compile(checkpointer=InMemorySaver())
    thread: Any = {**config, "configurable": {"thread_id": "8"}}
    return [graph.invoke({"question": one}, thread)["reply"] for one in (SUNDAY, PRICE, MOOR)]


class Remembering(TypedDict, total=False):
    """A state that keeps the conversation as mappings, and the last answer beside it."""

    asked: str
    messages: list[dict[str, str]]
    passages: list[str]
    final_answer: str
    grounded: str


@script(
    Truth(question=SUNDAY, contexts=(FERRY, STORM), answer=SUNDAY_ANSWER),
    Truth(question=PRICE, contexts=(FARES,), answer=PRICE_ANSWER),
    ways=BOTH,
)
def thread_that_keeps_its_last_answer(config: Any) -> list[str]:
    """The last answer stands in the state, and in the prompt as a line of what was said; a check follows."""
    found = {SUNDAY: [FERRY, STORM], PRICE: [FARES]}

    def look(state: Remembering) -> Remembering:
        return {**state, "passages": found[state["asked"]]}

    def answer(state: Remembering) -> Remembering:
        so_far = "\n".join(f"{one['role']}: {one['content']}" for one in state.get("messages", []))
        known = "\n\n".join(state["passages"])
        told = f"Conversation so far:\n{so_far}\n\nMaterial:\n{known}\n\nQuestion: {state['asked']}"
        said = model((PRICE, PRICE_ANSWER), otherwise=SUNDAY_ANSWER).invoke(told)
        return {**state, "final_answer": str(said.content)}

    def check(state: Remembering) -> Remembering:
        asked = f"Is this grounded? Reply with a number.\n{state['passages'][0]}\n{state['final_answer']}"
        return {**state, "grounded": str(model(otherwise="0.92").invoke(asked).content)}

    def save(state: Remembering) -> Remembering:
        spoken = [("user", state["asked"]), ("assistant", state["final_answer"])]
        new = [{"role": role, "content": text} for role, text in spoken]
        return {**state, "messages": [*state.get("messages", []), *new]}

    builder = StateGraph(Remembering)
    builder.add_sequence([look, answer, check, save])
    builder.add_edge(START, "look")
    builder.add_edge("save", END)
    graph = builder.compile(checkpointer=InMemorySaver())
    thread: Any = {**config, "configurable": {"thread_id": "11"}}
    return [graph.invoke({"asked": question}, thread)["final_answer"] for question in (SUNDAY, PRICE)]


class Split(TypedDict, total=False):
    """A state with a question, its parts and what was found for each."""

    question: str
    catalogue: str
    parts: list[str]
    passages: list[str]
    generation: str


TRIP = "What does a Sunday trip with a dog take?"


@chain(Truth(question=TRIP, contexts=(FERRY, FARES), answer=DOG), given=asking, ways=WAYS)
def graph_that_splits_its_question() -> Any:
    """A model splits the question by a catalogue into a list; code finds something for each part.

    The parts stand beside what was found, and the catalogue stands only where they were written.
    """
    found = {SUNDAY: FERRY, PRICE: FARES}

    def describe(state: Split) -> Split:
        return {"catalogue": MUSEUM}

    def split(state: Split) -> Split:
        asked = (
            f"Catalogue: {state['catalogue']}\nSplit this into a JSON list of questions: {state['question']}"
        )
        return {"parts": json.loads(str(model(otherwise=json.dumps([*found])).invoke(asked).content))}

    def look(state: Split) -> Split:
        return {"passages": [found[part] for part in state["parts"]]}

    def answer(state: Split) -> Split:
        pairs = zip(state["parts"], state["passages"], strict=True)
        known = "\n\n".join(f"Part: {part}\nResult: {passage}" for part, passage in pairs)
        told = f"{known}\n\nOriginal question: {state['question']}"
        return {"generation": str(model(otherwise=DOG).invoke(told).content)}

    return line(describe, split, look, answer, state=Split)
