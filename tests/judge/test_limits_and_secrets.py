"""What a server may send, and what its address, keys and words may reach."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import logging
import time
import tracemalloc
from dataclasses import replace
from typing import Any

import aiohttp  # noqa: F401 - under tracemalloc this would take half a minute
import pytest

from judge.asked import answered, closing
from judge_server import Fault, JudgeServer
from steelyard import evaluate
from steelyard.errors import ConfigurationError, JudgeError, MalformedReply
from steelyard.judge import ChatJudge, DecisionsJudge, OpenAIEmbedder
from steelyard.judge.chat import ModelJudge
from steelyard.judge.chat._parse import answers_in
from steelyard.metrics import Faithfulness
from steelyard.questions import Judge, Reply, Request, Supported, Unanswered, View, YesNo
from steelyard.record import Context, Record
from steelyard.scores import Usage
from steelyard.testing import ScriptedJudge

KEY = "k93f1-tell-nobody"
ASKED = Request(view=View(contexts=(Context(text="c"),)), questions={"q1": Supported(claim="c")})
TWO = {"q1": Supported(claim="c"), "q2": Supported(claim="d")}
REPLY: dict[str, Any] = {"choices": [{"message": {"content": '{"q1": {"context": 1, "verdict": true}}'}}]}


def ask(judge: Judge, request: Request = ASKED) -> Reply:
    return answered(judge, request)


@pytest.mark.parametrize("status", [200, 400, 500])
def test_a_reply_is_read_up_to_a_limit(status: int) -> None:
    body = b" " * 40_000_000
    with JudgeServer() as server:
        server.faults.append(Fault(status=status, raw=body))
        tracemalloc.start()
        try:
            with pytest.raises(MalformedReply, match="more than 8 MB"):
                ask(ChatJudge("m", base_url=server.url, retries=0, timeout=150))
            # The server stands in this process as well, with a copy of what it sends.
            assert tracemalloc.get_traced_memory()[1] < 2 * len(body) + 80_000_000
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("packing", ["gzip", "br"])
def test_a_packed_reply_is_refused(packing: str) -> None:
    with JudgeServer() as server:
        raw = gzip.compress(b" " * 200_000_000)
        server.faults.append(Fault(raw=raw, headers={"content-encoding": packing}))
        with pytest.raises(MalformedReply, match=f"packed as '{packing}', which was not asked for"):
            ask(ChatJudge("m", base_url=server.url))
        (got,) = server.received
    assert got.headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b'{"choices": [' + b"[]," * 2_500_000 + b"[]]}", "lists and objects"),
        (b'{"answers": [' + b"{}," * 2_500_000 + b"{}]}", "lists and objects"),
        (b"{" + b",".join(b'"%x":1' % number for number in range(700_000)) + b"}", "300,000 keys"),
    ],
    ids=["lists", "objects", "keys"],
)
def test_a_reply_of_millions_of_parts_is_not_made_into_objects(raw: bytes, said: str) -> None:
    with JudgeServer() as server:
        server.faults.append(Fault(raw=raw))
        tracemalloc.start()
        try:
            with pytest.raises(MalformedReply, match=said):
                ask(ChatJudge("m", base_url=server.url, retries=0, timeout=150))
            # Its objects alone would take 140 MB.
            assert tracemalloc.get_traced_memory()[1] < 5 * len(raw)
        finally:
            tracemalloc.stop()


def test_a_text_longer_than_any_reply_is_not_read() -> None:
    text = '{"q1": {"context": 1, "verdict": true}, "reason": "' + "x" * 400_000 + '"}'
    with JudgeServer() as server:
        server.faults.append(Fault(raw=json.dumps({"choices": [{"message": {"content": text}}]}).encode()))
        answer = ask(ChatJudge("m", base_url=server.url, retries=0)).answers["q1"]
    assert isinstance(answer, Unanswered) and answer.cause == "malformed_reply"


def test_a_reply_of_very_many_escaped_characters_is_not_read() -> None:
    content = "a\n" * 500_000
    with JudgeServer() as server:
        server.faults.append(Fault(raw=json.dumps({"choices": [{"message": {"content": content}}]}).encode()))
        with pytest.raises(MalformedReply, match="escaped characters"):
            ask(ChatJudge("m", base_url=server.url, retries=0))


def test_thousands_of_keys_are_not_looked_for_in_a_large_material() -> None:
    contexts = tuple(Context(text="the river city " * 3_300, id=str(number)) for number in range(20))
    request = Request(view=View(contexts=contexts), questions={"q": Supported(claim="It is old.")})
    others = ", ".join(f'"other {number}": true' for number in range(3_000))
    began = time.thread_time()
    answers, _ = answers_in(f'{{"q": {{"context": 1, "verdict": true}}, {others}}}', request)
    assert time.thread_time() - began < 2
    assert isinstance(answers["q"], YesNo)


ODD_COUNTS = [10**400, float("inf"), -(10**400), "1", [1], True, 2**70]


@pytest.mark.parametrize("odd", ODD_COUNTS, ids=range(len(ODD_COUNTS)))
def test_odd_counts_of_tokens_cost_no_verdict(odd: object) -> None:
    usage = {"prompt_tokens": odd, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": odd}}
    with JudgeServer() as server:
        server.faults.append(Fault(raw=json.dumps(REPLY | {"usage": usage}).encode()))
        reply = ask(ChatJudge("m", base_url=server.url, retries=0))
    answer = reply.answers["q1"]
    assert isinstance(answer, YesNo) and answer.value
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (0, 7)


@pytest.mark.parametrize(
    "token",
    [
        {"logprob": -(10**400)},
        {"top_logprobs": 5},
        {"top_logprobs": ["true", None, 7]},
        {"top_logprobs": [{"token": [], "logprob": -(10**400)}, {"logprob": "x"}]},
        {"bytes": [300]},
    ],
)
def test_odd_log_probabilities_cost_no_verdict(token: dict[str, object]) -> None:
    text = REPLY["choices"][0]["message"]["content"]
    tokens = [{"token": piece, "logprob": -0.1} | token for piece in (text[:-6], "true", "}}")]
    assert "".join(str(token["token"]) for token in tokens) == text
    choice = {"message": {"content": text}, "logprobs": {"content": tokens}}
    with JudgeServer() as server:
        server.faults.append(Fault(raw=json.dumps({"choices": [choice]}).encode()))
        answer = ask(ChatJudge("m", base_url=server.url, retries=0, logprobs=True)).answers["q1"]
    assert isinstance(answer, YesNo) and answer.value


@pytest.mark.parametrize(
    "odd",
    [
        {"name": ["q1"], "type": "predicate", "probability": 1},
        {"name": "q2", "type": "predicate", "probability": 10**400},
        {"name": {"a": 1}, "type": ["x" * 1000]},
        {"name": "q2", "type": "x" * 1000},
    ],
    ids=range(4),
)
def test_an_odd_decision_takes_no_other_along(odd: dict[str, object]) -> None:
    answers = [{"name": "q1", "type": "predicate", "probability": 0.9}, odd, {"name": "q3"}]
    with JudgeServer() as server:
        server.faults.append(Fault(raw=json.dumps({"answers": answers}).encode()))
        reply = ask(DecisionsJudge("m", base_url=server.url, retries=0), replace(ASKED, questions=TWO))
    assert reply.answers["q1"] == YesNo(value=True, probability=0.9)
    assert all(isinstance(answer, Unanswered) for key, answer in reply.answers.items() if key != "q1")
    assert len(repr(reply)) < 2000


def test_vectors_are_read_up_to_a_limit() -> None:
    with JudgeServer() as server:
        server.faults.append(Fault(raw=b" " * 20_000_000))
        with pytest.raises(MalformedReply, match="more than 16 MB"):
            closing(embedder := OpenAIEmbedder(base_url=server.url, retries=0), embedder.embed(["a"]))


def test_a_redirect_gets_neither_key_nor_content() -> None:
    with JudgeServer() as elsewhere, JudgeServer() as server:
        server.faults.append(Fault(status=307, headers={"location": f"{elsewhere.url}/chat/completions"}))
        with pytest.raises(JudgeError) as caught:
            ask(ChatJudge("m", base_url=server.url, api_key=KEY))
        assert caught.value.cause == "redirected"
        assert elsewhere.received == []


PROXIES = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")


@pytest.mark.parametrize("name", PROXIES)
def test_what_stays_on_this_machine_goes_through_no_proxy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for other in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(other, raising=False)
    with JudgeServer() as server, JudgeServer() as proxy:
        monkeypatch.setenv(name, proxy.url.removesuffix("/v1"))
        ask(ChatJudge("m", base_url=server.url, api_key=KEY))
        assert server.received and proxy.received == []


def test_a_proxy_that_can_read_the_key_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for other in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(other, raising=False)
    with JudgeServer() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        with caplog.at_level(logging.WARNING, "steelyard"), contextlib.suppress(JudgeError):
            ask(ChatJudge("m", base_url="http://judge.example/v1", api_key=KEY))
    [said] = [line for line in caplog.messages if "proxy" in line]
    assert "http://judge.example/v1" in said and "HTTP_PROXY" in said and KEY not in caplog.text


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=401, message=f"Incorrect API key provided: {KEY}"),
        Fault(status=500, message=f"cannot serve http://u:{KEY}@host/?api_key={KEY}"),
        Fault(drop=True),
        Fault(raw=f"<html>{KEY}</html>".encode()),
        Fault(status=404, message=KEY),
    ],
)
@pytest.mark.parametrize("where", ["given", "password", "query"])
@pytest.mark.parametrize("kind", [ChatJudge, DecisionsJudge])
def test_keys_and_passwords_reach_no_message(
    kind: type[ChatJudge | DecisionsJudge], where: str, fault: Fault
) -> None:
    with JudgeServer() as server:
        address = server.url.replace("://", f"://user:{KEY}@") if where == "password" else server.url
        address += f"?api_key={KEY}" if where == "query" else ""
        server.faults.append(fault)
        judge = kind("m", base_url=address, api_key=KEY if where == "given" else "another", retries=0)
        with pytest.raises(JudgeError) as caught:
            ask(judge)
    for shown in (str(caught.value), repr(caught.value), repr(judge), judge.name):
        assert KEY not in shown
    assert "127.0.0.1" in repr(judge)
    assert KEY not in repr(OpenAIEmbedder(base_url=address, api_key=KEY))


@pytest.mark.parametrize("kind", [ChatJudge, DecisionsJudge])
def test_the_query_of_an_address_is_sent_and_never_logged(
    kind: type[ChatJudge | DecisionsJudge], caplog: pytest.LogCaptureFixture
) -> None:
    with JudgeServer() as server, caplog.at_level(logging.DEBUG):
        address = server.url.replace("://", f"://user:{KEY}-word@")
        ask(kind("m", base_url=f"{address}?api_key={KEY}&version=2%202", retries=0))
        paths = [received.path for received in server.received]
    assert paths
    assert all(path.endswith(f"?api_key={KEY}&version=2%202") for path in paths)
    assert KEY not in caplog.text


def test_a_wrong_address_is_refused_without_its_password() -> None:
    with pytest.raises(ConfigurationError) as caught:
        ChatJudge("m", base_url=f"ftp://u:{KEY}@host/v1?key={KEY}")
    assert KEY not in str(caught.value)


class Leaking(ModelJudge):
    """A judge of a framework whose errors quote everything."""

    def __init__(self, error: Exception) -> None:
        super().__init__(
            name="leaking", timeout=5, concurrency=1, reasons=False, max_questions=9, max_characters=9_000
        )
        self.error = error

    async def complete(self, system: str, user: str) -> tuple[str, Usage]:
        raise self.error


class Status(Exception):
    status_code = 401


@pytest.mark.parametrize(
    "error", [ValueError(f"{KEY} and the prompt"), Status(f"https://u:{KEY}@host says no, api_key={KEY}")]
)
def test_an_error_of_another_framework_is_shown_without_its_secrets(error: Exception) -> None:
    with pytest.raises(JudgeError) as caught:
        ask(Leaking(error))
    assert KEY not in str(caught.value)
    assert "leaking" in str(caught.value)


def test_a_deadline_is_of_judging_alone_and_not_of_waiting_for_a_place() -> None:
    class Slow(ScriptedJudge):
        async def answer(self, request: Request) -> Reply:
            await asyncio.sleep(0.4)
            return await super().answer(request)

    judge = Slow(lambda question, request: YesNo(value=True))
    turns = [Record(id=f"{n}", answer="It is so.", contexts=(Context(text="So."),)) for n in range(6)]
    made = evaluate(
        turns,
        metrics=[Faithfulness(claims="whole")],
        judge=judge,
        concurrency=1,
        deadline=1.0,
        progress=False,
    )
    assert [one.scores[0].status for one in made] == ["scored"] * 6
