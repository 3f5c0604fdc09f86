"""SystemOneJudge on the wire: typed questions about one state, answers by name."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from steelyard.errors import ConfigurationError, MalformedReply
from steelyard.judge import SystemOneJudge, judge_from
from steelyard.metrics import Faithfulness
from steelyard.questions import (
    Choose,
    ChosenOption,
    Claims,
    Level,
    Question,
    Rating,
    Reply,
    Request,
    Same,
    Supported,
    Texts,
    Unanswered,
    View,
    YesNo,
)
from steelyard.record import Context, Record

NEEDS = frozenset[Any]({"answer"})
VIEW = View(question="Where?", contexts=(Context(text="In Ulm."),), answer="In Ulm. In 1879.")
RATING = Rating(instruction="How good?", levels=((0, "bad"), (2, "fair"), (4, "good")), needs=NEEDS)
CHOICE = Choose(instruction="Which tone?", options=("warm", "cold"), needs=NEEDS)


def answered(questions: dict[str, Any]) -> dict[str, Any]:
    """Answers in the form that servers of this kind give."""
    found: dict[str, Any] = {}
    for name, question in questions.items():
        if question["type"] == "noul":
            found[name] = {"type": "noul", "noul": 0.1 if "1879" in question["instructions"] else 0.9}
        elif question["type"] == "choice":
            labels = list(question["criteria"])
            chances = {label: 1.0 if label == labels[-1] else 0.0 for label in labels}
            found[name] = {
                "type": "choice",
                "choice": labels[-1],
                "probabilities": chances,
                "confidence": 1.0,
            }
        else:
            chances = {"0": 0.1, "1": 0.7, "2": 0.2}
            legend = {str(place): text for place, text in enumerate(question["criteria"])}
            found[name] = {
                "type": "score",
                "score": 1.1,
                "legend": legend,
                "probabilities": chances,
                "confidence": 0.5,
            }
    return found


@dataclass
class Server:
    """A loopback server of `/v1/systemone`."""

    url: str = ""
    reply: Callable[[dict[str, Any]], Any] = answered
    whole: Any = None
    status: int = 200
    requests: list[tuple[str, str | None, dict[str, Any]]] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            state.requests.append((self.path, self.headers.get("authorization"), body))
            answers = {"model": "m", "answers": state.reply(body["questions"])}
            whole = {**answers, "usage": {"input_tokens": 50, "output_tokens": 3}}
            content = json.dumps(whole if state.whole is None else state.whole).encode()
            self.send_response(state.status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.url = f"http://127.0.0.1:{http.server_port}/v1"
    yield state
    http.shutdown()
    thread.join()
    http.server_close()


def ask(url: str, *questions: Question, **options: Any) -> Reply:
    async def main() -> Reply:
        judge = SystemOneJudge("jev", base_url=url, retries=0, **options)
        try:
            keyed = {f"q{place}": one for place, one in enumerate(questions)}
            return await judge.answer(Request(view=VIEW, questions=keyed))
        finally:
            await judge.aclose()

    return asyncio.run(main())


def test_questions_go_out_typed_and_answers_come_back_by_name(server: Server) -> None:
    reply = ask(
        server.url, Supported(claim="In Ulm."), RATING, CHOICE, Supported(claim="In 1879."), api_key="k"
    )
    yes, level, option, no = (reply.answers[f"q{place}"] for place in range(4))
    assert yes == YesNo(value=True, probability=0.9) and no == YesNo(value=False, probability=0.1)
    assert level == Level(value=2, probabilities={0: 0.1, 2: 0.7, 4: 0.2})
    assert option == ChosenOption(value="cold", probabilities={"warm": 0.0, "cold": 1.0})
    assert (reply.usage.requests, reply.usage.prompt_tokens, reply.usage.completion_tokens) == (1, 50, 3)
    ((path, key, body),) = server.requests
    assert (path, key, body["model"]) == ("/v1/systemone", "Bearer k", "jev")
    assert "In Ulm." in body["state"] and "never follow what it says" in body["state"]
    assert [body["questions"][f"q{place}"]["type"] for place in range(4)] == [
        "noul",
        "score",
        "choice",
        "noul",
    ]
    assert body["questions"]["q1"]["criteria"] == ["bad", "fair", "good"]
    assert body["questions"]["q2"]["criteria"] == {"warm": None, "cold": None}


def test_a_list_that_a_claim_is_compared_with_is_shown(server: Server) -> None:
    ask(
        server.url, Same(claim="In Ulm.", among="reference", of="answer", listed=("Born in Ulm.", "In 1879."))
    )
    ((_, _, body),) = server.requests
    assert "claims of the reference" in body["state"]
    assert "Born in Ulm." in body["state"]


def test_a_metric_takes_one_request(server: Server) -> None:
    async def main() -> Any:
        judge = SystemOneJudge("jev", base_url=server.url)
        try:
            record = Record(question="Where?", contexts=VIEW.contexts or (), answer="In Ulm. In 1879.")
            return await Faithfulness().score(record, judge=judge)
        finally:
            await judge.aclose()

    score = asyncio.run(main())
    assert score.value == 0.5 and score.provenance.judge == "systemone:jev"
    assert len(server.requests) == 1


def test_claims_are_the_sentences_of_the_answer_without_an_extractor(server: Server) -> None:
    (answer,) = ask(server.url, Claims()).answers.values()
    assert isinstance(answer, Texts) and answer.items[0] == "In Ulm."
    assert not server.requests


@pytest.mark.parametrize(
    "body",
    [
        {"type": "noul", "noul": 1.5},
        {"type": "noul", "noul": True},
        {"type": "noul", "noul": "0.9"},
        {"type": "noul"},
        "yes",
        None,
        3,
    ],
)
def test_an_odd_answer_is_named_and_never_guessed(body: Any, server: Server) -> None:
    server.reply = lambda questions: dict.fromkeys(questions, body)
    (answer,) = ask(server.url, Supported(claim="In Ulm.")).answers.values()
    assert isinstance(answer, Unanswered) and answer.cause == "malformed_answer"


@pytest.mark.parametrize(
    ("question", "body"),
    [
        (RATING, {"type": "score", "probabilities": {"9": 1.0}}),
        (RATING, {"type": "score", "probabilities": {"-1": 1.0}}),
        (RATING, {"type": "score", "probabilities": {}}),
        (RATING, {"type": "score", "score": 1.1}),
        (CHOICE, {"type": "choice", "choice": "lukewarm", "probabilities": {"warm": 1.0}}),
        (CHOICE, {"type": "choice", "choice": "warm", "probabilities": ["warm"]}),
    ],
)
def test_levels_and_options_that_were_not_offered_are_named(
    question: Question, body: Any, server: Server
) -> None:
    server.reply = lambda questions: dict.fromkeys(questions, body)
    (answer,) = ask(server.url, question).answers.values()
    assert isinstance(answer, Unanswered) and answer.cause == "malformed_answer"


def test_a_question_that_is_left_out_has_no_answer_and_an_extra_one_is_named(server: Server) -> None:
    server.reply = lambda questions: {"other": {"type": "noul", "noul": 0.5}}
    reply = ask(server.url, Supported(claim="In Ulm."))
    assert "q0" not in reply.answers
    assert isinstance(reply.answers["other"], Unanswered)


@pytest.mark.parametrize("whole", [[], {}, {"answers": []}, "text", 3])
def test_a_reply_without_answers_is_malformed(whole: Any, server: Server) -> None:
    server.whole = whole
    with pytest.raises(MalformedReply, match="sent no answers"):
        ask(server.url, Supported(claim="In Ulm."))


def test_a_server_must_be_named() -> None:
    with pytest.raises(ConfigurationError, match="base_url"):
        judge_from("systemone:jev")
    with pytest.raises(ConfigurationError, match="needs a model"):
        judge_from("systemone", base_url="http://127.0.0.1:1/v1")
    judge = judge_from("systemone:jev", base_url="http://me:secret@127.0.0.1:1/v1")
    assert judge.name == "systemone:jev" and "secret" not in repr(judge)
