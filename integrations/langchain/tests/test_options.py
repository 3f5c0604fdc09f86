"""The handler's options, and what it makes of input it has never seen."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from types import SimpleNamespace
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.tools import create_retriever_tool, tool
from langchain_parts import (
    BERLIN,
    FRANCE,
    PARIS,
    QUESTION,
    Broken,
    Receiver,
    Shelf,
    calls,
    joined,
    lcel,
    says,
    texts,
)
from langgraph.errors import GraphInterrupt
from pydantic import BaseModel

from steelyard.errors import ConfigurationError
from steelyard.record import Record
from steelyard_langchain import CallbackHandler

THREE = [PARIS.page_content, FRANCE.page_content, BERLIN.page_content]


def run(chain: Any, value: Any, receiver: Receiver, **options: Any) -> Record:
    """Invoke with a handler that has these options; the one record."""
    handler = CallbackHandler(receiver, **options)
    chain.invoke(value, {"callbacks": [handler], "metadata": {"expected": "Paris", "user": "u"}})
    assert handler.stats()["unreadable_event"] == 0
    return receiver.record


def odd_chain() -> Any:
    """Question, contexts and answer where nobody would look for them."""
    return RunnableLambda(
        lambda given: {
            "verdict": {"said": says("Paris.").invoke(joined([PARIS])).content},
            "evidence": [PARIS.page_content, {"text": FRANCE.page_content, "id": 7, "score": 0.5}],
        }
    )


def test_keys_by_name_and_by_function(receiver: Receiver) -> None:
    record = run(
        odd_chain(),
        {"ask": QUESTION, "gold": "Paris"},
        receiver,
        question_key="ask",
        context_key="evidence",
        answer_key=lambda output: output["verdict"]["said"],
        reference_key="gold",
    )
    assert (record.question, record.answer, record.reference) == (QUESTION, "Paris.", "Paris")
    assert texts(record.contexts) == [PARIS.page_content, FRANCE.page_content]
    assert (record.contexts[1].id, record.contexts[1].score) == ("7", 0.5)


@pytest.mark.parametrize(
    ("given", "kept", "found"),
    [
        ({}, [PARIS, FRANCE], [PARIS, FRANCE]),
        ({}, PARIS, [PARIS]),
        ({}, PARIS.page_content, [PARIS]),
        ({}, {"text": PARIS.page_content}, [PARIS]),
        ({}, {"count": 2, "documents": [PARIS, FRANCE]}, [PARIS, FRANCE]),
        ({}, SimpleNamespace(source_nodes=[PARIS]), [PARIS]),
        ({"evidence": [PARIS]}, None, [PARIS]),
        ({}, None, []),
    ],
    ids=["list", "document", "text", "mapping", "state", "response", "input", "none"],
)
def test_where_passages_stand_by_a_key(
    receiver: Receiver, given: dict[str, Any], kept: Any, found: list[Document]
) -> None:
    answer: Any = RunnableLambda(lambda _: {"answer": says("Paris.").invoke("?").content, "evidence": kept})
    record = run(answer, {"question": QUESTION, **given}, receiver, context_key="evidence")
    assert texts(record.contexts) == [one.page_content for one in found]
    assert ("contexts: nothing under context_key 'evidence'" in record.notes) == (not found)


@tool
def broken(query: str) -> str:
    """Fails."""
    raise ConnectionError(query)


@pytest.mark.parametrize(
    "part", [says(ConnectionError("away")), Broken(), broken], ids=["model", "retriever", "tool"]
)
def test_what_fails_by_itself_is_let_go(receiver: Receiver, part: Any) -> None:
    handler = CallbackHandler(receiver)
    for _ in range(3):
        with pytest.raises(ConnectionError):
            part.invoke(QUESTION, {"callbacks": [handler]})
    assert handler.stats()["open"] == 0
    assert not receiver.records


def test_an_interrupt_within_a_tool_is_one_of_its_turn(receiver: Receiver) -> None:
    @tool
    def ask(query: str) -> str:
        """Asks a person."""
        raise GraphInterrupt

    def step(question: str) -> str:
        reply = says("Shall I look?").invoke(question)
        with suppress(GraphInterrupt):
            ask.invoke(question)
        return str(reply.content)

    assert run(RunnableLambda(step), QUESTION, receiver).status == "interrupted"


def test_the_reference_may_stand_in_the_metadata(receiver: Receiver) -> None:
    assert run(lcel(), QUESTION, receiver, reference_key="expected").reference == "Paris"


def test_unknown_shapes_say_what_is_missing(receiver: Receiver) -> None:
    record = run(odd_chain(), {"wish": QUESTION, "tone": "brief"}, receiver)
    assert (record.question, record.answer, record.status) == ("", "", "ok")
    assert record.notes == (
        "question: not found in an input of type dict with keys tone, wish; set question_key",
        "answer: not found in an output of type dict with keys evidence, verdict; set answer_key",
        "no_contexts: no passages were seen; if the prompt had any, say which: record() and turn.contexts",
    )


def test_a_key_that_raises_costs_only_the_record_its_content(receiver: Receiver) -> None:
    record = run(lcel(), QUESTION, receiver, answer_key=lambda output: output["no such thing"])
    assert record.status == "error"
    assert record.notes == ("the run could not be read: TypeError",)


def test_metadata_is_added(receiver: Receiver) -> None:
    assert run(lcel(), QUESTION, receiver, metadata={"app": "a"}).metadata["app"] == "a"
    other = Receiver()
    added = run(lcel(), QUESTION, other, metadata=lambda own: {"tenant": own["user"].upper()})
    assert added.metadata["tenant"] == "U"


def test_on_record_sees_and_may_change(receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Record] = []
    assert run(lcel(), QUESTION, receiver, on_record=seen.append).question == QUESTION
    assert seen == receiver.records
    changed = run(lcel(), QUESTION, Receiver(), on_record=lambda record: record.replace(answer="changed"))
    assert changed.answer == "changed"

    def fail(record: Record) -> None:
        raise ZeroDivisionError(record.question)

    for _ in range(3):
        assert run(lcel(), QUESTION, Receiver(), on_record=fail).question == QUESTION
    (line,) = caplog.messages
    assert line.startswith("on_record raised ZeroDivisionError")
    assert QUESTION not in caplog.text


def test_on_record_that_returns_no_record_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    wrong: Any = lambda record: record.answer  # noqa: E731
    assert run(lcel(), QUESTION, Receiver(), on_record=wrong).question == QUESTION
    assert "on_record returned str instead of a Record" in caplog.text


@pytest.mark.parametrize("score", [10**400, -(10**400), np.zeros(3), np.array("x"), [0.5], True, "0.5"])
def test_a_score_that_is_no_number_costs_no_turn(receiver: Receiver, score: Any) -> None:
    odd = Document(id="d1", page_content=PARIS.page_content, metadata={"score": score, "x": np.zeros(3)})
    record = run(lcel(retriever=Shelf(documents=[odd])), QUESTION, receiver)
    assert [(context.id, context.score) for context in record.contexts] == [("d1", None)]
    assert record.status == "ok"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"question_key": 3}, "question_key must be a key or a function, not 3"),
        ({"nested": "some"}, "not 'some'"),
        ({"tool_contexts": "search"}, r"write \['search'\]"),
        ({"metadata": ["a"]}, "metadata must be a mapping"),
        ({"on_record": "print"}, "on_record must be a function"),
        ({"ttl": 0}, "ttl must be a number above 0, not 0"),
        ({"monitor": object()}, "is not a Monitor"),
    ],
)
def test_wrong_options_fail_at_once(receiver: Receiver, options: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        CallbackHandler(**({"monitor": receiver} | options))


def test_parallel_chains_nested(receiver: Receiver) -> None:
    both = RunnableParallel(short=lcel(says("Paris.")), long=lcel(says("It is Paris, surely.")))
    both.invoke(QUESTION, {"callbacks": [CallbackHandler(receiver, nested="all")]})
    assert {record.answer for record in receiver.records} == {"Paris.", "It is Paris, surely."}
    assert {record.question for record in receiver.records} == {QUESTION}
    assert all(len(record.contexts) == 3 for record in receiver.records)
    assert len({record.id for record in receiver.records}) == 2


def test_nested_all_makes_one_record_of_a_plain_chain(receiver: Receiver) -> None:
    lcel().invoke(QUESTION, {"callbacks": [CallbackHandler(receiver, nested="all")]})
    assert receiver.record.answer == "Paris is the capital."


class Answer(BaseModel):
    answer: str
    sure: bool = True


@dataclass
class Reply:
    response: str


class Pair(NamedTuple):
    result: str
    score: float


@pytest.mark.parametrize("output", [Answer(answer="Paris."), Reply("Paris."), Pair("Paris.", 1.0)])
def test_answers_in_objects(receiver: Receiver, output: Any) -> None:
    assert run(lcel() | (lambda _: output), QUESTION, receiver).answer == "Paris."


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ({"answer": Answer(answer="Paris.")}, "Paris."),
        ({"answer": {"city": "Paris", "sure": True}}, '{"city": "Paris", "sure": true}'),
        ({"result": [{"type": "text", "text": "Par"}, {"type": "text", "text": "is."}]}, "Paris."),
        ({"output": [AIMessage("Paris.")]}, "Paris."),
        ({"messages": [HumanMessage(QUESTION), AIMessage("Hm.")], "generation": "Paris."}, "Paris."),
        ({"question": QUESTION, "reply": "Paris."}, "Paris."),
    ],
)
def test_answers_in_mappings(receiver: Receiver, output: Any, answer: str) -> None:
    assert (
        run(
            RunnableLambda(itemgetter("question")) | lcel() | (lambda _: output),
            {"question": QUESTION},
            receiver,
        ).answer
        == answer
    )


def test_documents_given_by_the_caller(receiver: Receiver) -> None:
    chain = RunnablePassthrough.assign(context=lambda given: joined(given["docs"])) | (
        lambda given: says("Paris.").invoke(given["context"])
    )
    record = run(chain, {"question": QUESTION, "docs": [PARIS, FRANCE]}, receiver)
    assert texts(record.contexts) == [PARIS.page_content, FRANCE.page_content]


def test_passages_given_by_the_caller(receiver: Receiver) -> None:
    chain: Any = RunnableLambda(lambda given: says("Paris.").invoke("\n".join(given["contexts"])))
    record = run(chain, {"question": QUESTION, "contexts": ["One passage.", "Another one."]}, receiver)
    assert texts(record.contexts) == ["One passage.", "Another one."]


class Hostile:
    """An object that answers every question with an exception."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __str__(self) -> str:
        raise RuntimeError("no str")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no eq")

    def __hash__(self) -> int:
        raise RuntimeError("no hash")

    def __bool__(self) -> bool:
        raise RuntimeError("no bool")


