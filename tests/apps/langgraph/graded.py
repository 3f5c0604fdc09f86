"""Graphs that grade what they found: the corrective, adaptive, self-reflective and agentic ones."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import create_retriever_tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from apps.app import ALL, ASTREAM, Truth, chain
from apps.island import (
    FARES,
    FERRY,
    LENS,
    LENS_ANSWER,
    MOOR,
    MOOR_ANSWER,
    MUSEUM,
    NEWS,
    STORM,
    SUNDAY,
    SUNDAY_ANSWER,
)
from apps.langchain.pieces import answering, calls, model, prompt, shelf
from apps.langgraph.pieces import Grade, Source, State, asking, grader, saying

WAYS = (*ALL, ASTREAM)


def corrective(*, relevant: str, answer: str) -> Any:
    """Retrieve, grade each passage; where one fails, rewrite and add what the web says."""
    rewrite = prompt("Improve for web search: {question}") | model(otherwise="boats mooring news")

    def retrieve(state: State) -> State:
        return {"documents": shelf(FERRY, FARES).invoke(state["question"])}

    def grade_documents(state: State) -> State:
        grades = [
            grader(relevant).invoke({"document": each.page_content, "question": state["question"]})
            for each in state["documents"]
        ]
        kept = [e for e, g in zip(state["documents"], grades, strict=True) if g.binary_score == "yes"]
        return {"documents": kept}

    def web_search(state: State) -> State:
        query = rewrite.invoke({"question": state["question"]}).content
        text = "\n".join(hit["content"] for hit in [{"url": f"web?{query}", "content": NEWS}])
        return {"question": str(query), "documents": [*state["documents"], Document(page_content=text)]}

    def generate(state: State) -> State:
        given = {"context": state["documents"], "question": state["question"]}
        return {"generation": answering(answer).invoke(given)}

    builder = StateGraph(State)
    for node in (retrieve, grade_documents, web_search, generate):
        builder.add_node(node.__name__, node)
    builder.add_edge(START, "retrieve")
    builder.add_edge("retrieve", "grade_documents")
    builder.add_conditional_edges(
        "grade_documents",
        lambda state: "generate" if len(state["documents"]) == 2 else "web_search",
        ["generate", "web_search"],
    )
    builder.add_edge("web_search", "generate")
    builder.add_edge("generate", END)
    return builder.compile()


@chain(Truth(question=MOOR, contexts=(NEWS,), answer=MOOR_ANSWER), given=asking, ways=WAYS)
def corrective_with_nothing_relevant() -> Any:
    """Corrective RAG: no passage passes, the question in the state is rewritten, the web answers."""
    return corrective(relevant="no such word", answer=MOOR_ANSWER)


@chain(Truth(question=SUNDAY, contexts=(FERRY, NEWS), answer=SUNDAY_ANSWER), given=asking, ways=WAYS)
def corrective_with_one_relevant() -> Any:
    """Corrective RAG: one passage passes, and a Document made of web results stands beside it."""
    return corrective(relevant="Signe", answer=SUNDAY_ANSWER)


def adaptive(datasource: str, answer: str) -> Any:
    """Route to the web or the store, grade, generate, check for support and for usefulness."""
    router = model(otherwise=calls("Source", datasource=datasource)).with_structured_output(Source)
    supported = prompt("Facts:\n{documents}\n\nGeneration: {generation}") | model(
        otherwise=calls("Grade", binary_score="yes")
    ).with_structured_output(Grade)

    def route(state: State) -> str:
        made: Any = router.invoke([SystemMessage("Route this."), HumanMessage(state["question"])])
        return "web_search" if made.datasource == "web_search" else "retrieve"

    def web_search(state: State) -> Any:
        return {"documents": Document(page_content="\n".join([NEWS]))}

    def retrieve(state: State) -> State:
        found = shelf(MUSEUM, FARES).invoke(state["question"])
        keeps = grader("Fresnel")
        asked = [{"document": each.page_content, "question": state["question"]} for each in found]
        return {
            "documents": [
                e for e, a in zip(found, asked, strict=True) if keeps.invoke(a).binary_score == "yes"
            ]
        }

    def generate(state: State) -> State:
        given = {"context": state["documents"], "question": state["question"]}
        return {"generation": answering(answer).invoke(given)}

    def check(state: State) -> str:
        given: Any = supported.invoke({"documents": state["documents"], "generation": state["generation"]})
        useful: Any = grader(state["question"]).invoke(
            {"document": state["generation"], "question": state["question"]}
        )
        return END if given.binary_score == useful.binary_score == "yes" else "generate"

    builder = StateGraph(State)
    for node in (web_search, retrieve, generate):
        builder.add_node(node.__name__, node)
    builder.add_conditional_edges(START, route, ["web_search", "retrieve"])
    builder.add_edge("web_search", "generate")
    builder.add_edge("retrieve", "generate")
    builder.add_conditional_edges("generate", check, ["generate", END])
    return builder.compile()


@chain(Truth(question=MOOR, contexts=(NEWS,), answer=MOOR_ANSWER), given=asking, ways=WAYS)
def adaptive_to_the_web() -> Any:
    """Adaptive RAG by way of the web: one Document, not a list, is the state's `documents`."""
    return adaptive("web_search", MOOR_ANSWER)


