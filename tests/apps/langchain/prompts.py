"""How passages enter the prompt: as text, as Python prints them, as JSON, XML, lists, messages."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough

from apps.app import ALL, ASTREAM, BATCH, INVOKE, Truth, chain
from apps.island import (
    BIKES,
    FARES,
    FERRY,
    LENS,
    LENS_ANSWER,
    MUSEUM,
    PRICE,
    PRICE_ANSWER,
    STORM,
    SUNDAY,
    SUNDAY_ANSWER,
)
from apps.langchain.pieces import ANSWERING, answering, joined, model, prompt, shelf, store

THREE = Truth(question=SUNDAY, contexts=(FERRY, FARES, STORM), answer=SUNDAY_ANSWER)
FOUND = shelf(FERRY, FARES, STORM)


def shown(form: Any) -> Any:
    """The usual chain, with the passages in a form of its own."""
    return {"context": FOUND | form, "question": RunnablePassthrough()} | answering(SUNDAY_ANSWER)


@chain(THREE, ways=(*ALL, ASTREAM, BATCH))
def passages_joined() -> Any:
    """The first chain of every tutorial: `retriever | format_docs` into the prompt."""
    return shown(joined)


@chain(THREE)
def documents_as_python_prints_them() -> Any:
    """`{"context": retriever}` without a formatter: the list of Documents is printed into the prompt."""
    return {"context": FOUND, "question": RunnablePassthrough()} | answering(SUNDAY_ANSWER)


@chain(THREE)
def a_list_of_texts() -> Any:
    """A list of strings is printed into the prompt."""
    return shown(lambda found: [document.page_content for document in found])


@chain(THREE)
def json_in_the_prompt() -> Any:
    """Passages with their sources as JSON, in which letters beyond ASCII are escaped."""
    return shown(
        lambda found: json.dumps([{"source": d.metadata["source"], "text": d.page_content} for d in found])
    )


@chain(THREE)
def json_lines_in_utf8() -> Any:
    """One JSON object a line, with letters as they are."""
    return shown(
        lambda found: "\n".join(json.dumps({"content": d.page_content}, ensure_ascii=False) for d in found)
    )


@chain(THREE)
def xml_elements() -> Any:
    """One XML element a passage, with its metadata as attributes, as the retrieval templates do."""

    def form(found: Sequence[Document]) -> str:
        inner = "\n".join(
            f"<document source={d.metadata['source']!r}>\n{d.page_content}\n</document>" for d in found
        )
        return f"<documents>\n{inner}\n</documents>"

    return shown(form)


@chain(
    Truth(question=PRICE, contexts=(FARES, BIKES), answer=PRICE_ANSWER),
)
def xml_with_entities() -> Any:
    """XML in which ampersands, quotes and angle brackets are written as entities."""
    return {
        "context": shelf(FARES, BIKES)
        | (lambda found: "".join(f"<doc>{html.escape(d.page_content)}</doc>" for d in found)),
        "question": RunnablePassthrough(),
    } | answering(PRICE_ANSWER)


@chain(THREE)
def numbered_sources() -> Any:
    """`[1] source: text`, for answers that cite numbers."""
    return shown(
        lambda found: "\n".join(
            f"[{at}] {d.metadata['source']}: {d.page_content}" for at, d in enumerate(found, 1)
        )
    )


@chain(replace(THREE, one_text=True))
def markdown_headings() -> Any:
    """A heading and a quotation for each passage, every line of it behind a `>`."""

    def form(found: Sequence[Document]) -> str:
        quoted = ["> " + d.page_content.replace("\n", "\n> ") for d in found]
        return "\n\n".join(f"### Source {at}\n{text}" for at, text in enumerate(quoted, 1))

    return shown(form)


@chain(THREE)
def lines_run_together() -> Any:
    """White space is cleaned up: line breaks become blanks."""
    return shown(lambda found: " ".join(" ".join(d.page_content.split()) for d in found))


@chain(Truth(question=SUNDAY, contexts=(FERRY, FARES, STORM), answer=SUNDAY_ANSWER, partly=(FARES, STORM)))
def passages_cut_short() -> Any:
    """Every passage is cut to its first characters, to save tokens."""
    return shown(lambda found: "\n---\n".join(d.page_content[: 86 - 5 * at] for at, d in enumerate(found)))


@chain(Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER))
def fewer_than_retrieved() -> Any:
    """The formatter takes the two best of what was retrieved."""
    return shown(lambda found: joined(found[:2]))


@chain(Truth(question=SUNDAY, contexts=(FERRY, STORM, FARES), answer=SUNDAY_ANSWER))
def best_at_both_ends() -> Any:
    """Passages are put in another order than they were found in, the weakest in the middle."""
    return shown(lambda found: joined([found[0], found[2], found[1]]))


@chain(Truth(question=SUNDAY, contexts=(FERRY, STORM), answer=SUNDAY_ANSWER))
def passages_with_scores() -> Any:
    """`similarity_search_with_score` in a lambda: pairs of Document and score are printed into the prompt."""
    found = store(FERRY, FARES, STORM)

    def search(question: str) -> list[tuple[Document, float]]:
        pairs = found.similarity_search_with_score(question, k=3)
        return [pair for pair in pairs if pair[0].page_content != FARES]

    return {"context": RunnableLambda(search), "question": RunnablePassthrough()} | answering(SUNDAY_ANSWER)


@chain(Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER), given=lambda q: {"question": q})
def similarity_search_in_a_lambda() -> Any:
    """The store is asked by `similarity_search` inside a function, so that no retriever runs."""
    found = store(FERRY, FARES)

    def add(given: dict[str, Any]) -> dict[str, Any]:
        return {**given, "docs": found.similarity_search(given["question"], k=2)}

    return (
        RunnableLambda(add)
        | RunnablePassthrough.assign(context=lambda given: joined(given["docs"]))
        | answering(SUNDAY_ANSWER)
    )


@chain(THREE)
def context_in_the_system_message() -> Any:
    """Passages in the system message, the question alone in the user's."""
    template = ChatPromptTemplate.from_messages(
        [("system", "Answer from these passages only:\n{context}"), ("human", "{question}")]
    )
    return {"context": FOUND | joined, "question": RunnablePassthrough()} | answering(SUNDAY_ANSWER, template)


