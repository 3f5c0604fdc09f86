"""State graphs: the well-known corrective, adaptive and self-reflective ones, and the templates."""

from __future__ import annotations

import operator
import threading
from typing import Annotated, Any, Literal, TypedDict

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.tools import create_retriever_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, Send
from pydantic import BaseModel

from apps.app import ALL, ASTREAM, Truth, chain, script
from apps.island import (
    FARES,
    FERRY,
    LENS,
    LENS_ANSWER,
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
from apps.langchain_pieces import ANSWERING, answering, calls, documents, joined, model, prompt, shelf, store

WAYS = (*ALL, ASTREAM)


class State(TypedDict, total=False):
    """What most tutorials keep."""

    question: str
    documents: list[Document]
    generation: str


class Grade(BaseModel):
    """A binary score."""

    binary_score: Literal["yes", "no"]


class Source(BaseModel):
    """Where to look."""

    datasource: Literal["vectorstore", "web_search"]


def asking(question: str) -> dict[str, str]:
    """A state with a question."""
    return {"question": question}


def saying(question: str) -> dict[str, Any]:
    """A state with a message."""
    return {"messages": [HumanMessage(question)]}


def grader(*words: str) -> Any:
    """A model that says yes where one of these words stands in the prompt."""
    rules = [(word, calls("Grade", binary_score="yes")) for word in words]
    form = model(*rules, otherwise=calls("Grade", binary_score="no")).with_structured_output(Grade)
    return prompt("Document:\n{document}\n\nQuestion: {question}") | form


def line(*nodes: Any, state: Any = State, **options: Any) -> Any:
    """A graph of nodes one after the other."""
    builder = StateGraph(state)
    builder.add_sequence(list(nodes))
    builder.add_edge(START, nodes[0].__name__)
    return builder.compile(**options)


@chain(Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER), given=asking, ways=WAYS)
def retrieve_and_generate() -> Any:
    """The graph of the official tutorial: `similarity_search` in one node, the model in the next."""
    found = store(FERRY, FARES)

    def retrieve(state: State) -> State:
        return {"documents": found.similarity_search(state["question"], k=2)}

    def generate(state: State) -> State:
        messages = ANSWERING.invoke({"question": state["question"], "context": joined(state["documents"])})
        return {"generation": str(model(otherwise=SUNDAY_ANSWER).invoke(messages).content)}

    return line(retrieve, generate)


@chain(Truth(question=SUNDAY, contexts=(FERRY, STORM), answer=SUNDAY_ANSWER), given=asking)
def documents_printed_by_a_graph() -> Any:
    """The node hands the state's list of Documents to a template as it is."""

    def retrieve(state: State) -> State:
        return {"documents": shelf(FERRY, STORM).invoke(state["question"])}

    def generate(state: State) -> State:
        given = {"context": state["documents"], "question": state["question"]}
        return {"generation": answering(SUNDAY_ANSWER).invoke(given)}

    return line(retrieve, generate)


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


class Research(TypedDict, total=False):
    """What parallel searches add to."""

    messages: list[Any]
    queries: list[str]
    query: str
    documents: Annotated[list[Document], operator.add]


@chain(Truth(question=PRICE, contexts=(FARES, STORM), answer=PRICE_ANSWER), given=saying, ways=WAYS)
def research_plan_with_parallel_searches() -> Any:
    """A plan of queries, a search node for each by `Send`, ending in any order; XML for the system."""
    plan = (
        prompt("Plan searches for: {question}")
        | model(otherwise="dog fare\nticket validity")
        | StrOutputParser()
    )
    search = shelf(by_word={"fare": [FARES], "ticket": [STORM]})

    def write_queries(state: Research) -> Research:
        return {"queries": plan.invoke({"question": state["messages"][-1].content}).splitlines()}

    second = threading.Event()

    def retrieve_documents(state: Research) -> Research:
        if "fare" in state["query"]:
            second.wait(120)  # the first search is the slower one
        found = search.invoke(state["query"])
        second.set()
        return {"documents": found}

    inner = StateGraph(Research)
    inner.add_node("write_queries", write_queries)
    inner.add_node("retrieve_documents", retrieve_documents)
    inner.add_edge(START, "write_queries")
    inner.add_conditional_edges(
        "write_queries",
        lambda state: [Send("retrieve_documents", {"query": each}) for each in state["queries"]],
        ["retrieve_documents"],
    )

    def respond(state: Research) -> Research:
        shown = "\n".join(
            f"<document source='{each.metadata['source']}'>\n{each.page_content}\n</document>"
            for each in state["documents"]
        )
        system = {"role": "system", "content": f"<documents>\n{shown}\n</documents>"}
        return {"messages": [model(otherwise=PRICE_ANSWER).invoke([system, *state["messages"]])]}

    builder = StateGraph(Research)
    builder.add_node("research", inner.compile())
    builder.add_node("respond", respond)
    builder.add_edge(START, "research")
    builder.add_edge("research", "respond")
    return builder.compile()


