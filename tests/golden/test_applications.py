"""Golden sets put to applications of all kinds: chains, engines, workflows, functions, endpoints."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda
from llama_index.core import MockEmbedding, Settings, VectorStoreIndex, get_response_synthesizer
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.chat_engine.types import BaseChatEngine, ChatMode
from llama_index.core.llms import ChatMessage, ChatResponse, LLMMetadata, MockLLM
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step
from typing_extensions import TypedDict

from golden import apps
from golden.apps import WEIGHING, ask
from steelyard.golden import Case, GoldenSet, Message, app_from, read_reply, run_golden
from steelyard.record import Context, Record


@pytest.mark.parametrize("app", ["golden/apps.py:chain", "golden.apps:with_key", apps.chain, apps.chain()])
def test_a_chain_is_judged_by_the_contexts_that_its_retriever_returned(app: object) -> None:
    run = run_golden(WEIGHING, app, metrics=["faithfulness"], gates=["faithfulness=0.9", "declined=0.9"])
    first, _, whale = run.cases
    assert "Pompeii" in first.answer
    assert len(first.contexts) == 4 and first.contexts[0].startswith("Roman steelyards\n")
    assert first.metrics["faithfulness"].value == 1.0
    assert {*whale.metrics} == {"declined"} and whale.metrics["declined"].value == 1.0
    assert run.passed and [gate.outcome for gate in run.gates] == ["pass", "pass"]


def test_of_several_turns_that_one_counts_whose_answer_was_given_whatever_stands_around_it() -> None:
    def wordy(question: str) -> str:
        """Looks further after it has found its answer."""
        chain: Any = apps.chain()
        answer = chain.invoke(question)
        chain.invoke("How many milligrams is a carat?")
        return f"  {answer}\n"

    (case,) = ask(wordy, "Where were many Roman steelyards found?").cases
    assert case.contexts[0].startswith("Roman steelyards\n")


def test_a_query_engine_is_judged_by_the_contexts_that_its_retriever_returned() -> None:
    nodes = [TextNode(text=text, id_=f"n{at}") for at, text in enumerate(("Ada lit it.", "Bees hum."))]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=4))
    engine: BaseQueryEngine = index.as_query_engine(llm=MockLLM())
    run = ask(engine, "Who lit it?", "What hums?")
    assert not run.broken
    assert all(sorted(case.contexts) == ["Ada lit it.", "Bees hum."] for case in run)
    assert Settings is not None


class Echo(MockLLM):
    """Answers with what it was shown, so that an answer tells what the application was asked."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=True)

    def chat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponse:
        told = " / ".join(str(message.content) for message in messages if message.role != "system")
        return ChatResponse(message=ChatMessage(role="assistant", content=told))

    async def achat(self, messages: Sequence[ChatMessage], **options: Any) -> ChatResponse:
        return self.chat(messages, **options)


def lamp_index() -> VectorStoreIndex:
    nodes = [TextNode(text=text, id_=f"n{at}") for at, text in enumerate(("Ada lit it.", "Bees hum."))]
    return VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=4))


def lamp_chat() -> BaseChatEngine:
    return lamp_index().as_chat_engine(chat_mode=ChatMode.CONTEXT, llm=Echo(max_tokens=None))


FOLLOW_UP = Case(
    question="When?",
    history=(Message(role="user", text="Who lit it?"), Message(role="assistant", text="Ada.")),
    kind="follow_up",
)


def test_a_chat_engine_starts_each_case_anew_and_is_told_what_was_said_before() -> None:
    with ThreadPoolExecutor(1) as thread:  # its memory would leave an event loop open in this one
        engine = thread.submit(lamp_chat).result()
    golden = GoldenSet(cases=(Case(question="What hums?"), FOLLOW_UP, Case(question="Is it late?")))
    first, second, third = run_golden(golden, engine, metrics=[]).cases
    assert [first.problem, second.problem, third.problem] == ["", "", ""]
    assert first.answer == "What hums?" and third.answer == "Is it late?"
    assert second.answer == "Who lit it? / Ada. / When?"
    assert all(sorted(case.contexts) == ["Ada lit it.", "Bees hum."] for case in (first, second, third))


class Retrieved(Event):
    """The passages of a step."""

    nodes: list[NodeWithScore]
    query: str


class Flow(Workflow):
    """Retrieves in one step and answers in the next, as the workflows of the documentation do."""

    @step
    async def retrieve(self, event: StartEvent) -> Retrieved:
        """Look passages up."""
        found = await lamp_index().as_retriever(similarity_top_k=2).aretrieve(event.query)
        return Retrieved(nodes=found, query=event.query)

    @step
    async def answer(self, event: Retrieved) -> StopEvent:
        """Put the passages and the question to the model."""
        synthesizer = get_response_synthesizer(llm=Echo(max_tokens=None))
        return StopEvent(result=await synthesizer.asynthesize(event.query, nodes=event.nodes))


def test_a_workflow_is_judged_by_the_contexts_that_its_retriever_returned() -> None:
    run = ask(Flow(timeout=60), "Who lit it?", "What hums?")
    assert not run.broken
    for case in run:
        assert sorted(case.contexts) == ["Ada lit it.", "Bees hum."]
        assert "Ada lit it." in case.answer


def test_a_function_says_what_it_retrieved() -> None:
    (case,) = ask(apps.answer, "Who lit it?").cases
    assert case.answer == apps.LAMPS
    assert case.contexts == (apps.LAMPS, "Who lit it?")


