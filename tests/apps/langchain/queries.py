"""What happens to the question before anything is found: rewriting, fusion, decomposition, routing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain_core.documents import Document
from langchain_core.load import dumps, loads
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableBranch, RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.runnables import chain as as_chain
from pydantic import BaseModel

from apps.app import Truth, chain, script
from apps.island import (
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
from apps.langchain.pieces import ANSWERING, answering, by_key, calls, joined, model, prompt, shelf

ASKED = by_key("question")
TWO = Truth(question=SUNDAY, contexts=(FERRY, STORM), answer=SUNDAY_ANSWER)


def mapping(question: str) -> dict[str, str]:
    """The input as most notebooks pass it."""
    return {"question": question}


def writes(*queries: str, task: str = "Write other search queries for: {question}") -> Any:
    """A call that writes queries, one a line."""
    return prompt(task) | model(otherwise="\n".join(queries)) | StrOutputParser()


@chain(TWO, given=mapping)
def multi_query_by_map() -> Any:
    """A model writes several queries; `retriever.map()` runs each; a union without doubles is printed."""

    def union(found: Sequence[Sequence[Document]]) -> list[Document]:
        texts = dict.fromkeys(dumps(document) for each in found for document in each)
        return [loads(text, allowed_objects="core") for text in texts]

    by_word = {"timetable": [FERRY, STORM], "morning": [STORM, FERRY]}
    search = (
        writes("ferry timetable Sunday", "earliest morning boat")
        | str.splitlines
        | shelf(by_word=by_word).map()
        | union
    )
    return {"context": search, "question": ASKED} | answering(SUNDAY_ANSWER)


@chain(Truth(question=SUNDAY, contexts=(STORM, FERRY), answer=SUNDAY_ANSWER), given=mapping)
def fusion_of_ranks() -> Any:
    """RAG fusion: several queries, reciprocal ranks, pairs of Document and score printed as they are."""

    def fuse(found: Sequence[Sequence[Document]]) -> list[tuple[Document, float]]:
        scores: dict[str, float] = {}
        by_text: dict[str, Document] = {}
        for each in found:
            for rank, document in enumerate(each):
                by_text[document.page_content] = document
                scores[document.page_content] = scores.get(document.page_content, 0) + 1 / (60 + rank)
        best = sorted(scores, key=lambda text: -scores[text])[:2]
        return [(by_text[text], scores[text]) for text in best]

    by_word = {"timetable": [STORM, FERRY], "morning": [STORM, FERRY, FARES]}
    search = (
        writes("ferry timetable Sunday", "earliest morning boat")
        | str.splitlines
        | shelf(by_word=by_word).map()
        | fuse
    )
    return {"context": search, "question": ASKED} | answering(SUNDAY_ANSWER)


@chain(TWO)
def rewritten_for_retrieval() -> Any:
    """Rewrite, retrieve, read: a better query is searched for, the user's question is answered."""
    rewrite = writes("first ferry departure Sunday", task="Give a better search query for: {question}")
    return {
        "context": rewrite | shelf(FERRY, STORM) | joined,
        "question": RunnablePassthrough(),
    } | answering(SUNDAY_ANSWER)


@chain(TWO, given=mapping)
def passage_imagined_first() -> Any:
    """HyDE: a model imagines a passage that would answer, and that is searched for."""
    imagined = writes(
        "The Sunday timetable of the island lists a departure at nine.", task="Write a passage on: {question}"
    )
    return {"context": imagined | shelf(FERRY, STORM), "question": ASKED} | answering(SUNDAY_ANSWER)


@chain(Truth(question=SUNDAY, contexts=(FERRY, STORM), answer=SUNDAY_ANSWER), given=mapping)
def one_step_back() -> Any:
    """Step-back: contexts of the question and of a more general one go into two places of the prompt."""
    template = prompt("{normal}\n\n{general}\n\nOriginal question: {question}\nAnswer:")
    general = writes("How do ferries to the island run?", task="Ask something more general: {question}")
    return {
        "normal": ASKED | RunnableLambda(str) | shelf(FERRY),
        "general": general | shelf(STORM),
        "question": ASKED,
    } | answering(SUNDAY_ANSWER, template)


@chain(
    Truth(question=PRICE, contexts=(FARES, FERRY), answer=PRICE_ANSWER, relayed=True),
    given=mapping,
)
def questions_answered_one_by_one() -> Any:
    """Decomposition: sub-questions are answered each from its own passages, then together."""
    parts = writes("What does a dog pay?", "When does it leave?", task="Split into sub-questions: {question}")
    small = ANSWERING | model(
        ("Grown-ups", "A dog pays 3 euros and a grown-up 12."), otherwise="It leaves at 7:15 on weekdays."
    )
    search = shelf(FERRY, by_word={"dog": [FARES]})

    @as_chain
    def answer(given: Mapping[str, str]) -> str:
        pairs = []
        for part in parts.invoke(given).splitlines():
            found = search.invoke(part)
            pairs.append(f"Q: {part}\nA: {small.invoke({'context': found, 'question': part}).content}")
        last = prompt("Question and answer pairs:\n{pairs}\n\nAnswer the question: {question}")
        return answering(PRICE_ANSWER, last).invoke({"pairs": "\n\n".join(pairs), **given})

    return answer