@script(
    Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER),
    Truth(question="And with a dog?", contexts=(FARES,), answer=PRICE_ANSWER, standalone=PRICE),
    ways=("invoke", "ainvoke"),
)
async def thread_with_condensed_questions(config: Any, way: str) -> list[str]:
    """A template's chat graph: from the second turn on a model writes the query out of the conversation."""
    condense = model(otherwise=PRICE)
    search = shelf(FERRY, by_word={"dog": [FARES]})
    speaks = model(("Grown-ups", PRICE_ANSWER), otherwise=SUNDAY_ANSWER)

    class Chat(MessagesState):
        query: str
        found: list[Document]

    def generate_query(state: Chat) -> Any:
        if len(state["messages"]) == 1:
            return {"query": state["messages"][-1].content}
        return {"query": condense.invoke([SystemMessage("Write a query."), *state["messages"]]).content}

    def retrieve(state: Chat) -> Any:
        return {"found": search.invoke(state["query"])}

    def respond(state: Chat) -> Any:
        system = SystemMessage(f"Passages:\n{joined(state['found'])}")
        return {"messages": [speaks.invoke([system, *state["messages"]])]}

    graph = line(generate_query, retrieve, respond, state=Chat, checkpointer=InMemorySaver())
    thread = {**config, "configurable": {"thread_id": "1"}}
    shown = []
    for question in (SUNDAY, "And with a dog?"):
        if way == "ainvoke":
            state = await graph.ainvoke(saying(question), thread)
        else:
            state = graph.invoke(saying(question), thread)
        shown.append(state["messages"][-1].content)
    return shown


@chain(Truth(question=SUNDAY, contexts=(FERRY, MUSEUM), answer=SUNDAY_ANSWER), given=asking)
def results_of_a_service_in_the_state() -> Any:
    """A node calls a search service and keeps plain mappings; another prints them. No document anywhere."""

    class Plain(TypedDict, total=False):
        question: str
        search_results: list[dict[str, str]]
        answer: str

    def web_search(state: Plain) -> Plain:
        return {"search_results": [{"title": "a", "content": FERRY}, {"title": "b", "content": MUSEUM}]}

    def generate(state: Plain) -> Plain:
        context = "\n\n".join(f"{hit['title']}\n{hit['content']}" for hit in state["search_results"])
        return {
            "answer": answering(SUNDAY_ANSWER).invoke({"context": context, "question": state["question"]})
        }

    return line(web_search, generate, state=Plain)


@chain(Truth(question=PRICE, contexts=(FARES, FERRY), answer=PRICE_ANSWER, relayed=True), given=saying)
def supervisor_of_two_researchers() -> Any:
    """Two workers answer from passages of their own; a supervisor writes the answer out of their reports."""

    def worker(passage: str, report: str) -> Any:
        def work(state: MessagesState) -> Any:
            context = joined(shelf(passage).invoke(str(state["messages"][0].content)))
            made = answering(report).invoke({"context": context, "question": state["messages"][0].content})
            return {"messages": [AIMessage(made, name="worker")]}

        return work

    def supervisor(state: MessagesState) -> Any:
        return {"messages": [model(otherwise=PRICE_ANSWER).invoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("fares", worker(FARES, "Fares: 12 euros a head, 3 for a dog."))
    builder.add_node("times", worker(FERRY, "Times: the boat departs at a quarter past seven."))
    builder.add_node("supervisor", supervisor)
    builder.add_edge(START, "fares")
    builder.add_edge("fares", "times")
    builder.add_edge("times", "supervisor")
    builder.add_edge("supervisor", END)
    return builder.compile()


@chain(Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER), given=asking)
def documents_made_of_database_rows() -> Any:
    """A node makes Documents of the rows of a database, and the prompt lists them."""

    def look_up(state: State) -> State:
        rows = [(1, FERRY, "timetable")]
        return {"documents": documents(*(text for _, text, _ in rows))}

    def generate(state: State) -> State:
        listed = "\n".join(f"- {each.page_content}" for each in state["documents"])
        return {
            "generation": answering(SUNDAY_ANSWER).invoke({"context": listed, "question": state["question"]})
        }

    return line(look_up, generate)


class Rows(TypedDict, total=False):
    """A question, and what a database has on it."""

    question: str
    rows: list[str]
    records: str
    generation: str


@chain(Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER), given=asking)
def rows_of_a_database_as_texts() -> Any:
    """A node keeps rows as plain texts in the state; no retriever, tool or document is in it."""

    def read_table(state: Rows) -> Rows:
        return {"rows": [FERRY, FARES]}

    def generate(state: Rows) -> Rows:
        listed = "\n".join(f"- {row}" for row in state["rows"])
        return {
            "generation": answering(SUNDAY_ANSWER).invoke({"context": listed, "question": state["question"]})
        }

    return line(read_table, generate, state=Rows)


