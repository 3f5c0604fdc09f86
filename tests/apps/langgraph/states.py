"""Where the question and the answer of a graph stand: in a checkpoint, or deep in its state."""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from apps.app import Truth, chain, script
from apps.island import FERRY, SUNDAY, SUNDAY_ANSWER
from apps.langchain.pieces import answering, joined, shelf
from apps.langgraph.pieces import WAYS, State, line


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


class Keys(TypedDict):
    """A state of one entry that holds all there is."""

    keys: dict[str, Any]


@chain(
    Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER),
    given=lambda question: {"keys": {"question": question}},
    ways=WAYS,
)
def state_under_one_name() -> Any:
    """The state is one dictionary of question, documents and generation, as the first graphs kept it."""

    def retrieve(state: Keys) -> Keys:
        return {"keys": {**state["keys"], "documents": shelf(FERRY).invoke(state["keys"]["question"])}}

    def generate(state: Keys) -> Keys:
        given = {"context": joined(state["keys"]["documents"]), "question": state["keys"]["question"]}
        return {"keys": {**state["keys"], "generation": answering(SUNDAY_ANSWER).invoke(given)}}

    return line(retrieve, generate, state=Keys)
