from __future__ import annotations

import asyncio
import sys

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.tools import QueryEngineTool
from llama_index_instrumentation.dispatcher import instrument_tags
from llamaindex_parts import ANSWER, PARIS, QUESTION, Caller, Receiver, engine
from opentelemetry.sdk.trace import TracerProvider


def test_tags_reach_the_record(receiver: Receiver) -> None:
    given = {
        "reference": ANSWER,
        "reference_contexts": [PARIS],
        "tags": ["beta", "eu"],
        "user": "u1",
        "llamaindex.internal": "x",
    }
    with instrument_tags(given):
        engine().query(QUESTION)
    engine().query("without?")
    record, plain = receiver.records
    assert record.reference == ANSWER
    assert [context.text for context in record.reference_contexts] == [PARIS]
    assert record.tags == ("beta", "eu")
    assert record.metadata == {"user": "u1"}
    assert (plain.reference, plain.tags, plain.metadata) == (None, (), {})


def test_tags_reach_an_agent_s_record(receiver: Receiver) -> None:
    async def main() -> None:
        tool = QueryEngineTool.from_defaults(engine(), name="docs", description="docs")
        agent = FunctionAgent(tools=[tool], llm=Caller(script=[("docs", {"input": "capital"}), ANSWER]))
        with instrument_tags({"user": "u1", "reference": ANSWER}):
            await agent.run(user_msg=QUESTION)

    asyncio.run(main())
    assert receiver.record.reference == ANSWER
    assert receiver.record.metadata == {"user": "u1"}


def test_the_current_span_is_the_turn_s_trace(receiver: Receiver) -> None:
    assert "opentelemetry.trace" in sys.modules
    tracer = TracerProvider().get_tracer("test")
    with tracer.start_as_current_span("request") as span:
        engine().query(QUESTION)
    asyncio.run(engine().aquery("no span?"))
    record, other = receiver.records
    assert record.trace is not None
    assert record.trace.trace_id == f"{span.get_span_context().trace_id:032x}"
    assert record.trace.span_id == f"{span.get_span_context().span_id:016x}"
    assert record.trace.run_id == record.id
    assert receiver.drafts[0].trace == record.trace
    assert receiver.drafts[0].id == record.id
    assert other.trace is not None
    assert other.trace.trace_id is None