@chain(Truth(question=PRICE, contexts=(FERRY, FARES), answer=PRICE_ANSWER), given=asking)
def rows_beside_retrieved_passages() -> Any:
    """A retriever, and a node that keeps rows as plain texts beside what it found; the prompt has both."""

    def read_table(state: Rows) -> Rows:
        return {"rows": [FARES, MUSEUM]}

    def generate(state: Rows) -> Rows:
        found = joined(shelf(FERRY).invoke(state["question"]))
        context = f"{found}\n\n{state['rows'][0]}"
        return {
            "generation": answering(PRICE_ANSWER).invoke({"context": context, "question": state["question"]})
        }

    return line(read_table, generate, state=Rows)


@chain(Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER, one_text=True), given=asking)
def records_of_a_database_as_one_text() -> Any:
    """A node keeps what a database has as one text; what no prompt shows is not a passage."""

    def read_table(state: Rows) -> Rows:
        return {"records": FERRY, "rows": [MUSEUM]}

    def generate(state: Rows) -> Rows:
        context = state["records"]
        return {
            "generation": answering(SUNDAY_ANSWER).invoke({"context": context, "question": state["question"]})
        }

    return line(read_table, generate, state=Rows)


@chain(Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER), given=asking, ways=WAYS)
def nodes_that_return_commands() -> Any:
    """A node says in a `Command` what it found and where to go on; the answering one clears the documents."""

    def look_up(state: State) -> Any:
        return Command(update={"documents": store(FERRY).similarity_search(SUNDAY, k=1)}, goto="generate")

    def generate(state: State) -> Any:
        context = joined(state["documents"])
        made = answering(SUNDAY_ANSWER).invoke({"context": context, "question": state["question"]})
        return Command(update={"generation": made, "documents": []}, goto=END)

    builder = StateGraph(State)
    builder.add_node("look_up", look_up)
    builder.add_node("generate", generate)
    builder.add_edge(START, "look_up")
    return builder.compile()


@chain(Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER), given=asking, ways=WAYS)
def graph_within_a_graph() -> Any:
    """A graph that retrieves and thins out is a node of another one, which answers."""

    def retrieve(state: State) -> State:
        return {"documents": shelf(FERRY, STORM).invoke(state["question"])}

    def thin_out(state: State) -> State:
        return {"documents": state["documents"][:1]}

    def generate(state: State) -> State:
        context = joined(state["documents"])
        return {
            "generation": answering(SUNDAY_ANSWER).invoke({"context": context, "question": state["question"]})
        }

    builder = StateGraph(State)
    builder.add_node("search", line(retrieve, thin_out))
    builder.add_node("generate", generate)
    builder.add_edge(START, "search")
    builder.add_edge("search", "generate")
    builder.add_edge("generate", END)
    return builder.compile()


class Parts(TypedDict, total=False):
    """A question, and the answers to its parts."""

    question: str
    parts: Annotated[list[str], operator.add]
    generation: str


@chain(
    Truth(question=PRICE, contexts=(FARES, FERRY), answer=PRICE_ANSWER, relayed=True, any_order=True),
    given=asking,
)
def sub_questions_sent_to_a_node() -> Any:
    """`Send`: a node for each part of the question, and one that puts their answers together."""

    def plan(state: Parts) -> list[Send]:
        return [
            Send("look_up", {"question": part}) for part in ("What does a dog pay?", "When does it leave?")
        ]

    def look_up(state: Parts) -> Parts:
        context = joined(shelf(FERRY, by_word={"dog": [FARES]}).invoke(state["question"]))
        reply = (
            "Three euros for a dog, twelve a head." if "dog" in state["question"] else "At 7:15 on weekdays."
        )
        return {"parts": [answering(reply).invoke({"context": context, "question": state["question"]})]}

    def put_together(state: Parts) -> Parts:
        answers = prompt("Answers:\n{parts}\n\nQuestion: {question}")
        given = {"parts": "\n".join(state["parts"]), "question": state["question"]}
        return {"generation": answering(PRICE_ANSWER, answers).invoke(given)}

    builder = StateGraph(Parts)
    builder.add_node("look_up", look_up)
    builder.add_node("put_together", put_together)
    builder.add_conditional_edges(START, plan, ["look_up"])
    builder.add_edge("look_up", "put_together")
    builder.add_edge("put_together", END)
    return builder.compile()
