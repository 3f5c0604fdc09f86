"""The conventions that many instrumentors share, a row of the table for each."""

from __future__ import annotations

from typing import Any

from steelyard_opentelemetry._otlp import content_of_events
from steelyard_opentelemetry.dialects import _shapes
from steelyard_opentelemetry.dialects._rules import Dialect, SpanRule

OPERATION = "gen_ai.operation.name"
"""What a span is in the GenAI conventions."""
_LANGSMITH_KIND = "langsmith.span.kind"
"""What LangSmith says a span is; its operation calls a retriever embeddings."""

_MARKS = ("steelyard.question", "steelyard.contexts", "steelyard.answer")

STEELYARD = Dialect(
    name="steelyard",
    rules=(
        # Set by hand, and so above all that is found; what is not marked is still looked for below the span.
        SpanRule(
            kind="turn",
            any_of=_MARKS,
            asked=("steelyard.question",),
            came=("steelyard.contexts",),
            load=_shapes.as_is,
            said=("steelyard.answer",),
            answer=_shapes.nothing,
            expected="steelyard.reference",
            hides=False,
        ),
    ),
)

_KIND = "openinference.span.kind"
_BY_LANGCHAIN = "openinference.instrumentation.langchain"
_STATED: dict[str, Any] = {
    "given": ("input.value",),
    "came": ("output.value",),
    "typed": (_BY_LANGCHAIN, "openinference.instrumentation.llama_index"),
    "hides": False,
}
_VARIABLES = "llm.prompt_template.variables"
_PASSED: dict[str, Any] = {
    **_STATED,
    "passes": True,
    "variables": _VARIABLES,
    "bound": _shapes.filled_in,
    "noted": _shapes.noted_on,
}
_LOOKED_UP: dict[str, Any] = {
    **_STATED,
    "asked": ("reranker.query",),
    "documents": _shapes.documents_returned,
    "passes": True,
    "noted": _shapes.noted_of_look_up,
}

OPENINFERENCE = Dialect(
    name="openinference",
    scopes=("openinference.",),
    rules=(
        SpanRule(
            kind="llm",
            where={_KIND: ("LLM",)},
            sent=("llm.input_messages.*", "llm.prompts", "llm.prompts.*"),
            replied=("llm.output_messages.*",),
            variables=_VARIABLES,
            bound=_shapes.unbound,
            **_STATED,
        ),
        SpanRule(
            kind="retrieval",
            where={_KIND: ("RETRIEVER",)},
            listed="retrieval.documents.*",
            answers="generate",
            **_LOOKED_UP,
        ),
        SpanRule(
            kind="rerank", where={_KIND: ("RERANKER",)}, listed="reranker.output_documents.*", **_LOOKED_UP
        ),
        SpanRule(kind="tool", where={_KIND: ("TOOL",)}, tool="tool.name", **_PASSED),
        SpanRule(kind="agent", where={_KIND: ("AGENT",)}, **_PASSED),
        SpanRule(kind="prompt", where={_KIND: ("PROMPT",)}, **_PASSED),
        SpanRule(kind="chain", where={_KIND: ("CHAIN",)}, **_PASSED),
        # Embeddings, guardrails, evaluators: part of the tree, but nothing they say is the turn's.
        SpanRule(kind="chain", where={_KIND: ()}, hides=False),
    ),
)

_TRACELOOP = "traceloop.span.kind"
_ENTITIES = ("workflow", "task", "agent", "tool")
_ENTITY: dict[str, Any] = {
    "given": ("traceloop.entity.input",),
    "came": ("traceloop.entity.output",),
    "load": _shapes.json_value,
}
_ENTITY_STEP: dict[str, Any] = {**_ENTITY, "opened": _shapes.out_of_run, "passes": True}

OPENLLMETRY = Dialect(
    name="openllmetry",
    scopes=(
        *("traceloop", "opentelemetry.instrumentation.langchain", "opentelemetry.instrumentation.llamaindex"),
        *("opentelemetry.instrumentation.llama_index", "opentelemetry.instrumentation.openai"),
        "opentelemetry.instrumentation.haystack",
    ),
    rules=(
        # What a vector store's instrumentor noted of a query, one event for each hit.
        SpanRule(
            kind="retrieval",
            events=frozenset({"db.query.result"}),
            listed="db.query.result.*@db.query.result",
            hides=False,
        ),
        SpanRule(
            kind="retrieval", where={_TRACELOOP: _ENTITIES, OPERATION: ("vector_db_retrieve",)}, **_ENTITY
        ),
        SpanRule(
            kind="tool", where={_TRACELOOP: _ENTITIES, "tool.name": ()}, tool="tool.name", **_ENTITY_STEP
        ),
        SpanRule(kind="tool", where={_TRACELOOP: ("tool",)}, tool="traceloop.entity.name", **_ENTITY_STEP),
        SpanRule(kind="agent", where={_TRACELOOP: ("agent",)}, hides=False, **_ENTITY_STEP),
        # Only a LangChain run without a parent is called a workflow. Its context leaks into the other threads
        # of a batch, so that the runs there look like children of the first one.
        SpanRule(
            kind="chain",
            scopes=("opentelemetry.instrumentation.langchain",),
            where={_TRACELOOP: ("workflow",)},
            hides=False,
            run=True,
            **_ENTITY_STEP,
        ),
        # Steps of LlamaIndex are all tasks or workflows: what went in and what came out tells them apart.
        SpanRule(
            kind="rerank",
            where={_TRACELOOP: _ENTITIES},
            shape=_shapes.is_reranking,
            question=_shapes.nothing,
            **_ENTITY,
        ),
        SpanRule(kind="retrieval", where={_TRACELOOP: _ENTITIES}, shape=_shapes.is_look_up, **_ENTITY),
        SpanRule(
            kind="llm",
            where={_TRACELOOP: _ENTITIES},
            shape=_shapes.is_model_call,
            messages=_shapes.sent_to_model,
            hides=False,
            **_ENTITY,
        ),
        SpanRule(kind="chain", where={_TRACELOOP: _ENTITIES}, hides=False, **_ENTITY_STEP),
    ),
)