@chain(
    Truth(question=PRICE, contexts=(FARES, FERRY), answer=PRICE_ANSWER, relayed=True),
    given=mapping,
)
def each_answer_feeds_the_next() -> Any:
    """Decomposition in turn: the pairs so far stand in the next prompt; the last answer is the answer."""
    template = prompt("Pairs so far:\n{pairs}\n\nContext:\n{context}\n\nQuestion: {question}")
    small = template | model(("Signe", PRICE_ANSWER), otherwise="A dog pays 3 euros and a grown-up 12.")
    search = shelf(FERRY, by_word={"dog": [FARES]})

    @as_chain
    def answer(given: Mapping[str, str]) -> str:
        pairs = reply = ""
        for part in ("What does a dog pay?", given["question"].replace("dog", "pet")):
            context = joined(search.invoke(part))
            reply = str(small.invoke({"pairs": pairs, "context": context, "question": part}).content)
            pairs += f"Q: {part}\nA: {reply}\n"
        return reply

    return answer


class Route(BaseModel):
    """Which store to ask."""

    datasource: Literal["ferries", "sights"]


@chain(Truth(question=LENS, contexts=(MUSEUM,), answer=LENS_ANSWER), given=mapping)
def routed_by_structured_output() -> Any:
    """A model fills in a form that says which store to ask; the rest is a chain for that store."""
    router = prompt("Which store knows about this? {question}") | model(
        otherwise=calls("Route", datasource="sights")
    ).with_structured_output(Route)
    stores = {"ferries": shelf(FERRY), "sights": shelf(MUSEUM)}

    def pick(given: Mapping[str, Any]) -> Any:
        found = ASKED | RunnableLambda(str) | stores[given["route"].datasource]
        return RunnableParallel(context=found, question=ASKED)

    return RunnablePassthrough.assign(route=router) | RunnableLambda(pick) | answering(LENS_ANSWER)


@chain(Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER), given=mapping)
def routed_by_a_branch() -> Any:
    """A model names the topic; RunnableBranch takes the chain of that topic."""
    topic = (
        prompt("Name the topic (ferry or museum): {question}") | model(otherwise="ferry") | StrOutputParser()
    )

    def about(found: str, answer: str) -> Any:
        return {
            "context": ASKED | RunnableLambda(str) | shelf(found) | joined,
            "question": ASKED,
        } | answering(answer)

    return RunnablePassthrough.assign(topic=topic) | RunnableBranch(
        (lambda given: "ferry" in given["topic"], about(FERRY, SUNDAY_ANSWER)), about(MUSEUM, LENS_ANSWER)
    )


@chain(TWO)
def ranked_by_a_model() -> Any:
    """A model is shown all passages and names the best; only those are in the answer's prompt."""
    judge = prompt("Rank these passages for the question. Passages:\n{passages}") | model(otherwise="0, 2")

    @as_chain
    def search(question: str) -> list[Document]:
        found = shelf(FERRY, FARES, STORM).invoke(question)
        order = str(judge.invoke({"passages": joined(found)}).content)
        return [found[int(at)] for at in order.split(", ")]

    return {"context": search | joined, "question": RunnablePassthrough()} | answering(SUNDAY_ANSWER)


class Relevant(BaseModel):
    """A grade."""

    binary_score: Literal["yes", "no"]


@chain(Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER))
def each_passage_graded() -> Any:
    """Every passage is graded in a call of its own, in a batch; what passes is in the prompt."""
    grade = prompt("Question: {question}\nIs this relevant? {document}") | model(
        ("Signe", calls("Relevant", binary_score="yes")), otherwise=calls("Relevant", binary_score="no")
    ).with_structured_output(Relevant)

    @as_chain
    def search(question: str) -> list[Document]:
        found = shelf(FERRY, FARES, STORM).invoke(question)
        grades: list[Any] = grade.batch(
            [{"question": question, "document": each.page_content} for each in found]
        )
        return [each for each, given in zip(found, grades, strict=True) if given.binary_score == "yes"]

    return {"context": search, "question": RunnablePassthrough()} | answering(SUNDAY_ANSWER)


@script(
    Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER),
    Truth(question=PRICE, contexts=(FARES,), answer=PRICE_ANSWER),
    allowed_notes=dict.fromkeys(("handler", "attach", "openinference", "openllmetry"), ("turns",)),
)
def several_questions_in_one_run(config: Any) -> list[str]:
    """`chain.map()` is given a list of questions and returns the list of their answers."""
    speaks = ANSWERING | model(("How much", PRICE_ANSWER), otherwise=SUNDAY_ANSWER) | StrOutputParser()
    search = shelf(FERRY, by_word={"How much": [FARES]})
    each = {"context": search | joined, "question": RunnablePassthrough()} | speaks
    return each.map().invoke([SUNDAY, PRICE], config)
