"""States, graders and lines of nodes that graphs are made of."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from langgraph.graph import START, StateGraph
from pydantic import BaseModel

from apps.app import ALL, ASTREAM
from apps.langchain.pieces import calls, model, prompt

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
