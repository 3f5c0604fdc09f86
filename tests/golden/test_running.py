"""Golden sets put to applications of every kind: what is recorded, and what goes wrong by name."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from llama_index.core import MockEmbedding, Settings, VectorStoreIndex, get_response_synthesizer
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.chat_engine.types import ChatMode
from llama_index.core.llms import ChatMessage, ChatResponse, LLMMetadata, MockLLM
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step

from golden import apps
from judge_server import JudgeServer
from steelyard.errors import ConfigurationError, JudgeRejected
from steelyard.golden import Case, GoldenSet, Message, Run, run_golden
from steelyard.golden.running import app_from, read_reply
from steelyard.judge import ChatJudge
from steelyard.questions import Predicate, Question, Request, YesNo
from steelyard.record import Context, Record
from steelyard.testing import ScriptedJudge

WEIGHING = GoldenSet(
    name="weighing",
    cases=(
        Case(question="Where were many Roman steelyards found?", reference="At Pompeii.", tags=("rome",)),
        Case(question="How many milligrams is a carat?", reference="200 milligrams.", tags=("units",)),
        Case(question="How much does a blue whale weigh?", kind="unanswerable"),
    ),
)


def ask(app: object, *questions: str, **options: object) -> Run:
    golden = GoldenSet(cases=tuple(Case(question=question) for question in questions))
    return run_golden(golden, app, metrics=[], **options)


@pytest.fixture(autouse=True)
def let_go() -> Iterator[None]:
    apps.LET_GO.clear()
    yield
    apps.LET_GO.set()


@pytest.mark.parametrize("app", ["golden.apps:chain", "golden.apps:with_key", apps.chain, apps.chain()])
def test_a_chain_is_judged_by_the_contexts_that_its_retriever_returned(app: object) -> None:
    run = run_golden(WEIGHING, app, metrics=["faithfulness"], gates=["faithfulness=0.9", "declined=0.9"])
    first, _, whale = run.cases
    assert "Pompeii" in first.answer
    assert len(first.contexts) == 4 and first.contexts[0].startswith("Roman steelyards\n")
    assert first.metrics["faithfulness"].value == 1.0
    assert {*whale.metrics} == {"declined"} and whale.metrics["declined"].value == 1.0
    assert run.passed and [gate.outcome for gate in run.gates] == ["pass", "pass"]


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


FOLLOW_UP = Case(
    question="When?",
    history=(Message(role="user", text="Who lit it?"), Message(role="assistant", text="Ada.")),
    kind="follow_up",
)


def test_a_chat_engine_starts_each_case_anew_and_is_told_what_was_said_before() -> None:
    engine = lamp_index().as_chat_engine(chat_mode=ChatMode.CONTEXT, llm=Echo(max_tokens=None))
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


def test_what_an_application_does_wrong_is_said_by_name_and_the_rest_goes_on() -> None:
    questions = ("raise", "exit", "hang", "none", "number", "fine")
    run = ask(apps.unsteady, *questions, app_timeout=1.5, concurrency=2)
    found = {case.question: (case.asked, case.problem) for case in run}
    assert found["fine"] == ("answered", "")
    assert found["raise"] == ("error", "ValueError: the index is gone, key=***")
    assert found["exit"] == ("error", "SystemExit: 3")
    assert found["hang"] == ("timeout", "no answer within 1.5 s")
    assert found["none"][0] == "odd_reply" and "returned None" in found["none"][1]
    assert found["number"][0] == "odd_reply" and "returned a int" in found["number"][1]
    assert not run.passed and len(run.problems) == 5


def test_an_async_function_that_blocks_its_loop_is_given_up_too() -> None:
    run = ask(apps.blocking, "hang", app_timeout=1.0)
    assert run.cases[0].asked == "timeout"


class _Endpoint(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = 500 if "break" in body["question"] else 200
        reply = {"data": {"text": apps.LAMPS, "found": [{"text": apps.LAMPS}]}, "answer": body["question"]}
        data = json.dumps(reply).encode()
        self.send_response(status)
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
    run = ask(endpoint, "Who lit it?", "break")
    assert [case.answer for case in run] == ["Who lit it?", ""]
    assert run.cases[1].problem.endswith("/ask replied 500")
    named = app_from(endpoint, options={"answer_field": "data.text", "contexts_field": "data.found"})
    (case,) = ask(named, "Who lit it?").cases
    assert (case.answer, case.contexts) == (apps.LAMPS, (apps.LAMPS,))


def test_an_endpoint_that_is_not_there_is_named() -> None:
    (case,) = ask("http://127.0.0.1:9/ask", "Who?").cases
    assert case.asked == "error" and case.problem.startswith("EndpointError: http://127.0.0.1:9/ask")


def test_a_judge_that_refuses_is_named_for_its_case_alone() -> None:
    def refuse(question: Question, request: Request) -> YesNo:
        if "1" in (request.view.answer or ""):
            raise JudgeRejected("no", cause="refused")
        return YesNo(value=False)

    cases = tuple(Case(question="x" * n, kind="unanswerable") for n in (1, 2))
    run = run_golden(
        GoldenSet(cases=cases), apps.answer_later, judge=ScriptedJudge(refuse), metrics=["declined"]
    )
    # "Ada lit the lamp in 1811. 1" and "... 2" both hold a 1: the year.
    assert [case.metrics["declined"].cause for case in run] == ["refused", "refused"]
    assert run.problems == [f"{case.id}: declined failed (refused)" for case in run]


def test_a_wavering_judge_is_asked_until_the_gate_is_decided() -> None:
    calls: list[str] = []

    def waver(question: Question, request: Request) -> YesNo:
        if question.kind == "predicate":
            return YesNo(value=False)
        calls.append(str(request.view.answer))
        return YesNo(value=len(calls) % 2 == 0)

    cases = tuple(Case(question="x" * n, kind="unanswerable") for n in range(1, 31))
    run = run_golden(
        GoldenSet(cases=cases), apps.answer_later, judge=ScriptedJudge(waver), gates=["declined=0.8"]
    )
    (gate,) = run.gates
    assert gate.outcome == "fail" and gate.mean == pytest.approx(0.5, abs=0.1)
    assert gate.calls == len(calls) <= 60
    assert sum(len(case.metrics["declined"].values) for case in run) == gate.calls


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("It was never gilded: its pan is of bronze.", True),
        ("I do not know.", True),
        ("It was gilded in 1811.", False),
    ],
)
def test_a_false_premise_may_be_corrected_or_the_question_declined(answer: str, right: bool) -> None:
    def judge(question: Question, request: Request) -> YesNo:
        if isinstance(question, Predicate):
            assert request.view.reference == "It was not gilded."
            return YesNo(value="never" in (request.view.answer or ""))
        return YesNo(value="not know" in (request.view.answer or ""))

    case = Case(question="Who gilded it?", reference="It was not gilded.", kind="false_premise")
    scripted = ScriptedJudge(judge)
    run = run_golden(
        GoldenSet(cases=(case,)), lambda question: answer, judge=scripted, gates=["declined=0.9"]
    )
    assert run.passed is right
    assert len(scripted.requests) == run.gates[0].calls


@pytest.mark.parametrize(("answer", "right"), [("I do not know.", 1.0), ("It was never gilded.", 0.0)])
def test_the_local_judge_knows_only_whether_an_answer_declines(answer: str, right: float) -> None:
    case = Case(question="Who gilded it?", kind="false_premise")
    (found,) = run_golden(GoldenSet(cases=(case,)), lambda question: answer, metrics=["declined"]).cases
    assert found.metrics["declined"].value == right


def test_a_repeat_is_not_answered_from_the_judges_cache() -> None:
    from steelyard.judge.middleware import Cache

    count = 0

    def waver(question: Question, request: Request) -> YesNo:
        nonlocal count
        if question.kind == "predicate":
            return YesNo(value=False)
        count += 1
        return YesNo(value=count % 4 != 0)

    golden = GoldenSet(cases=tuple(Case(question="x" * n, kind="unanswerable") for n in range(1, 7)))
    run = run_golden(golden, apps.answer_later, judge=Cache(ScriptedJudge(waver)), gates=["declined=0.8"])
    assert count == run.gates[0].calls > 6


def test_a_gate_against_a_baseline_pairs_the_cases() -> None:
    before = run_golden(WEIGHING, apps.chain, metrics=["faithfulness"])
    after = run_golden(WEIGHING, apps.worse, gates=["faithfulness"], baseline=before)
    assert after.gates[0].gate == "faithfulness >= 1 (baseline)"
    assert after.gates[0].outcome == "fail"
    same = run_golden(WEIGHING, apps.chain, gates=["faithfulness"], baseline=before)
    assert same.gates[0].outcome == "pass"


def test_repeating_the_application_asks_it_again() -> None:
    asked: list[str] = []

    def app(question: str) -> str:
        asked.append(question)
        return "I do not know." if len(asked) % 2 else apps.LAMPS

    golden = GoldenSet(cases=tuple(Case(question=q * 3, kind="unanswerable") for q in "abcd"))
    run = run_golden(golden, app, gates=["declined=0.9"], repeat="app", concurrency=1)
    assert len(asked) == run.gates[0].calls > 4


def test_a_remote_judge_over_the_wire() -> None:
    with JudgeServer() as server:
        judge = ChatJudge("m", base_url=server.url)
        run = run_golden(WEIGHING, apps.chain, judge=judge, metrics=["faithfulness"])
    assert run.cases[0].metrics["faithfulness"].value == 1.0
    assert run.usage.requests == len(server.received)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"app": "golden.apps:nothing"}, "has no 'nothing'"),
        ({"app": "no_such_module:x"}, "no module is named 'no_such_module'"),
        ({"app": "just_a_name"}, "not of the form module:name"),
        ({"app": 7}, "can neither be called"),
        ({"gates": ["faithfulness"]}, "no number and no baseline"),
        ({"gates": ["faithfulness=high"]}, "not of the form"),
        ({"gates": ["brilliance=0.8"]}, "no metric is named 'brilliance'"),
        ({"concurrency": 0}, "concurrency must be at least 1"),
    ],
)
def test_wrong_configuration_is_refused_before_anything_is_asked(
    wrong: dict[str, object], match: str
) -> None:
    options = {"app": apps.chain, "metrics": ["faithfulness"], **wrong}
    with pytest.raises(ConfigurationError, match=match):
        run_golden(WEIGHING, options.pop("app"), **options)


def test_an_empty_set_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="has no cases"):
        run_golden(GoldenSet(cases=(), name="none"), apps.chain)


def test_a_set_that_was_edited_and_cases_that_nobody_reviewed_are_said() -> None:
    case = Case(question="Who?", source="synthetic")
    run = run_golden(GoldenSet(cases=(case,), declared_version="abc"), apps.stream, metrics=[])
    assert len(run.warnings) == 2
    assert "edited" in run.warnings[0] and "nobody has reviewed 1 of 1 cases" in run.warnings[1]


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
