"""LangChain models as judge and embedder, in the engine and in a Monitor."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_parts import PARIS, QUESTION, Receiver, lcel, says

from steelyard.errors import ConfigurationError, JudgeError
from steelyard.metrics import Faithfulness
from steelyard.online import Monitor
from steelyard.questions import Claims, Request, Supported, Texts, View, YesNo
from steelyard.record import Context, Record
from steelyard.testing import MemorySink
from steelyard_langchain import LangChainEmbedder, LangChainJudge, attach

RECORD = Record(
    question=QUESTION,
    answer="Paris is the capital of France. It lies on the Seine.",
    contexts=(Context(text=PARIS.page_content),),
)
CLAIMS = {"claims": ["Paris is the capital of France.", "Paris lies on the Seine."]}


def judging(messages: list[Any]) -> AIMessage:
    """A model that knows only what the first context says."""
    asked = messages[-1].content
    keys = re.findall(r"^([qs]\d+): ", asked, re.MULTILINE)
    if "List the factual claims" in asked:
        answers: dict[str, Any] = dict.fromkeys(keys, CLAIMS)
    else:
        answers = {
            key: {"reason": "as read", "context": 0, "verdict": "capital" in line}
            for key, line in re.findall(r"^([qs]\d+): (.*)$", asked, re.MULTILINE)
        }
    usage = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}
    return AIMessage(f"```json\n{json.dumps(answers)}\n```", usage_metadata=usage)


def request(**questions: Any) -> Request:
    view = View(question=QUESTION, contexts=RECORD.contexts, answer=RECORD.answer)
    return Request(view=view, questions=questions)


def test_a_metric_is_scored() -> None:
    judge = LangChainJudge(RunnableLambda(judging))
    score = asyncio.run(Faithfulness(claims="extracted").score(RECORD, judge=judge))
    assert (score.status, score.value) == ("scored", 0.5)
    assert score.provenance is not None
    assert score.provenance.judge == "langchain:RunnableLambda"


def test_tokens_are_counted() -> None:
    reply = asyncio.run(LangChainJudge(RunnableLambda(judging)).answer(request(q1=Claims())))
    assert reply.answers == {"q1": Texts(items=tuple(CLAIMS["claims"]))}
    assert (reply.usage.requests, reply.usage.prompt_tokens, reply.usage.completion_tokens) == (1, 100, 20)


def test_nonsense_is_named() -> None:
    judge = LangChainJudge(says("I would rather not say."))
    reply = asyncio.run(judge.answer(request(q1=Supported(claim="Paris is big."))))
    assert getattr(reply.answers["q1"], "cause", None) == "malformed_reply"


class Refused(Exception):
    """What providers' errors have in common."""

    def __init__(self, status_code: int) -> None:
        super().__init__(f"status {status_code}")
        self.status_code = status_code


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (Refused(401), "unauthorized"),
        (Refused(404), "unknown_model"),
        (Refused(429), "rate_limited"),
        (Refused(503), "server_error"),
        (ConnectionError("no route"), "unreachable"),
    ],
)
def test_failures_are_named(error: Exception, cause: str) -> None:
    judge = LangChainJudge(says(error))
    with pytest.raises(JudgeError) as caught:
        asyncio.run(judge.answer(request(q1=Claims())))
    assert caught.value.cause == cause


def test_a_slow_model_times_out() -> None:
    async def sleep(_: Any) -> str:
        await asyncio.sleep(30)
        return "{}"

    judge = LangChainJudge(RunnableLambda(lambda _: "{}", afunc=sleep), timeout=0.02)
    with pytest.raises(JudgeError, match=r"within 0\.02 s"):
        asyncio.run(judge.answer(request(q1=Claims())))


def test_a_verdict_carries_its_reason() -> None:
    reply = asyncio.run(
        LangChainJudge(RunnableLambda(judging)).answer(request(q1=Supported(claim="Paris is the capital.")))
    )
    assert reply.answers == {"q1": YesNo(value=True, reason="as read")}


def test_embedder() -> None:
    embedder = LangChainEmbedder(DeterministicFakeEmbedding(size=4), name="fake")
    vectors, usage = asyncio.run(embedder.embed(["one", "two"]))
    assert [len(vector) for vector in vectors] == [4, 4]
    assert usage.requests == 1
    assert embedder.name == "fake"


def test_wrong_objects_fail_at_once() -> None:
    with pytest.raises(ConfigurationError, match="not a chat model"):
        LangChainJudge("gpt-4o")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="aembed_documents"):
        LangChainEmbedder(object())  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="timeout"):
        LangChainJudge(says("x"), timeout=0)


def test_the_judges_own_calls_are_not_recorded() -> None:
    """With everything recorded, a judge that is itself a chain must not be judged in turn."""
    sink = MemorySink()
    judge = LangChainJudge(RunnableLambda(judging) | RunnableLambda(lambda message: message))
    monitor = Monitor(metrics=[Faithfulness(claims="extracted")], judge=judge, sinks=[sink])
    seen = Receiver()
    attach(seen)
    lcel(says(RECORD.answer)).invoke(QUESTION)
    (draft,) = seen.drafts
    attach(monitor)
    monitor.submit(draft)
    assert monitor.flush(60) == 0
    monitor.close()
    assert monitor.stats().seen == 1
    (evaluation,) = sink.evaluations
    assert [score.value for score in evaluation.scores] == [0.5]