_RUN: dict[str, Any] = {
    "given": ("gen_ai.prompt",),
    "came": ("gen_ai.completion",),
    "opened": _shapes.out_of_output,
}

LANGSMITH = Dialect(
    name="langsmith",
    scope_names=("langsmith",),
    rules=(
        SpanRule(kind="llm", where={_LANGSMITH_KIND: ("llm",)}, **_RUN),
        SpanRule(kind="retrieval", where={_LANGSMITH_KIND: ("retriever",)}, **_RUN),
        SpanRule(kind="tool", where={_LANGSMITH_KIND: ("tool",)}, passes=True, **_RUN),
        SpanRule(kind="prompt", where={_LANGSMITH_KIND: ("prompt",)}, passes=True, **_RUN),
        SpanRule(kind="chain", where={_LANGSMITH_KIND: ()}, passes=True, hides=False, **_RUN),
    ),
)

_MODEL_CALLS = (
    *("chat", "text_completion", "completion", "generate_content", "fetch_response"),
    *("chat.completions", "text.completions", "text_completions"),
)
_CHAINS = ("invoke_workflow", "create_agent", "embeddings", "plan")
_OF_MODEL: dict[str, Any] = {
    "given": ("gen_ai.input.messages", "gen_ai.prompt", "gen_ai.content.prompt", "gen_ai.prompt.*"),
    "came": (
        *("gen_ai.output.messages", "gen_ai.completion.*", "gen_ai.completion", "gen_ai.content.completion"),
    ),
    "system": "gen_ai.system_instructions",
    "variables": "gen_ai.prompt.variable.*",
    "answer": _shapes.last_reply,
}
_CALL: dict[str, Any] = {"kind": "llm", **_OF_MODEL}
_STEP_OF_MODEL: dict[str, Any] = {
    **_OF_MODEL,
    "without": (_LANGSMITH_KIND,),
    "question": _shapes.asked_by_user,
    "hides": False,
}

GENAI = Dialect(
    name="genai",
    events=content_of_events,
    scopes=("opentelemetry.instrumentation.genai", "opentelemetry.util.genai"),
    rules=(
        SpanRule(where={OPERATION: _MODEL_CALLS}, without=(_LANGSMITH_KIND,), **_CALL),
        SpanRule(
            kind="retrieval",
            where={OPERATION: ("retrieval", "retrieve", "retrieve_documents")},
            without=(_LANGSMITH_KIND,),
            asked=("gen_ai.retrieval.query.text", "gen_ai.retrieval.query"),
            came=("gen_ai.retrieval.documents",),
        ),
        SpanRule(
            kind="retrieval",
            where={OPERATION: ("search_memory",)},
            asked=("gen_ai.memory.query.text",),
            came=("gen_ai.memory.records",),
        ),
        SpanRule(
            kind="tool",
            where={OPERATION: ("execute_tool",)},
            without=(_LANGSMITH_KIND,),
            tool="gen_ai.tool.name",
            given=("gen_ai.tool.call.arguments",),
            # Some tell a result as a message: the tool's output, or else the message to it.
            came=("gen_ai.tool.call.result", "gen_ai.output.messages", "gen_ai.input.messages"),
            load=_shapes.as_is,
            opened=_shapes.out_of_message,
            unless=("error.type",),
        ),
        # What agents are given was typed, but LangChain's are given a state as JSON.
        SpanRule(
            kind="agent",
            scopes=("opentelemetry.instrumentation.genai.langchain",),
            where={OPERATION: ("invoke_agent",)},
            **{**_STEP_OF_MODEL, "question": _shapes.asked_in_state},
        ),
        SpanRule(kind="agent", where={OPERATION: ("invoke_agent",)}, **_STEP_OF_MODEL),
        # What LlamaIndex's workflows are given was typed; a graph's state is written as JSON.
        SpanRule(
            kind="chain",
            scopes=("opentelemetry.instrumentation.genai.llama_index",),
            where={OPERATION: _CHAINS},
            **_STEP_OF_MODEL,
        ),
        SpanRule(
            kind="chain",
            where={OPERATION: _CHAINS},
            **{**_STEP_OF_MODEL, "question": _shapes.asked_in_state},
        ),
        # Conventions before 1.28, and instrumentors that have not caught up.
        SpanRule(
            where={"llm.request.type": ("chat", "completion", "unknown")},
            without=(_LANGSMITH_KIND, OPERATION),
            **_CALL,
        ),
        SpanRule(
            where={"gen_ai.request.model": ()},
            without=(_LANGSMITH_KIND, OPERATION, "llm.request.type"),
            **_CALL,
        ),
        # An operation of the instrumentor's own, such as LiteLLM's `acompletion`: what was said is enough.
        SpanRule(
            where={"gen_ai.request.model": ()},
            any_of=("gen_ai.output.messages", "gen_ai.completion.0.content"),
            without=(_LANGSMITH_KIND,),
            **_CALL,
        ),
    ),
)
