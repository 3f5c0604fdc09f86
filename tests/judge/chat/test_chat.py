"""ChatJudge against a loopback server: the wire, the faults, the manners it learns."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from judge.asked import NEEDS, ONE, RATING, VIEW, answered, ask, closing, request
from judge_server import Fault, JudgeServer, Received
from steelyard.errors import (
    ConfigurationError,
    JudgeError,
    JudgeRejected,
    JudgeUnavailable,
    MalformedReply,
    RateLimited,
)
from steelyard.judge import ChatJudge
from steelyard.questions import (
    Choose,
    ChosenOption,
    Claims,
    Contradicted,
    Entities,
    GeneratedQuestions,
    Level,
    Noncommittal,
    Predicate,
    Question,
    Relevant,
    Reply,
    Request,
    Same,
    Supported,
    Texts,
    Useful,
    View,
    YesNo,
)
from steelyard.scores import Evidence


def test_every_kind_comes_back_in_its_own_form() -> None:
    asked = request(
        Supported(claim="A."),
        Contradicted(claim="B."),
        Useful(context=1),
        Relevant(text="C."),
        Same(claim="D.", among="answer", of="reference"),
        Noncommittal(),
        Predicate(criterion="Is it short?", needs=NEEDS),
        RATING,
        Choose(instruction="Which?", options=("red", "blue"), needs=NEEDS),
        Claims(),
        Entities(of="answer"),
        GeneratedQuestions(count=2),
    )
    with JudgeServer() as server:
        reply = ask(server, asked)
    forms = [type(answer) for answer in reply.answers.values()]
    assert forms == [YesNo] * 7 + [Level, ChosenOption] + [Texts] * 3
    assert reply.answers["q8"] == Level(value=2, reason="because")
    assert reply.answers["q9"] == ChosenOption(value="red", reason="because")
    assert reply.answers["q12"] == Texts(items=("One.", "Two."))


def test_the_body_on_the_wire() -> None:
    with JudgeServer() as server:
        ask(server, api_key="sk-mine", max_tokens=99)
    (got,) = server.received
    assert got.path == "/v1/chat/completions"
    assert got.headers["authorization"] == "Bearer sk-mine"
    assert got.body["model"] == "m"
    assert got.body["temperature"] == 0
    assert got.body["max_tokens"] == 99
    assert got.body["response_format"]["json_schema"]["strict"] is True
    (key,) = got.questions
    assert key.startswith("q1_") and got.questions[key] == "Einstein was born in Ulm."


def test_usage_is_the_server_s() -> None:
    with JudgeServer() as server:
        usage = ask(server).usage
    assert usage.requests == 1
    assert usage.prompt_tokens > usage.cached_tokens > 0
    assert usage.completion_tokens > 0
    assert usage.seconds > 0


def test_a_yes_names_its_context() -> None:
    with JudgeServer(lambda r: {"q1": {"reason": "there", "context": 2, "verdict": True}}) as server:
        answer = ask(server).answers["q1"]
    assert answer == YesNo(value=True, reason="there", evidence=(Evidence(context=1),))


@pytest.mark.parametrize(
    ("fault", "error", "cause"),
    [
        (Fault(status=401), JudgeRejected, "unauthorized"),
        (Fault(status=403), JudgeRejected, "unauthorized"),
        (Fault(status=404, code="model_not_found"), JudgeRejected, "unknown_model"),
        (Fault(status=400, code="model_not_found"), JudgeRejected, "unknown_model"),
        (Fault(status=429, code="insufficient_quota"), JudgeRejected, "quota_exceeded"),
        (Fault(status=413), JudgeRejected, "too_large"),
        (Fault(status=429, headers={"retry-after": "600"}), RateLimited, "rate_limited"),
        (Fault(status=503, headers={"retry-after": "600"}), JudgeUnavailable, "server_error"),
        (Fault(status=429, headers={"retry-after-ms": "600000"}), RateLimited, "rate_limited"),
        (Fault(raw=b"<html>502</html>"), MalformedReply, "malformed_reply"),
        (Fault(raw=b"[1, 2]"), MalformedReply, "malformed_reply"),
        (Fault(raw=b'{"choices": []}'), MalformedReply, "malformed_reply"),
        (Fault(status=307, headers={"location": "http://127.0.0.1:1/v1"}), JudgeRejected, "redirected"),
    ],
)
def test_what_will_not_pass_is_named_at_once(fault: Fault, error: type[JudgeError], cause: str) -> None:
    with JudgeServer() as server:
        server.faults += [fault] * 3
        with pytest.raises(error) as caught:
            ask(server)
        assert len(server.received) == caught.value.requests == 1
    assert caught.value.cause == cause


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (Fault(status=500), "server_error"),
        (Fault(status=408), "timeout"),
        (Fault(status=503, headers={"retry-after": "0"}), "server_error"),
        (Fault(status=429, headers={"retry-after": "0.01"}), "rate_limited"),
        (Fault(status=429), "rate_limited"),
        (Fault(drop=True), "unreachable"),
        (Fault(hang=5), "timeout"),
        (Fault(drip=0.05), "timeout"),
    ],
    ids=["500", "408", "503", "429", "429 without a wait", "dropped", "hang", "drip"],
)
def test_what_may_pass_is_asked_again_and_counted(fault: Fault, cause: str) -> None:
    timeout = 0.5 if cause == "timeout" else 30.0
    with JudgeServer() as server:
        server.faults += [fault] * 2
        reply = ask(server, timeout=timeout, retries=2)
        assert len(server.received) == 3
        assert reply.usage.requests == 3
        assert isinstance(reply.answers["q1"], YesNo)
        server.faults += [fault] * 2
        with pytest.raises(JudgeUnavailable) as caught:
            ask(server, timeout=timeout, retries=1)
    assert caught.value.cause == cause
    assert caught.value.requests == 2


def test_retry_after_is_kept() -> None:
    with JudgeServer() as server:
        server.faults.append(Fault(status=429, headers={"retry-after": "0.4"}))
        started = time.monotonic()
        ask(server)
    assert time.monotonic() - started >= 0.4


def test_a_date_in_retry_after_is_understood() -> None:
    with JudgeServer() as server:
        server.faults.append(Fault(status=429, headers={"retry-after": "Fri, 31 Dec 2100 23:59:59 GMT"}))
        with pytest.raises(RateLimited) as caught:
            ask(server)
    assert caught.value.retry_after is not None
    assert caught.value.retry_after > 1e8


def test_nobody_there() -> None:
    with pytest.raises(JudgeUnavailable, match=r"127\.0\.0\.1:9") as caught:
        ask("http://127.0.0.1:9/v1", retries=1)
    assert caught.value.cause == "unreachable"
    assert caught.value.requests == 2


def test_repeats_in_the_same_words_are_drawn_not_copied() -> None:
    with JudgeServer() as server:
        ask(server, request(Noncommittal(sample=1)))
        ask(server, request(Noncommittal(sample=2)))
    assert [r.body["temperature"] for r in server.received] == [0, 0.7]


async def crowd(judge: ChatJudge, count: int) -> list[Reply]:
    return await asyncio.gather(*(judge.answer(ONE) for _ in range(count)))


def test_requests_in_flight_and_connections_are_limited() -> None:
    with JudgeServer(latency=0.02) as server:
        judge = ChatJudge("m", base_url=server.url, concurrency=4)
        closing(judge, crowd(judge, 40))
    assert server.peak == 4
    assert server.connections <= 4


def test_one_judge_in_several_loops_one_after_the_other() -> None:
    with JudgeServer() as server:
        judge = ChatJudge("m", base_url=server.url)
        for _ in range(3):
            assert isinstance(answered(judge, ONE).answers["q1"], YesNo)


async def test_a_cancelled_request_leaves_nothing_behind() -> None:
    with JudgeServer() as server:
        judge = ChatJudge("m", base_url=server.url, concurrency=1)
        server.faults.append(Fault(hang=5))
        first = asyncio.ensure_future(judge.answer(ONE))
        await asyncio.sleep(0.1)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert isinstance((await judge.answer(ONE)).answers["q1"], YesNo)
        await judge.aclose()


class TestKeys:
    """Where a key goes, and where it does not."""

    def sent(self, **options: Any) -> Received:
        with JudgeServer() as server:
            ask(server, **options)
        return server.received[0]

    def test_a_key_in_the_environment_is_not_sent_elsewhere(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
        monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
        monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-secret")
        monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway: gateway-secret")
        assert "secret" not in str(self.sent().headers)

    def test_a_key_that_was_given_is(self) -> None:
        assert self.sent(api_key="sk-given").headers["authorization"] == "Bearer sk-given"

    async def test_judges_of_one_server_send_each_its_own_key(self) -> None:
        with JudgeServer() as server:
            judges = [ChatJudge("m", base_url=server.url, api_key=key) for key in ("sk-one", "sk-other")]
            for judge in judges:
                await judge.answer(ONE)
            for judge in judges:
                await judge.aclose()
        sent = [received.headers["authorization"] for received in server.received]
        assert sent == ["Bearer sk-one", "Bearer sk-other"]

    def test_the_environment_as_a_whole_names_a_server(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with JudgeServer() as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
            answered(ChatJudge("m"), ONE)
        assert server.received[0].headers["authorization"] == "Bearer sk-env"

    def test_no_key_is_found_out_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
        with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
            ChatJudge("m")

    def test_no_secret_in_words(self) -> None:
        judge = ChatJudge("m", base_url="http://127.0.0.1:9/v1", api_key="sk-secret")
        assert "secret" not in f"{judge!r} {judge.name} {judge.__dict__!r}"
        with pytest.raises(JudgeUnavailable) as caught:
            answered(judge, ONE)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"base_url": "localhost:8000"},
        {"model": " "},
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        ChatJudge(**{"model": "m", "base_url": "http://127.0.0.1:9", **options})


def test_one_judge_in_many_threads_at_once() -> None:
    def work(judge: ChatJudge) -> list[Reply]:
        return [reply for _ in range(3) for reply in closing(judge, crowd(judge, 5))]

    with JudgeServer() as server, ThreadPoolExecutor(8) as threads:
        judge = ChatJudge("m", base_url=server.url, concurrency=2)
        replies = [reply for found in threads.map(work, [judge] * 8) for reply in found]
    assert len(replies) == 120
    assert all(isinstance(reply.answers["q1"], YesNo) for reply in replies)


def test_reasoning_at_length_comes_first_and_is_nobodys_answer() -> None:
    def think(got: Received) -> Any:
        assert got.schema is not None
        assert next(iter(got.schema["properties"])) == "thoughts"
        return {"thoughts": "Long. " * 50, "q1": {"reason": "so", "context": 1, "verdict": True}}

    with JudgeServer(think) as server:
        reply = ask(server, reasoning="long")
        (prompt,) = server.prompts
    assert reply.answers == {"q1": YesNo(value=True, reason="so", evidence=(Evidence(context=0),))}
    assert "15 words" not in prompt
    assert ChatJudge("m", base_url=server.url, reasoning="long").prompt_version.endswith("-long")


def test_contradicting_wishes_for_reasoning_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="contradict"):
        ChatJudge("m", base_url="http://127.0.0.1:1/v1", reasons=False, reasoning="long")
    with pytest.raises(ConfigurationError, match="'none', 'short', 'long'"):
        ChatJudge("m", base_url="http://127.0.0.1:1/v1", reasoning="deep")  # type: ignore[arg-type]


def test_a_server_that_takes_no_lengths_of_lists_gets_none() -> None:
    wish = Request(view=VIEW, questions={"q1": GeneratedQuestions()})
    with JudgeServer() as server:
        server.refuse = lambda body: "minItems is not supported" if "minItems" in str(body) else None
        reply = ask(server, wish)
        last = server.received[-1]
    assert isinstance(reply.answers["q1"], Texts)
    assert last.body["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize(
    ("question", "answer", "written"),
    [
        ("Wann wurde die Mühle gebaut?", "Sie wurde 1742 gebaut.", "Wann entstand die Mühle?"),
        ("茶厂建于哪一年？", "茶厂建于1956年。", "茶厂是什么时候建立的？"),
        ("متى تأسست المدرسة؟", "تأسست المدرسة عام 1948.", "في أي عام تأسست المدرسة؟"),
    ],
)
def test_the_language_of_the_material_is_asked_for_and_kept(question: str, answer: str, written: str) -> None:
    view = View(question=question, answer=answer)
    asked: dict[str, Question] = {"q1": Claims(), "q2": GeneratedQuestions(count=1)}

    def think(got: Received) -> Any:
        assert "in its language" in got.text
        assert "in the language of the answer" in got.text
        assert question in got.text
        assert answer in got.text
        return {"q1": {"claims": [answer]}, "q2": {"questions": [written]}}

    with JudgeServer(think) as server:
        reply = ask(server, Request(view=view, questions=asked))
    assert reply.answers == {"q1": Texts(items=(answer,)), "q2": Texts(items=(written,))}


def test_the_second_rating_sees_the_material_in_reverse_order() -> None:
    usual, swapped = (replace(RATING, needs=NEEDS | {"question"}, swapped=flag) for flag in (False, True))
    with JudgeServer() as server:
        for asked in ([usual], [swapped], [usual, swapped]):
            ask(server, Request(view=VIEW, questions={f"q{n}": rating for n, rating in enumerate(asked)}))
        prompts = server.prompts
    heads = [re.findall(r"(?m)^(?:<<<)?\w+ (context c\d|question|answer)$", text) for text in prompts]
    assert heads[0] == ["context c1", "context c2", "question", "answer"]
    assert heads[1] == ["answer", "question", "context c1", "context c2"]
    # Where both are asked together there is one order, and it is the usual one.
    assert heads[2] == heads[0]


_FORGETFUL = """
import asyncio, sys
from steelyard.judge import ChatJudge
from steelyard.questions import Request, Supported, View
from steelyard.record import Context
judge = ChatJudge("m", base_url=sys.argv[1])
asked = Request(view=View(contexts=(Context(text="c"),)), questions={"q1": Supported(claim="c")})
for _ in range(2):
    print(asyncio.run(judge.answer(asked)).answers["q1"].value)
"""


def test_a_judge_that_is_not_closed_says_nothing_at_the_end() -> None:
    with JudgeServer() as server:
        command = [sys.executable, "-c", _FORGETFUL, server.url]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert (ended.stdout.split(), ended.stderr) == (["True", "True"], "")