@pytest.mark.parametrize(
    ("app", "expected"),
    [(apps.answer_later, f"{apps.LAMPS} 4"), (apps.stream, "Ada lit it."), (apps.whole, "nothing")],
)
def test_functions_of_all_kinds(app: object, expected: str) -> None:
    (case,) = ask(app, "Who?").cases
    assert (case.asked, case.answer) == ("answered", expected)
    assert case.notes == ("no retrieval was recorded, and the reply holds no contexts",)


def test_a_follow_up_is_asked_with_its_history_or_noted() -> None:
    history = (Message(role="user", text="Who lit it?"), Message(role="assistant", text="Ada."))
    golden = GoldenSet(cases=(Case(question="When?", history=history),))
    (case,) = run_golden(golden, apps.told, metrics=[]).cases
    assert case.answer == "2: Who lit it?"
    (case,) = run_golden(golden, apps.stream, metrics=[]).cases
    assert "takes no history" in case.notes[0]


class _Asked(TypedDict):
    input: str
    chat_history: list[tuple[str, str]]


class _State(TypedDict):
    messages: list[Any]


def _with_history(given: Any) -> str:
    return " ".join([given["input"], *(f"{role}:{text}" for role, text in given["chat_history"])])


def _with_messages(given: Any) -> dict[str, Any]:
    told = [f"{one['role']}:{one['content']}" for one in given["messages"][:-1]]
    return {"messages": [*given["messages"], _Message(" ".join([given["messages"][-1]["content"], *told]))]}


@pytest.mark.parametrize("form", [(_with_history, _Asked), (_with_messages, _State)])
def test_a_chain_is_told_what_was_said_before_in_its_own_form(form: tuple[Any, Any]) -> None:
    history = (Message(role="user", text="Who?"), Message(role="assistant", text="Ada."))
    golden = GoldenSet(cases=(Case(question="When?", history=history), Case(question="Where?")))
    chain = RunnableLambda(form[0]).with_types(input_type=form[1])
    cases = run_golden(golden, chain, metrics=[]).cases
    assert [case.answer for case in cases] == ["When? user:Who? assistant:Ada.", "Where?"]
    assert not any("history" in note for case in cases for note in case.notes)


def test_what_is_streamed_as_mappings_is_put_together() -> None:
    def stream(question: str) -> Iterator[dict[str, Any]]:
        yield {"contexts": ["Ada lit it."]}
        yield {"answer": "Ada "}
        yield {"answer": "did."}

    (case,) = ask(stream, "Who lit it?").cases
    assert (case.answer, case.contexts) == ("Ada did.", ("Ada lit it.",))


class _Endpoint(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = {"break": 500, "move": 302, "leave": 301}.get(body["question"], 200)
        reply = {"data": {"text": apps.LAMPS, "found": [{"text": apps.LAMPS}]}, "answer": body["question"]}
        data = b"no JSON" if body["question"] == "mumble" else json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Silence."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Endpoint)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/ask"
    server.shutdown()
    server.server_close()
    thread.join()


def test_an_http_endpoint(endpoint: str) -> None:
    run = ask(endpoint, "Who lit it?", "break", "move", "leave", "mumble")
    assert [case.answer for case in run] == ["Who lit it?", "", "", "", ""]
    problems = [case.problem.rpartition("/ask ")[2] for case in run.cases[1:4]]
    assert problems == ["replied 500", "replied 302", "replied 301"]
    assert run.cases[4].problem == "EndpointError: the endpoint's reply is not JSON"
    named = app_from(endpoint, options={"answer_field": "data.text", "contexts_field": "data.found"})
    (case,) = ask(named, "Who lit it?").cases
    assert (case.answer, case.contexts) == (apps.LAMPS, (apps.LAMPS,))
    placed = app_from(endpoint, options={"answer_field": "data.text", "contexts_field": "data.found.0.text"})
    (case,) = ask(placed, "Who lit it?").cases
    assert case.contexts == (apps.LAMPS,)
    beyond = app_from(endpoint, options={"answer_field": "data.text", "contexts_field": "data.found.7"})
    (case,) = ask(beyond, "Who lit it?").cases
    assert (case.asked, case.contexts) == ("answered", ())


def test_an_endpoint_that_is_not_there_is_named() -> None:
    (case,) = ask("http://127.0.0.1:9/ask", "Who?").cases
    assert case.asked == "error" and case.problem.startswith("EndpointError: http://127.0.0.1:9/ask")


class _Message:
    def __init__(self, content: object) -> None:
        self.content = content


class _Document:
    page_content = "Ada lit it."
    id = "d1"


@pytest.mark.parametrize(
    ("value", "answer", "contexts"),
    [
        ("Ada.", "Ada.", []),
        (_Message("Ada."), "Ada.", []),
        (_Message([{"type": "text", "text": "Ada"}, {"type": "text", "text": "."}]), "Ada.", []),
        ({"messages": [_Message("Who?"), _Message("Ada.")]}, "Ada.", []),
        ({"result": "Ada.", "source_documents": [_Document()]}, "Ada.", ["Ada lit it."]),
        ({"output": {"text": "Ada."}}, "Ada.", []),
        ({"answer": _Message("Ada."), "contexts": 7}, "Ada.", []),
        ({"answer": "Ada.", "contexts": "Ada lit it."}, "Ada.", ["Ada lit it."]),
        (("Ada.", ["Ada lit it.", Context(text="Bees hum.")]), "Ada.", ["Ada lit it.", "Bees hum."]),
        (
            Record(question="q", answer="Ada.", contexts=(Context(text="Ada lit it."),)),
            "Ada.",
            ["Ada lit it."],
        ),
        ({"answer": ""}, "", []),
    ],
)
def test_replies_of_many_shapes(value: object, answer: str, contexts: list[str]) -> None:
    reply = read_reply(value)
    assert (reply.answer, [context.text for context in reply.contexts]) == (answer, contexts)