@chain(Truth(question=LENS, contexts=(MUSEUM,), answer=LENS_ANSWER), given=asking, ways=WAYS)
def adaptive_to_the_store() -> Any:
    """Adaptive RAG by way of the store: graders before, checkers after the answer."""
    return adaptive("vectorstore", LENS_ANSWER)


@chain(Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER), given=asking, ways=WAYS)
def self_reflective() -> Any:
    """Self-RAG: the first search finds nothing of use, the question is rewritten, the second search does."""
    rewrite = prompt("Look at {question} and write a better question.") | model(
        otherwise="What is the Sunday timetable of the ferry?"
    )
    search = shelf(FARES, STORM, by_word={"timetable": [FERRY, FARES]})

    def retrieve(state: State) -> State:
        return {"documents": search.invoke(state["question"])}

    def grade_documents(state: State) -> State:
        keeps = grader("Signe")
        kept = [
            each
            for each in state["documents"]
            if keeps.invoke({"document": each.page_content, "question": state["question"]}).binary_score
            == "yes"
        ]
        return {"documents": kept}

    def transform_query(state: State) -> State:
        return {"question": str(rewrite.invoke({"question": state["question"]}).content)}

    def generate(state: State) -> State:
        given = {"context": state["documents"], "question": state["question"]}
        return {"generation": answering(SUNDAY_ANSWER).invoke(given)}

    builder = StateGraph(State)
    for node in (retrieve, grade_documents, transform_query, generate):
        builder.add_node(node.__name__, node)
    builder.add_edge(START, "retrieve")
    builder.add_edge("retrieve", "grade_documents")
    builder.add_conditional_edges(
        "grade_documents",
        lambda state: "generate" if state["documents"] else "transform_query",
        ["generate", "transform_query"],
    )
    builder.add_edge("transform_query", "retrieve")
    builder.add_edge("generate", END)
    return builder.compile()


@chain(
    Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER, one_text=True),
    given=saying,
)
def agentic_with_a_grader() -> Any:
    """Agentic RAG: a retriever tool is called, its message graded, a last node answers with a string."""
    search = create_retriever_tool(shelf(FERRY, FARES), "search", "Searches the island's pages.")
    caller = model(otherwise=calls("search", query="Sunday ferry"))

    def agent(state: MessagesState) -> Any:
        return {"messages": [caller.invoke(state["messages"])]}

    def relevant(state: MessagesState) -> str:
        made: Any = grader("Signe").invoke(
            {"document": state["messages"][-1].content, "question": state["messages"][0].content}
        )
        return "generate" if made.binary_score == "yes" else END

    def generate(state: MessagesState) -> Any:
        given = {"context": state["messages"][-1].content, "question": state["messages"][0].content}
        return {"messages": [answering(SUNDAY_ANSWER).invoke(given)]}

    builder = StateGraph(MessagesState)
    builder.add_node("agent", agent)
    builder.add_node("tools", ToolNode([search]))
    builder.add_node("generate", generate)
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_conditional_edges("tools", relevant, ["generate", END])
    builder.add_edge("generate", END)
    return builder.compile()
