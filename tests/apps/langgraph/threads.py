"""Graphs with a thread: interrupted and resumed."""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from apps.app import Truth, script
from apps.island import FERRY, SUNDAY, SUNDAY_ANSWER
from apps.langchain.pieces import answering, joined, shelf
from apps.langgraph.pieces import State


class Shown(TypedDict):
    """What a graph returns of its state."""

    generation: str


@script(Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER))
def graph_that_is_resumed(config: Any) -> Any:
    """A person agrees to what was found; the graph goes on in another run, and returns its answer alone."""

    def retrieve(state: State) -> State:
        return {"documents": shelf(FERRY).invoke(state["question"])}

    def generate(state: State) -> State:
        given = {"context": joined(state["documents"]), "question": state["question"]}
        return {"generation": answering(SUNDAY_ANSWER).invoke(given)}

    builder = StateGraph(State, output_schema=Shown)
    builder.add_sequence([retrieve, generate])
    builder.add_edge(START, "retrieve")
    graph = builder.compile(checkpointer=InMemorySaver(), interrupt_before=["generate"])
    thread: Any = {"configurable": {"thread_id": "1"}}
    graph.invoke({"question": SUNDAY}, thread)  # in another process, say: nobody records it
    resumed: Any = {**config, **thread}
    return graph.invoke(None, resumed)
