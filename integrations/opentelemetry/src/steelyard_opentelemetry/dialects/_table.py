"""The table of dialects: how instrumentors write LLM work on spans, a row for each.

Rows of conventions that many instrumentors share are in `_conventions.py`, those of frameworks here. A row is
data: it names attributes by what they mean, and the functions that know a shape (`_shapes.py`).
"""

from __future__ import annotations

import re
from typing import Any

from steelyard.record import Context
from steelyard_opentelemetry.dialects import _frameworks, _shapes
from steelyard_opentelemetry.dialects._conventions import (
    GENAI,
    LANGSMITH,
    OPENINFERENCE,
    OPENLLMETRY,
    OPERATION,
    STEELYARD,
)
from steelyard_opentelemetry.dialects._rules import Dialect, SpanRule

_CURRENT = ("gen_ai.input.messages", "gen_ai.output.messages")
_CREWAI = Dialect(name="crewai", read=_frameworks.crew, scopes=_frameworks.CREW_SCOPES)

_REPLY: dict[str, Any] = {
    "said": ("ai.response.text", "ai.result.text"),
    "came": ("ai.response.object", "ai.result.object"),
}

_CALLS = ("ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject")
_STEPS = (
    *("ai.generateText.doGenerate", "ai.streamText.doStream"),
    *("ai.generateObject.doGenerate", "ai.streamObject.doStream"),
)

_VERCEL = Dialect(
    name="vercel",
    scope_names=("ai",),
    rules=(
        SpanRule(
            kind="chain",
            where={"ai.operationId": _CALLS},
            given=("ai.prompt",),
            **_REPLY,
        ),
        SpanRule(
            kind="llm",
            where={"ai.operationId": _STEPS},
            given=("ai.prompt.messages",),
            **_REPLY,
            unless=("ai.response.toolCalls",),
        ),
        SpanRule(
            kind="tool",
            where={"ai.operationId": ("ai.toolCall",)},
            tool="ai.toolCall.name",
            given=("ai.toolCall.args",),
            came=("ai.toolCall.result",),
            load=_shapes.json_value,
        ),
        SpanRule(
            kind="rerank",
            where={"ai.operationId": ("ai.rerank.doRerank",)},
            given=("ai.documents",),
            came=("ai.ranking",),
            question=_shapes.nothing,
            documents=_shapes.by_ranking,
        ),
    ),
)

_MICROMETER = ("org.springframework", "io.micrometer")
_QUARKUS = "io.quarkus.opentelemetry"
_HITS = "db.vector.query.response.documents"

_LANGCHAIN4J = Dialect(
    name="langchain4j",
    rules=(
        # Spring AI's model calls have the same scope, and no outcome.
        SpanRule(kind="llm", scopes=_MICROMETER, where={"outcome": (), OPERATION: ("chat",)}),
        SpanRule(
            kind="llm",
            scopes=(_QUARKUS,),
            where={"gen_ai.prompt": ()},
            given=("gen_ai.prompt",),
            load=_shapes.as_is,
            messages=_shapes.text_as_messages,
            said=("gen_ai.completion",),
        ),
    ),
)

_SPRING = Dialect(
    name="spring",
    scopes=("org.springframework",),
    rules=(
        SpanRule(
            kind="retrieval",
            where={"spring.ai.kind": ("vector_store",), "db.operation.name": ("query",)},
            asked=("db.vector.query.content",),
            came=(_HITS, f"{_HITS}@db.vector.content.query.response", "gen_ai.retrieval.documents"),
            load=_shapes.text_list,
            documents=lambda _, texts: tuple(Context(text=text) for text in texts),
            hides=False,
        ),
        SpanRule(
            kind="tool",
            where={"spring.ai.kind": ("tool_call",)},
            tool="spring.ai.tool.definition.name",
            given=("spring.ai.tool.call.arguments",),
            came=("spring.ai.tool.call.result",),
            load=_shapes.as_is,
        ),
        SpanRule(
            kind="chain",
            where={"spring.ai.kind": ("chat_client", "advisor")},
            asked=("spring.ai.chat.client.user.text",),
            hides=False,
        ),
        SpanRule(
            kind="llm",
            scopes=("org.springframework",),
            where={OPERATION: ("chat", "text_completion")},
            given=("gen_ai.prompt", "gen_ai.prompt@gen_ai.content.prompt"),
            came=("gen_ai.completion", "gen_ai.completion@gen_ai.content.completion"),
            load=_shapes.text_list,
            messages=_shapes.texts_as_messages,
            answer=lambda texts: texts[-1] if texts else "",
            unless=_CURRENT,
        ),
    ),
)