@pytest.mark.parametrize("value", [Hostile(), 3, None, b"bytes", [Hostile()], {"question": Hostile()}, {}])
def test_odd_inputs_and_outputs_make_a_record_and_no_warning(
    receiver: Receiver, caplog: pytest.LogCaptureFixture, value: Any
) -> None:
    chain = RunnableLambda(lambda given: (says("Paris.").invoke("?"), value)[1])
    handler = CallbackHandler(receiver)
    chain.invoke(value, {"callbacks": [handler], "metadata": {"odd": "x"}})
    record = receiver.record
    assert record.answer == ""
    assert record.notes
    assert handler.stats()["unreadable_event"] == 0
    assert caplog.records == []


def test_documents_without_text_are_left_out_and_said(receiver: Receiver) -> None:
    shelf = Shelf(documents=[Document(page_content=""), PARIS, Document(page_content="  \n")])
    record = run(lcel(retriever=shelf), QUESTION, receiver)
    assert texts(record.contexts) == [PARIS.page_content]
    assert record.contexts[0].rank == 1
    assert record.notes == ("contexts: 2 documents without text",)


def test_giant_input(receiver: Receiver) -> None:
    huge = Shelf(documents=[Document(page_content=f"{n} " + "x" * 60_000) for n in range(50)])
    handler = CallbackHandler(receiver)
    lcel(retriever=huge).invoke("why " * 100_000, {"callbacks": [handler]})
    draft = receiver.drafts[0]
    assert not isinstance(draft, Record)
    assert draft.size > 5_000_000
    assert len(receiver.record.contexts) == 50