@chain(THREE)
def messages_made_by_hand() -> Any:
    """No template: a function builds the messages, one user message for each passage."""

    def messages(given: dict[str, Any]) -> list[Any]:
        passages = [HumanMessage(f"Passage:\n{d.page_content}") for d in given["found"]]
        return [SystemMessage("Be brief."), *passages, HumanMessage(given["question"])]

    return (
        RunnableParallel(found=FOUND, question=RunnablePassthrough())
        | messages
        | model(otherwise=SUNDAY_ANSWER)
        | StrOutputParser()
    )


@chain(THREE)
def content_blocks() -> Any:
    """Passages and question as content blocks of one message, beside an image."""

    def messages(given: dict[str, Any]) -> list[Any]:
        image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{'iVBORw0KGgo' * 400}"}}
        text = f"Context:\n{joined(given['found'])}\n\nQuestion: {given['question']}"
        return [HumanMessage([{"type": "text", "text": text}, image])]

    return (
        RunnableParallel(found=FOUND, question=RunnablePassthrough())
        | messages
        | model(otherwise=SUNDAY_ANSWER)
        | StrOutputParser()
    )


@chain(Truth(question=LENS, contexts=(MUSEUM,), answer=LENS_ANSWER))
def answer_that_repeats_the_passage_title() -> Any:
    """A table row for each passage, cells parted by bars."""
    return {
        "context": shelf(MUSEUM) | (lambda found: "\n".join(f"| 1 | {d.page_content} |" for d in found)),
        "question": RunnablePassthrough(),
    } | answering(LENS_ANSWER)


@chain(THREE, ways=(INVOKE,))
def each_passage_twice() -> Any:
    """Two retrievers of the same store: every passage stands twice in the prompt and counts once."""
    both = RunnableParallel(first=FOUND, second=shelf(STORM, FERRY)) | (
        lambda found: joined([*found["first"], *found["second"]])
    )
    return {"context": both, "question": RunnablePassthrough()} | answering(SUNDAY_ANSWER)


@chain(Truth(question=SUNDAY, contexts=(), answer="I don't know.", source="retrieved"))
def nothing_found() -> Any:
    """The retriever finds nothing, and the model says so."""
    return {"context": shelf() | joined, "question": RunnablePassthrough()} | answering("I don't know.")


@chain(THREE, given=lambda q: {"question": q, "language": "English"})
def answer_beside_its_sources() -> Any:
    """`assign(answer=...)` beside the documents, so that the caller gets both."""
    made = RunnablePassthrough.assign(context=lambda given: joined(given["docs"])) | (
        ANSWERING | model(otherwise=SUNDAY_ANSWER) | StrOutputParser()
    )
    return RunnableParallel(
        docs=(lambda given: given["question"]) | FOUND, question=lambda given: given["question"]
    ).assign(answer=made)


@chain(
    Truth(question=SUNDAY, contexts=(FERRY, MUSEUM), answer=SUNDAY_ANSWER),
    Truth(question=PRICE, contexts=(FERRY, MUSEUM), answer=SUNDAY_ANSWER),
)
def two_places_in_one_template() -> Any:
    """Two retrievers fill two places of one template."""
    template = prompt("Timetable:\n{ferries}\n\nSights:\n{sights}\n\nQuestion: {question}")
    return {
        "sights": shelf(MUSEUM) | joined,
        "ferries": shelf(FERRY) | joined,
        "question": RunnablePassthrough(),
    } | answering(SUNDAY_ANSWER, template)


@chain(Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER), given=lambda question: {})
def question_written_into_the_template() -> Any:
    """The prompt is an f-string that has the question already, so that the chain is given nothing."""
    template = prompt(f"Use this to answer.\n\n{{context}}\n\nHuman: {SUNDAY}\nAssistant:")
    found: Any = RunnableLambda(lambda given: shelf(FERRY, FARES).invoke(SUNDAY))
    return {"context": found | joined} | answering(SUNDAY_ANSWER, template)


@chain(
    Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER),
    given=lambda question: {
        "facts": FERRY,
        "log": "ada joined the channel",
        "author": "ada",
        "text": question,
    },
)
def message_of_a_channel() -> Any:
    """A bot of a chat: no part of the input has a usual name, and the user's message holds one of them."""
    template = ChatPromptTemplate.from_messages(
        [("system", "You help in a channel.\nKnown: {facts}\nLately: {log}"), ("human", "{author}: {text}")]
    )
    return answering(SUNDAY_ANSWER, template)


@chain(
    Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER),
    given=lambda question: {"lesson": "How to read a timetable", "pupil": question},
)
def pupil_of_a_lesson() -> Any:
    """What is looked up is the topic of a lesson, and what the user's message holds is what a pupil says."""
    template = ChatPromptTemplate.from_messages(
        [("system", "You teach: {lesson}\nThe book says:\n{book}"), ("human", "{pupil}")]
    )
    found: Any = RunnableLambda(lambda given: given["lesson"]) | shelf(FERRY) | joined
    return RunnablePassthrough.assign(book=found) | answering(SUNDAY_ANSWER, template)