_STEP = "haystack.agent.step"

_HAYSTACK = Dialect(
    name="haystack",
    read=_frameworks.component,
    rules=(
        SpanRule(
            kind="chain",
            name=re.compile(r"haystack\.(?:async_)?pipeline\.run"),
            given=("haystack.pipeline.input_data",),
            question=_frameworks.asked,
            came=("haystack.pipeline.output_data",),
            answer=_frameworks.last_said,
            hides=False,
        ),
        SpanRule(
            kind="agent",
            name=re.compile(r"haystack\.agent\.run"),
            given=("haystack.agent.input",),
            came=("haystack.agent.output",),
            answer=_frameworks.said,
            hides=False,
        ),
        SpanRule(
            kind="llm",
            name=re.compile(r"haystack\.agent\.step\.llm"),
            given=(f"{_STEP}.llm.input",),
            messages=_frameworks.sent,
            came=(f"{_STEP}.llm.output",),
            answer=_frameworks.said,
        ),
        SpanRule(
            kind="tool",
            name=re.compile(r"haystack\.agent\.step\.tool"),
            tool="haystack.tool.name",
            given=(f"{_STEP}.tool.input",),
            came=(f"{_STEP}.tool.output",),
            load=_shapes.as_is,
        ),
    ),
)

_PYDANTIC = ("pydantic-ai", "logfire.pydantic-ai")

_PYDANTIC_AI = Dialect(
    name="pydantic_ai",
    scopes=_PYDANTIC,
    rules=(
        SpanRule(
            kind="tool",
            scopes=_PYDANTIC,
            where={"gen_ai.tool.name": ()},
            tool="gen_ai.tool.name",
            given=("gen_ai.tool.call.arguments", "tool_arguments"),
            came=("gen_ai.tool.call.result", "tool_response"),
            load=_shapes.as_is,
        ),
        # Model calls are in the GenAI conventions; of the oldest format their events are in one attribute.
        SpanRule(
            kind="agent",
            scopes=_PYDANTIC,
            without=("gen_ai.request.model",),
            any_of=("agent_name", "pydantic_ai.all_messages", "all_messages_events"),
            given=("pydantic_ai.all_messages", "all_messages_events"),
            came=("final_result",),
            answer=_shapes.last_reply,
        ),
    ),
)

_GEMINI = "gcp.vertex.agent"

_ADK = Dialect(
    name="adk",
    scopes=(_GEMINI,),
    rules=(
        # Agents are in the GenAI conventions.
        SpanRule(
            kind="tool",
            scopes=(_GEMINI,),
            where={f"{_GEMINI}.tool_response": ()},
            tool="gen_ai.tool.name",
            given=(f"{_GEMINI}.tool_call_args",),
            came=(f"{_GEMINI}.tool_response",),
        ),
        SpanRule(
            kind="llm",
            scopes=(_GEMINI,),
            where={f"{_GEMINI}.llm_request": ()},
            given=(f"{_GEMINI}.llm_request",),
            messages=_shapes.gemini_messages,
            came=(f"{_GEMINI}.llm_response",),
        ),
    ),
)

_KERNEL = ("semantic_kernel", "Microsoft.SemanticKernel")

_SEMANTIC_KERNEL = Dialect(
    name="semantic_kernel",
    scopes=_KERNEL,
    rules=(
        # Every function of a kernel is written as a tool, prompts among them.
        SpanRule(
            kind="chain",
            scopes=_KERNEL,
            where={OPERATION: ("execute_tool",)},
            without=("gen_ai.tool.call.result",),
            hides=False,
        ),
    ),
)

