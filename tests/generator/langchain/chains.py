"""Chains: look up, keep, prompt, answer; put together by the expression language or by a function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from operator import itemgetter
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough
from pydantic import BaseModel

from generator.choices import Choices
from generator.langchain.application import Application, Step
from generator.langchain.messages import FORMS, asked_at, formed, last_text, prompted, read, spoken, written
from generator.langchain.models import Speaker, now
from generator.langchain.retrievers import retriever, shown, texts
from generator.texts import JOINERS
from generator.turns import Turn

ODD = "kundenanliegen"
"""A name for the question that no list has."""


class Reply(BaseModel):
    """An answer in a form."""

    answer: str
    confidence: str


class Input:
    """What the root of an application is given, and how its steps read it."""

    def __init__(self, choices: Choices) -> None:
        self.kind = choices["input"]
        self.history = choices["history"] if choices["turns"] != "1" else "none"
        self.logs = self.history == "written" and choices["log"] == "all"
        self.key = {"odd": ODD, "messages": "messages"}.get(self.kind, self.kind)

    def given(self, turn: Turn) -> Any:
        """The input of a turn."""
        form = self.history if self.history in FORMS else "objects"
        said = [] if self.history in ("none", "stored") else spoken(turn)
        if self.kind == "messages":
            return {"messages": formed([*said, HumanMessage(turn.question)], form)}
        if self.kind == "string":
            return turn.question
        if self.history in ("none", "stored"):
            return {self.key: turn.question}
        past = written(turn, asks=self.logs) if self.history == "written" else formed(said, form)
        return {self.key: turn.question, "chat_history": past}

    def question(self, given: Any) -> str:
        """The question in what a step is given."""
        if isinstance(given, str):
            return given
        return last_text(given["messages"]) if self.kind == "messages" else given[self.key]

    def past(self, given: Any) -> Any:
        """The history in what a step is given, as a prompt takes it."""
        if isinstance(given, str):
            return []
        if self.kind == "messages":
            return read(given["messages"])[: asked_at(given["messages"])]
        past = given.get("chat_history") or []
        return past if isinstance(past, str) else read(past)


def kept(choices: Choices) -> Runnable[Any, Any]:
    """Leaves out what the answering model is not shown, by a grader, a reranker or the formatting."""
    way = choices["keeping"]
    grader = Speaker(role="grade")

    def grade(found: Any) -> Any:
        return [
            each for each in found if "yes" in grader.invoke(f"Is this relevant?\n\n{texts([each])[0]}").text
        ]

    def rerank(found: Any) -> Any:
        return [each for each in reversed(found) if shown([each])]

    def ungraded(found: Any) -> Any:
        return found

    steps = {"grade": grade, "rerank": rerank}
    return RunnableLambda(lambda found: found if isinstance(found, str) else steps.get(way, ungraded)(found))


def context(choices: Choices) -> Runnable[Any, str]:
    """One text of what was found and is shown."""
    join = JOINERS[choices["joining"]]

    def written_out(found: Any) -> str:
        if isinstance(found, str):
            return found if now().shown else ""
        return now().came(join(shown(found)))

    return RunnableLambda(written_out)


def rewriter(choices: Choices, source: Input) -> Runnable[Any, str]:
    """The query to search for: the question, or what a model makes of it."""
    way = choices["rewrite"]
    if way == "none":
        return RunnableLambda(source.question)
    asked: Runnable[Any, str] = RunnableLambda(
        lambda given: (
            "Given the conversation below, rephrase the follow up question to be a standalone "
            "question. If it stands alone, return it as it is.\n\n"
            f"{now().history}\nFollow up: {source.question(given)}\nStandalone question:"
        )
    )
    return asked | Speaker(role="rewrite" if way == "new" else "same") | StrOutputParser()


def looked_up(choices: Choices) -> Runnable[Any, Any]:
    """From a query to what is kept of what was found."""
    return retriever(choices) | kept(choices)


def answer(choices: Choices, *, history: bool, drafts: bool = False) -> Runnable[Any, Any]:
    """Prompt, model, parser."""
    output = choices["output"]
    structured = {"structured": "reply", "nested": "answer"}.get(output, "")
    model = Speaker(role="answer", structured=structured, drafts=drafts)
    if output == "form":
        model.form = Reply.__name__
        return prompted(choices, history=history) | model.with_structured_output(Reply)
    made = prompted(choices, history=history) | model
    if structured:
        return made | JsonOutputParser()
    return made if output == "message" else made | StrOutputParser()


def cited(choices: Choices, *, drafts: bool = False) -> Runnable[Any, Any]:
    """Prompt, model, and the form that it fills in: the answer, and quotes out of what it was shown."""
    model = Speaker(role="answer", structured="synthesis", cites=True, drafts=drafts)
    return prompted(choices, history=True) | model | JsonOutputParser()


def variables(source: Input) -> Runnable[Any, Any]:
    """The variables of the prompt that do not come from the search."""

    def read_input(given: Mapping[str, Any]) -> dict[str, Any]:
        past = source.past(given)
        turns = [] if isinstance(past, str) else past
        return {"question": source.question(given), "chat_history": turns, "history": now_written(past)}

    return RunnableLambda(read_input)


def now_written(past: Any) -> str:
    """A history as one text."""
    return past if isinstance(past, str) else written(now())


def chain(choices: Choices) -> Runnable[Any, Any]:
    """`assign` upon `assign`, the whole state in the end or the answer alone."""
    source = Input(choices)
    steps = (
        RunnablePassthrough.assign(query=rewriter(choices, source))
        .assign(docs=itemgetter("query") | looked_up(choices))
        .assign(context=itemgetter("docs") | context(choices))
    )
    fill: Runnable[Any, Any] = RunnableLambda(
        lambda s: {**variables(source).invoke(s), "context": s["context"]}
    )
    last = fill | answer(choices, history=True)
    if source.kind == "string":
        steps = {"string": RunnablePassthrough()} | steps
    output = choices["output"]
    if output == "dict":
        return steps.assign(answer=last)
    if output == "nested":
        return steps.assign(made=last)
    if output == "revised":
        return revised(steps, fill | prompted(choices, history=True))
    if output == "docs":
        return steps.assign(answer=last) | RunnableLambda(
            lambda s: {"answer": s["answer"], "docs": s["docs"]}
        )
    return steps | last


REVIEW = "What does this answer lack?\n\n"
"""How the prompt begins of the call that looks at a draft."""


def revised(steps: Runnable[Any, Any], prompt: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """A draft that is called the answer, a review of it, and what is made of both."""
    said, review, anew = (Speaker(role=role) | StrOutputParser() for role in ("relay", "review", "answer"))
    looked_at: Runnable[Any, Any] = RunnableLambda(lambda s: REVIEW + s["answer"])
    again: Runnable[Any, Any] = RunnableLambda(
        lambda s: f"Write this answer anew.\n\n{s['answer']}\n\nReview:\n{s['review']}"
    )
    return steps.assign(answer=prompt | said).assign(review=looked_at | review).assign(final=again | anew)


def tutorial(choices: Choices) -> Runnable[Any, Any]:
    """A mapping of context and question, the prompt, the model, the parser."""
    source = Input(choices)
    found = rewriter(choices, source) | looked_up(choices) | context(choices)
    filled = {"context": found, "given": variables(source)}
    flat: Runnable[Any, Any] = RunnableLambda(lambda s: {**s["given"], "context": s["context"]})
    return filled | flat | answer(choices, history=True)


def function(choices: Choices) -> Runnable[Any, Any]:
    """One function that calls the parts one after the other."""
    source = Input(choices)
    query, look = rewriter(choices, source), looked_up(choices)
    fill, last = variables(source), answer(choices, history=True)
    write = context(choices)

    def run(given: Any) -> Any:
        found = look.invoke(query.invoke(given))
        said = last.invoke({**fill.invoke(given), "context": write.invoke(found)})
        return {"answer": said, "docs": found} if choices["output"] in ("dict", "docs") else said

    return RunnableLambda(run)


def mapped(choices: Choices) -> Runnable[Any, Any]:
    """Each passage is summarised by a call of its own; the summaries make the answer."""
    source = Input(choices)
    summary: Runnable[Any, str] = (
        RunnableLambda(lambda text: f"Summarise:\n\n{text}") | Speaker(role="relay") | StrOutputParser()
    )
    each = looked_up(choices) | RunnableLambda(shown) | summary.map() | RunnableLambda("\n".join)
    fill: Runnable[Any, Any] = RunnableLambda(lambda s: {**s["given"], "context": s["context"]})
    steps = {"context": rewriter(choices, source) | each, "given": variables(source)}
    return steps | fill | answer(choices, history=True)


def scored(application: Application) -> Application:
    """The same, and then a chain that makes a number of the answer, with all that it was made of."""
    *_, last = application.steps
    grade: Runnable[Any, float] = (
        RunnableLambda("How well is this answered, from 0 to 9?\n\n{0[asked]}\n\n{0[generation]}".format)
        | Speaker(role="score")
        | JsonOutputParser()
        | RunnableLambda(lambda form: form["tone"] / 3)
    )

    def given(turn: Turn, said: Any) -> Any:
        asked = last.given(turn, None)
        more = asked if isinstance(asked, dict) else {}
        return {**more, "asked": turn.question, "docs": [], "generation": str(said)}

    return replace(application, steps=(*application.steps, Step(runnable=grade, given=given)))
