"""A client of the openai package that was brought along: the same requests, answers and names of errors."""

from __future__ import annotations

import asyncio
import json
from functools import partial

import openai
import pytest

from judge.asked import closing
from judge_server import Fault, JudgeServer
from steelyard.errors import JudgeError
from steelyard.judge import ChatJudge, DecisionsJudge
from steelyard.judge.dry_run import DryRunJudge
from steelyard.metrics import Faithfulness
from steelyard.questions import Reply, Request, Supported, View, YesNo
from steelyard.record import Context, Record

KEY = "k93f1-tell-nobody"
ASKED = Request(view=View(contexts=(Context(text="c"),)), questions={"q1": Supported(claim="c")})
Kind = type[ChatJudge | DecisionsJudge]


def ask(url: str, kind: Kind, *, own: bool, timeout: float = 60) -> Reply:
    async def main() -> Reply:
        if own:
            judge = kind("m", base_url=url, api_key=KEY, retries=0, timeout=timeout)
        else:
            client = openai.AsyncOpenAI(base_url=url, api_key=KEY, max_retries=0)
            judge = kind("m", client=client, retries=0, timeout=timeout)
        try:
            return await judge.answer(ASKED)
        finally:
            await judge.aclose()
            if not own:
                assert not client.is_closed()
                await client.close()

    return asyncio.run(main())


@pytest.mark.parametrize("kind", [ChatJudge, DecisionsJudge])
def test_it_sends_what_our_own_client_sends(kind: Kind) -> None:
    with JudgeServer() as server:
        answers = [ask(server.url, kind, own=own).answers["q1"] for own in (True, False)]
        ours, theirs = server.received
    assert all(isinstance(answer, YesNo) and answer.value for answer in answers)
    assert (ours.path, ours.body.keys()) == (theirs.path, theirs.body.keys())
    for name in ("authorization", "content-type", "accept"):
        assert ours.headers[name] == theirs.headers[name]


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=400, message="max_tokens is too large", code="bad"),
        Fault(status=401, message=f"no such key: {KEY}"),
        Fault(status=429, code="insufficient_quota"),
        Fault(status=429, headers={"retry-after": "77"}),
        Fault(status=503, raw=b"<html>busy</html>"),
        Fault(drop=True),
        Fault(raw=b"prose"),
        Fault(hang=30),
    ],
    ids=["bad", "key", "quota", "wait", "page", "dropped", "prose", "hangs"],
)
@pytest.mark.parametrize("kind", [ChatJudge, DecisionsJudge])
def test_what_goes_wrong_has_the_same_name(kind: Kind, fault: Fault) -> None:
    errors = []
    for own in (True, False):
        with JudgeServer() as server:
            # A chat judge sends a bad request again in other forms.
            server.faults += [fault] * 9
            with pytest.raises(JudgeError) as caught:
                ask(server.url, kind, own=own, timeout=1 if fault.hang else 60)
        errors.append(caught.value)
        assert KEY not in str(caught.value)
    ours, theirs = errors
    assert (ours.cause, ours.retry_after, ours.requests) == (
        theirs.cause,
        theirs.retry_after,
        theirs.requests,
    )
    if fault.status != 200:
        assert str(ours).partition("replied")[2] == str(theirs).partition("replied")[2]


URL = "http://127.0.0.1:9/v1"


def test_a_dry_run_counts_what_a_server_is_sent_with_its_schema() -> None:
    metric, context = Faithfulness(claims="sentences"), Context(text="Ada lit it.")
    record = Record(question="Who lit it?", answer="Ada lit it. She was tall.", contexts=(context,))
    with JudgeServer() as server:
        judge = ChatJudge("m", base_url=server.url)
        closing(judge, metric.score(record, judge=judge))
    dry_run = DryRunJudge(partial(ChatJudge, "m"))
    asyncio.run(metric.score(record, judge=dry_run))
    sent = 0
    for one in server.received:
        written = sum(len(message["content"]) for message in one.body["messages"])
        sent += -(-(written + len(json.dumps(one.schema, separators=(",", ":")))) // 4)
    assert dry_run.usage["m"].prompt_tokens == sent > 0
    assert dry_run.usage["m"].requests == len(server.received)