_AUTOGEN = Dialect(name="autogen", scope_names=("autogen-core",))

_LITELLM = Dialect(name="litellm", scope_names=("litellm",))

_LLAMA = "llamaindex.opentelemetry"
_LLAMA_CALLS = ("LLMChatStart", "LLMChatEnd", "LLMCompletionStart", "LLMCompletionEnd", "LLMPredictStart")
_LLAMA_STEP: dict[str, Any] = {
    "scopes": (_LLAMA,),
    "asked": (
        *("query.query_str@QueryStartEvent", "query@QueryStartEvent"),
        *("query.query_str@SynthesizeStartEvent", "query@SynthesizeStartEvent"),
    ),
    # A workflow's own step says what the workflow was started with, in the way Python shows it.
    "given": ("llamaindex.step.input_summary",),
    "question": _shapes.asked_at_start,
    "came": (
        *("response.response@QueryEndEvent", "response.response@SynthesizeEndEvent"),
        *("response.response@GetResponseEndEvent", "output@workflow.output"),
    ),
    "load": _shapes.as_is,
    "hides": False,
}
_LLAMA_LOOK_UP: dict[str, Any] = {
    "scopes": (_LLAMA,),
    "asked": (
        *("str_or_query_bundle.query_str@RetrievalStartEvent", "str_or_query_bundle@RetrievalStartEvent"),
        *("str_or_query_bundle.query_str@RetrievalEndEvent", "str_or_query_bundle@RetrievalEndEvent"),
    ),
    # What the reranker left stands for what it was given.
    "came": ("nodes@ReRankEndEvent", "nodes@RetrievalEndEvent"),
    "hides": False,
}

_LLAMAINDEX = Dialect(
    name="llamaindex",
    scopes=(_LLAMA,),
    rules=(
        SpanRule(
            kind="retrieval", events=frozenset({"RetrievalStartEvent", "RetrievalEndEvent"}), **_LLAMA_LOOK_UP
        ),
        SpanRule(kind="rerank", events=frozenset({"ReRankStartEvent", "ReRankEndEvent"}), **_LLAMA_LOOK_UP),
        SpanRule(
            kind="llm",
            scopes=(_LLAMA,),
            events=frozenset(
                {*(f"{call}Event" for call in _LLAMA_CALLS), "LLMPredictEndEvent", _shapes.DELTA}
            ),
            given=(
                *("messages@LLMChatStartEvent", "messages@LLMChatEndEvent"),
                *("prompt@LLMCompletionStartEvent", "prompt@LLMCompletionEndEvent"),
            ),
            load=_shapes.as_is,
            came=(
                *("response.message.blocks@LLMChatEndEvent", "response.text@LLMCompletionEndEvent"),
                "output@LLMPredictEndEvent",
            ),
            answer=_shapes.blocks_or_text,
            # A streamed reply is in no end event, but its pieces are events too.
            pieces=f"delta@{_shapes.DELTA}",
            hides=False,
        ),
        SpanRule(
            kind="tool",
            scopes=(_LLAMA,),
            name=re.compile(r".{0,300}Tool\.\w{1,100}|(?:.{0,300}\.)?call_tool"),
            hides=False,
        ),
        SpanRule(kind="agent", name=re.compile(r".{0,300}Agent\.run"), **_LLAMA_STEP),
        SpanRule(kind="chain", **_LLAMA_STEP),
    ),
)

DIALECTS: tuple[Dialect, ...] = (
    *(STEELYARD, _CREWAI, OPENINFERENCE, _VERCEL, _LANGCHAIN4J, _SPRING, _HAYSTACK, _PYDANTIC_AI),
    *(_ADK, _SEMANTIC_KERNEL, _AUTOGEN, OPENLLMETRY, LANGSMITH, _LITELLM, GENAI, _LLAMAINDEX),
)
"""Every dialect; of several on one span the earlier one has the first word."""
