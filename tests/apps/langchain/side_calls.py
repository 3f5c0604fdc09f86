"""Model calls that serve something else than the answer: routing, describing and reading pages."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnablePassthrough
from pydantic import BaseModel

from apps.app import Truth, script
from apps.island import FARES, FERRY, SUNDAY, SUNDAY_ANSWER
from apps.langchain.pieces import (
    answering,
    calls,
    documents,
    joined,
    model,
    prompt,
    shelf,
)


class Shelfmark(BaseModel):
    """Where to look."""

    datasource: str


@script(Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER))
def route_asked_for_first(config: Any) -> str:
    """A chain fills in a form with a route; then the chain of that route answers."""
    form = model(otherwise=calls("Shelfmark", datasource="harbour_pages")).with_structured_output(Shelfmark)
    router = prompt("Route the question to the data source that can answer it.\n\n{question}") | form
    route: Any = router.invoke({"question": SUNDAY}, config)
    found = {"harbour_pages": shelf(FERRY, FARES)}[route.datasource]
    chain = {"context": found | joined, "question": RunnablePassthrough()} | answering(SUNDAY_ANSWER)
    return str(chain.invoke(SUNDAY, config))


class Described(BaseModel):
    """Questions that a page answers."""

    questions: list[str]


@script(Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER))
def pages_described_for_the_index(config: Any) -> str:
    """Each page is summarised, and questions are made that it answers, before anybody asks one."""
    page = {"page": lambda document: document.page_content}
    summarise = page | prompt("Summarise this page:\n\n{page}") | model(otherwise="It is about boats.")
    form = model(otherwise=calls("Described", questions=["When do boats leave?"]))
    imagine = (
        page
        | prompt("Which questions does this page answer?\n\n{page}")
        | form.with_structured_output(Described)
        | (lambda described: described.questions)
    )
    pages = documents(FERRY, FARES)
    summarise.batch(pages, config)
    imagine.batch(pages, config)
    chain = {"context": shelf(FERRY, FARES) | joined, "question": RunnablePassthrough()}
    return str((chain | answering(SUNDAY_ANSWER)).invoke(SUNDAY, config))


class Links(BaseModel):
    """What a page says of a thing."""

    thing: str
    links: list[str]


@script(
    Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER),
    allowed_notes=dict.fromkeys(("openinference", "openllmetry"), ("turns",)),
)
def fields_taken_out_of_pages(config: Any) -> str:
    """A graph of things is made: a form is filled in for each page, before anybody asks."""
    form = model(otherwise=calls("Links", thing="Signe", links=["leaves from Nordhavn"]))
    extract = prompt("What is linked with what?\n\n{input}") | form.with_structured_output(
        Links, include_raw=True
    )
    extract.batch([{"input": FERRY}, {"input": FARES}], config)
    chain = {"context": shelf(FERRY, FARES) | joined, "question": RunnablePassthrough()}
    return str((chain | answering(SUNDAY_ANSWER)).invoke(SUNDAY, config))
