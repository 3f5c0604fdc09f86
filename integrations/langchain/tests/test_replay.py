"""Chains, agents and graphs that answer from passages they are handed, for experiments."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_parts import QUESTION, Broken, Receiver, Shelf, calls, joined, lcel, says
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from steelyard.diagnosis import Experiments, Laboratory
from steelyard.errors import ConfigurationError
from steelyard.record import Context
from steelyard_langchain import CallbackHandler, attach, detach, replay_of

HANDED = (Context(text="The lamp was lit in 1920.", id="x"),)
ANSWER = "In 1920."


def shown(model: Any) -> str:
    return " ".join(str(message.content) for message in model.asked[-1])


def test_a_chain_answers_from_what_it_is_handed_and_is_not_recorded() -> None:
    receiver, model = Receiver(), says(ANSWER)
    attach(receiver)
    try:
        # Its retriever cannot be reached, and is not.
        chain = lcel(model, Broken()).with_config(callbacks=[CallbackHandler(receiver)])
        laboratory = Laboratory(Experiments(replay=replay_of(chain)))
        assert asyncio.run(laboratory.replay(QUESTION, HANDED)) == ANSWER
        assert HANDED[0].text in shown(model) and QUESTION in shown(model)
        assert receiver.records == []
        # Afterwards it searches as ever.
        assert lcel(model, Shelf()).invoke(QUESTION) == ANSWER
        assert "Paris is the capital" in shown(model)
    finally:
        detach()


@pytest.mark.parametrize("form", ["mapping", "store", "async"])
def test_inputs_and_searches_of_all_forms(form: str) -> None:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    model = says(ANSWER)
    if form == "store":
        chain: Any = RunnableLambda(lambda question: joined(store.similarity_search(question))) | model
    elif form == "mapping":
        chain = (
            {"context": (lambda given: given["question"]) | Broken() | joined} | RunnableLambda(str) | model
        )
    else:

        async def answer(question: str) -> Any:
            found = await store.asimilarity_search_with_score(question)
            return await model.ainvoke(joined([document for document, _ in found]))

        chain = RunnableLambda(answer)
    assert replay_of(chain, key="question" if form == "mapping" else "")(QUESTION, HANDED) == ANSWER
    assert HANDED[0].text in shown(model)


def test_an_agent_and_a_graph_remember_nothing_of_it() -> None:
    saver, model = InMemorySaver(), says(calls("search", query="lamp"), ANSWER)
    tool = create_retriever_tool(Broken(), "search", "Searches.")
    agent = create_agent(model, [tool], checkpointer=saver)
    assert replay_of(agent)(QUESTION, HANDED) == ANSWER
    assert HANDED[0].text in shown(model)

    async def node(state: MessagesState) -> dict[str, Any]:
        found = await Broken().ainvoke(str(state["messages"][-1].content))
        return {"messages": [AIMessage(content=f"It says: {joined(found)}")]}

    built = StateGraph(MessagesState).add_node("answer", node)
    graph = built.add_edge(START, "answer").add_edge("answer", END).compile(checkpointer=saver)
    assert replay_of(graph)(QUESTION, HANDED) == f"It says: {HANDED[0].text}"
    assert list(saver.list(None)) == []
    assert graph.checkpointer is saver


def test_what_cannot_be_asked_or_searches_for_nothing_says_so() -> None:
    with pytest.raises(LookupError, match="no retriever"):
        replay_of(says(ANSWER))(QUESTION, HANDED)
    with pytest.raises(ConfigurationError, match="takes a chain, agent or graph"):
        replay_of("a chain")
    two: Any = RunnableLambda(lambda given: given["who"] + given["what"])
    with pytest.raises(ConfigurationError, match="say key="):
        replay_of(two)
