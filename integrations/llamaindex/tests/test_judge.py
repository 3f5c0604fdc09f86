"""LlamaIndex models as judge and embedder, in the engine and in a Monitor."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core import MockEmbedding
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata, MessageRole
from llamaindex_parts import ANSWER, PARIS, QUESTION, Caller, Fixed, Receiver, Scripted, engine

from steelyard.errors import ConfigurationError, JudgeError
from steelyard.metrics import AnswerRelevancy, Faithfulness
from steelyard.online import Monitor
from steelyard.questions import Claims, Request, Supported, Texts, View, YesNo
from steelyard.record import Context, Record
from steelyard.testing import MemorySink
from steelyard_llamaindex import LlamaIndexEmbedder, LlamaIndexJudge, instrument, uninstrument

RECORD = Record(
    question=QUESTION,
    answer="Paris is the capital of France. It lies on the Seine.",
    contexts=(Context(text=PARIS),),
)
CLAIMS = {"claims": ["Paris is the capital of France.", "Paris lies on the Seine."]}


def judging(prompt: str) -> str:
    """A model that knows only what the first context says."""
    lines = re.findall(r"^([qs]\d+): (.*)$", prompt, re.MULTILINE)
    if "List the factual claims" in prompt:
        answers: dict[str, Any] = {key: CLAIMS for key, _ in lines}
    else:
        answers = {
            key: {"reason": "as read", "context": 0, "verdict": "capital" in line} for key, line in lines
        }
    return f"```json\n{json.dumps(answers)}\n```"


class Chats(Caller):
    """A chat model with counts beside its reply."""

    raw: Any = None

    def replies(self, messages: Any) -> ChatResponse:
        asked = "\n".join(message.content for message in messages)
        message = ChatMessage(role=MessageRole.ASSISTANT, content=judging(asked))
        beside = {} if self.raw else {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        return ChatResponse(message=message, additional_kwargs=beside, raw=self.raw)


def request(**questions: Any) -> Request:
    view = View(question=QUESTION, contexts=RECORD.contexts, answer=RECORD.answer)
    return Request(view=view, questions=questions)


@pytest.mark.parametrize("llm", [Scripted(say=judging), Chats(script=[])], ids=["completion", "chat"])
def test_a_metric_is_scored(llm: Any) -> None:
    judge = LlamaIndexJudge(llm)
    score = asyncio.run(Faithfulness(claims="extracted").score(RECORD, judge=judge))
    assert (score.status, score.value) == ("scored", 0.5)
    assert score.provenance is not None
    assert score.provenance.judge == f"llamaindex:{type(llm).__name__}"


def test_a_judge_has_the_name_of_its_model() -> None:
    class Named(Scripted):
        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata(model_name="tiny-1")

    assert LlamaIndexJudge(Named()).name == "llamaindex:tiny-1"


@pytest.mark.parametrize("raw", [None, {"usage": {"prompt_tokens": 100, "completion_tokens": 20}}])
def test_tokens_are_counted(raw: Any) -> None:
    reply = asyncio.run(LlamaIndexJudge(Chats(script=[], raw=raw)).answer(request(q1=Claims())))
    assert reply.answers == {"q1": Texts(items=tuple(CLAIMS["claims"]))}
    assert (reply.usage.requests, reply.usage.prompt_tokens, reply.usage.completion_tokens) == (1, 100, 20)


def test_a_verdict_carries_its_reason() -> None:
    asked = request(q1=Supported(claim="Paris is the capital."))
    reply = asyncio.run(LlamaIndexJudge(Scripted(say=judging)).answer(asked))
    assert reply.answers == {"q1": YesNo(value=True, reason="as read")}


class CallsTool(Caller):
    """A chat model that says nothing."""

    def replies(self, messages: Any) -> ChatResponse:
        return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=None))


@pytest.mark.parametrize("llm", [Scripted(say=lambda _: "I would rather not say."), CallsTool(script=[])])
def test_nonsense_is_named(llm: Any) -> None:
    judge = LlamaIndexJudge(llm)
    reply = asyncio.run(judge.answer(request(q1=Supported(claim="Paris is big."))))
    assert getattr(reply.answers["q1"], "cause", None) == "malformed_reply"


class Refused(Exception):
    """What providers' errors have in common."""

    status_code = 429


@pytest.mark.parametrize(
    ("error", "cause"), [(Refused(), "rate_limited"), (ConnectionError("no route"), "unreachable")]
)
def test_failures_are_named(error: Exception, cause: str) -> None:
    def fail(prompt: str) -> str:
        raise error

    with pytest.raises(JudgeError) as caught:
        asyncio.run(LlamaIndexJudge(Scripted(say=fail)).answer(request(q1=Claims())))
    assert caught.value.cause == cause


def test_a_slow_model_times_out() -> None:
    class Slow(Chats):
        async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
            await asyncio.sleep(30)
            raise AssertionError

    judge = LlamaIndexJudge(Slow(script=[]), timeout=0.02)
    with pytest.raises(JudgeError, match=r"within 0\.02 s"):
        asyncio.run(judge.answer(request(q1=Claims())))


def test_room_follows_the_context_window() -> None:
    assert LlamaIndexJudge(Scripted()).capabilities.max_characters == 18_000
    assert LlamaIndexJudge(Scripted(), max_characters=5_000).capabilities.max_characters == 5_000


def test_embedder() -> None:
    embedder = LlamaIndexEmbedder(MockEmbedding(4))
    vectors, usage = asyncio.run(embedder.embed(["one", "two"]))
    assert [len(vector) for vector in vectors] == [4, 4]
    assert usage.requests == 1
    assert embedder.name == "llamaindex:MockEmbedding"


def test_not_a_model() -> None:
    nothing: Any = object()
    with pytest.raises(ConfigurationError, match="achat"):
        LlamaIndexJudge(nothing)
    with pytest.raises(ConfigurationError, match="aget_text_embedding_batch"):
        LlamaIndexEmbedder(nothing)


def test_judging_is_not_recorded(receiver: Receiver) -> None:
    """Even a judge that retrieves: its query would be a turn like any other."""
    lookup = engine()

    def looks_up(prompt: str) -> str:
        lookup.query("what the judge wants to know")
        return judging(prompt)

    asyncio.run(LlamaIndexJudge(Scripted(say=looks_up)).answer(request(q1=Claims())))
    assert receiver.drafts == []
    lookup.query(QUESTION)
    assert len(receiver.drafts) == 1


def test_turns_are_judged_with_the_application_s_own_models() -> None:
    sink = MemorySink()
    monitor = Monitor(
        metrics=[Faithfulness(claims="extracted"), AnswerRelevancy()],
        judge=LlamaIndexJudge(Chats(script=[])),
        embedder=LlamaIndexEmbedder(MockEmbedding(4)),
        sinks=[sink],
    )
    instrument(monitor)
    try:
        engine("d1").query(QUESTION)
        with pytest.raises(ConnectionError):
            engine("d1", retriever=Fixed(error=ConnectionError("down"))).query("fails?")
    finally:
        uninstrument()
    assert monitor.flush(timeout=60) == 0
    stats = monitor.stats()
    monitor.close()
    (evaluation,) = sink.evaluations
    (faithfulness,) = [score for score in evaluation.scores if score.metric == "faithfulness"]
    assert faithfulness.value == 0.5
    assert evaluation.record is None or evaluation.record.answer == ANSWER
    assert stats.seen == 2
