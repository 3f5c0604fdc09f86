"""Where a graph keeps its question, passages and answer: in a checkpoint, deep in its state, between tags."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel

from apps.app import Truth, chain, script
from apps.island import FARES, FERRY, MUSEUM, STORM, SUNDAY, SUNDAY_ANSWER
from apps.langchain.pieces import answering, calls, joined, model, shelf
from apps.langgraph.pieces import WAYS, State, asking, line


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


class Gathered(TypedDict, total=False):
    """A state to which parallel searches add a text each."""

    question: str
    context: Annotated[list[str], operator.add]
    answer: str


def between_tags(*passages: str) -> str:
    """Hits of one search as one text."""
    hits = (f'<Document href="page-{at}"/>\n{text}\n</Document>' for at, text in enumerate(passages))
    return "\n\n---\n\n".join(hits)


@chain(
    Truth(question=SUNDAY, contexts=(FERRY, MUSEUM, FARES, STORM), answer=SUNDAY_ANSWER),
    given=asking,
    ways=WAYS,
)
def parallel_searches_that_join_their_hits() -> Any:
    """Two searches side by side, each adding one text of tagged hits to a list that the prompt prints."""

    def search_web(state: Gathered) -> Gathered:
        return {"context": [between_tags(FERRY, MUSEUM)]}

    def search_wiki(state: Gathered) -> Gathered:
        return {"context": [between_tags(FARES, STORM)]}

    def generate_answer(state: Gathered) -> Gathered:
        given = f"Answer the question {state['question']} using this context: {state['context']}"
        return {"answer": str(model(otherwise=SUNDAY_ANSWER).invoke(given).content)}

    builder = StateGraph(Gathered)
    for search in (search_web, search_wiki):
        builder.add_node(search)
        builder.add_edge(START, search.__name__)
        builder.add_edge(search.__name__, "generate_answer")
    builder.add_node(generate_answer)
    builder.add_edge("generate_answer", END)
    return builder.compile()


BOOK = "The Harbour Master's own Book"


class Rows(State, total=False):
    """A state of plain rows."""

    rows: list[dict[str, str]]


@chain(Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER), given=asking, ways=WAYS)
def rows_with_the_names_of_their_books() -> Any:
    """Documents become rows with the name of the book that each is from; the prompt prints both."""

    def look_up(state: Rows) -> Rows:
        found = shelf(FERRY, FARES).invoke(state["question"])
        return {"rows": [{"text": one.page_content, "book": BOOK} for one in found]}

    def generate(state: Rows) -> Rows:
        printed = "\n\n".join(f"{row['book']}: {row['text']}" for row in state["rows"])
        return {
            "generation": answering(SUNDAY_ANSWER).invoke({"context": printed, "question": state["question"]})
        }

    return line(look_up, generate, state=Rows)


LESSON = "Ask on board first."


@chain(Truth(question=SUNDAY, contexts=(FERRY, FARES, LESSON), answer=SUNDAY_ANSWER), given=asking, ways=WAYS)
def rows_with_a_short_sentence_beside_long_texts() -> Any:
    """A row of a memory of earlier tasks, printed on one line: what ends as a sentence is not its title."""

    def look_up(state: Rows) -> Rows:
        return {"rows": [{"task": FERRY, "outcome": FARES, "reflection": LESSON}]}

    def generate(state: Rows) -> Rows:
        printed = "\n".join(" | ".join(f"{name}: {row[name]}" for name in row) for row in state["rows"])
        return {
            "generation": answering(SUNDAY_ANSWER).invoke({"context": printed, "question": state["question"]})
        }

    return line(look_up, generate, state=Rows)


TICKET = {"ticket": "T-1042", "class": "grown-up", "date": "2026-06-14", "price": 12}


class Travels(State, total=False):
    """A state with a row of a database beside what was found."""

    ticket: dict[str, Any]


@chain(Truth(question=SUNDAY, contexts=(str(TICKET), FERRY), answer=SUNDAY_ANSWER), given=asking, ways=WAYS)
def row_beside_retrieved_passages() -> Any:
    """A row of short values, of which none says anything by itself, stands in the prompt beside passages."""

    def load(state: Travels) -> Travels:
        return {"ticket": dict(TICKET)}

    def look_up(state: Travels) -> Travels:
        return {"documents": shelf(FERRY).invoke(state["question"])}

    def generate(state: Travels) -> Travels:
        told = f"Ticket: {state['ticket']}\n\nTimes:\n{joined(state['documents'])}"
        sent = [SystemMessage(f"You work for a ferry line.\n{told}"), HumanMessage(state["question"])]
        return {"generation": str(model(otherwise=SUNDAY_ANSWER).invoke(sent).content)}

    return line(load, look_up, generate, state=Travels)


class Hits(State, total=False):
    """A state with hits of a search service."""

    hits: list[dict[str, Any]]


@chain(Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER), given=asking, ways=WAYS)
def one_hit_under_its_title_and_address() -> Any:
    """The prompt shows the only hit of a search below a line with its title and score, and its address."""

    def look_up(state: Hits) -> Hits:
        place = {"title": "Times", "url": "https://island.example/times"}
        return {"hits": [{"text": FERRY, "place": place, "score": 0.9}]}

    def generate(state: Hits) -> Hits:
        shown = (
            f"--- Source {at}: {hit['place']['title']} (Relevance: {hit['score']:.2f}) ---\n"
            f"URL: {hit['place']['url']}\n\n{hit['text']}"
            for at, hit in enumerate(state["hits"], 1)
        )
        given = {"context": "\n\n".join(shown), "question": state["question"]}
        return {"generation": answering(SUNDAY_ANSWER).invoke(given)}

    return line(look_up, generate, state=Hits)


class Query(BaseModel):
    """A query of a database."""

    sql: str


class Analysis(BaseModel):
    """A state that nodes change and return."""

    question: str
    sql: str = ""
    result: str = ""
    explanation: str = ""


TIMES = "[('Signe', 'Sundays', '9:40'), ('Signe', 'weekdays', '7:15')]"


@chain(Truth(question=SUNDAY, contexts=(TIMES,), answer=SUNDAY_ANSWER), given=asking, ways=WAYS)
def rows_called_result_in_an_object() -> Any:
    """A model writes a query, code runs it, a model explains its rows; the state is an object."""

    def write(state: Analysis) -> Analysis:
        form = model(otherwise=calls("Query", sql="SELECT * FROM times")).with_structured_output(Query)
        sent = [SystemMessage("Write one query for the table times."), HumanMessage(state.question)]
        state.sql = form.invoke(sent).sql  # type: ignore[union-attr]
        return state

    def run(state: Analysis) -> Analysis:
        state.result = TIMES
        return state

    def explain(state: Analysis) -> Analysis:
        sent = [
            SystemMessage("Explain the rows in plain English."),
            HumanMessage(f"Question: {state.question}\n\nRows: {state.result}"),
        ]
        state.explanation = str(model(otherwise=SUNDAY_ANSWER).invoke(sent).content)
        return state

    return line(write, run, explain, state=Analysis)
