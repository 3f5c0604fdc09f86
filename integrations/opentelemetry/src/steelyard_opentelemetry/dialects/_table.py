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
            kind="rerank",
            where={"ai.operationId": ("ai.rerank.doRerank",)},
            given=("ai.documents",),
            came=("ai.ranking",),
            question=_shapes.nothing,
            documents=_shapes.by_ranking,
        ),
    ),
)

_HITS = "db.vector.query.response.documents"

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
        # Texts in a list that is no JSON, since nothing in them is escaped.
        SpanRule(
            kind="llm",
            scopes=("org.springframework",),
            where={OPERATION: ("chat", "text_completion")},
            given=("gen_ai.prompt", "gen_ai.prompt@gen_ai.content.prompt"),
            came=("gen_ai.completion", "gen_ai.completion@gen_ai.content.completion"),
            load=_shapes.text_list,
            messages=_shapes.texts_as_messages,
            answer=lambda texts: texts[-1] if texts else "",
            unless=("gen_ai.input.messages", "gen_ai.output.messages"),
        ),
    ),
)

_HAYSTACK = Dialect(
    name="haystack",
    read=_frameworks.component,
    rules=(SpanRule(kind="chain", name=re.compile(r"haystack\.(?:async_)?pipeline\.run"), hides=False),),
)

_PYDANTIC_AI = Dialect(
    name="pydantic_ai",
    scopes=("pydantic-ai", "logfire.pydantic-ai"),
    rules=(
        # Calls and tools are in the GenAI conventions.
        SpanRule(
            kind="agent",
            scopes=("pydantic-ai", "logfire.pydantic-ai"),
            where={"agent_name": ()},
            without=("gen_ai.request.model",),
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
        # Agents and tools are in the GenAI conventions.
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
    *(STEELYARD, _CREWAI, OPENINFERENCE, _VERCEL, _SPRING, _HAYSTACK, _PYDANTIC_AI),
    *(_ADK, _AUTOGEN, OPENLLMETRY, LANGSMITH, _LITELLM, GENAI, _LLAMAINDEX),
)
"""Every dialect; of several on one span the earlier one has the first word."""
