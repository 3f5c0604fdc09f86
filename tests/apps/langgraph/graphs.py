"""State graphs: templates, parallel nodes, commands, graphs within graphs, documents made in a node."""

from __future__ import annotations

import operator
import threading
from typing import Annotated, Any, TypedDict

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send

from apps.app import ALL, ASTREAM, Truth, chain, script
from apps.island import FARES, FERRY, MUSEUM, PRICE, PRICE_ANSWER, STORM, SUNDAY, SUNDAY_ANSWER
from apps.langchain.pieces import ANSWERING, answering, documents, joined, model, prompt, shelf, store
from apps.langgraph.pieces import State, asking, line, saying

WAYS = (*ALL, ASTREAM)


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


@chain(Truth(question=SUNDAY, contexts=(FERRY, MUSEUM), answer=SUNDAY_ANSWER, one_text=True), given=asking)
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


@chain(Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER, one_text=True), given=asking)
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


@script(Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER))
def nodes_that_hand_the_handler_on(config: Any) -> Any:
    """Nodes give their chains the handler of the application, not the config of the run."""

    def rewrite(state: State) -> State:
        asked = {"question": state["question"]}
        return {
            "question": answering("ferry timetable Sunday", prompt("Rewrite: {question}")).invoke(
                asked, config
            )
        }

    def retrieve(state: State) -> State:
        return {"documents": shelf(FERRY).invoke(state["question"], config)}

    def generate(state: State) -> State:
        given = {"context": joined(state["documents"]), "question": state["question"]}
        return {"generation": answering(SUNDAY_ANSWER).invoke(given, config)}

    return line(rewrite, retrieve, generate).invoke(asking(SUNDAY), config)
