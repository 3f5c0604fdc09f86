"""Graphs whose passages come from a database or a service, not from a retriever."""

from __future__ import annotations

from typing import Any, TypedDict

from apps.app import Truth, chain
from apps.island import (
    FARES,
    FERRY,
    MUSEUM,
    PRICE,
    PRICE_ANSWER,
    SUNDAY,
    SUNDAY_ANSWER,
)
from apps.langchain.pieces import answering, documents, joined, shelf
from apps.langgraph.states import State, asking, line


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