def test_a_run_id_that_is_no_uuid_is_counted_and_said_once(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    handler = CallbackHandler(receiver)
    config: Any = {"callbacks": [handler], "run_id": "my-run"}
    for _ in range(3):
        lcel().invoke(QUESTION, config)
    assert handler.stats()["unreadable_event"] > 0
    assert handler.stats()["runs"] == 0
    assert len(caplog.records) == 1


def test_an_error_while_an_event_is_read_is_logged_without_its_message(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    class Shy:
        """An id whose use fails with an error that quotes something."""

        @property
        def int(self) -> Any:
            raise ValueError("private words")

    handler = CallbackHandler(receiver)
    run_id: Any = Shy()
    handler.on_chain_end({}, run_id=run_id)
    assert handler.stats()["unreadable_event"] == 1
    assert "ValueError" in caplog.text and "private" not in caplog.text


@pytest.mark.parametrize("way", ["invoke", "stream", "agent"])
def test_a_run_may_be_named_by_the_text_of_an_id(
    receiver: Receiver, handler: CallbackHandler, way: str
) -> None:
    """As LangServe names the runs of the chains that it serves."""
    config: Any = {"callbacks": [handler], "run_id": str(uuid4())}
    if way == "invoke":
        lcel().invoke(QUESTION, config)
    elif way == "stream":
        list(lcel().stream(QUESTION, config))
    else:
        tool = create_retriever_tool(Shelf(), "search", "Searches.")
        model = says(calls("search", query="capital"), "Paris is the capital.")
        given: Any = {"messages": [("user", QUESTION)]}
        create_agent(model, [tool]).invoke(given, config)
    record = receiver.record
    assert (record.id, record.question, record.answer) == (
        config["run_id"],
        QUESTION,
        "Paris is the capital.",
    )
    assert texts(record.contexts) == THREE


def test_single_calls_may_be_named_by_the_text_of_an_id(receiver: Receiver, handler: CallbackHandler) -> None:
    def config() -> Any:
        return {"callbacks": [handler], "run_id": str(uuid4())}

    context = joined(Shelf().invoke(QUESTION, config()))
    says("Paris is the capital.").invoke(f"Context: {context}\n\nQuestion: {QUESTION}", config())
    assert (receiver.record.question, receiver.record.answer) == (QUESTION, "Paris is the capital.")


def test_a_text_that_is_not_an_id_is_counted(receiver: Receiver) -> None:
    handler = CallbackHandler(receiver)
    config: Any = {"callbacks": [handler], "run_id": "first run"}
    assert lcel().invoke(QUESTION, config) == "Paris is the capital."
    assert handler.stats()["unreadable_event"] > 0
    assert not receiver.records
