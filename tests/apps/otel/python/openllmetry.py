"""OpenLLMetry and LiteLLM: flattened `gen_ai.prompt.<i>`, vector stores whose results are events."""

from __future__ import annotations

import json
from typing import Any

from apps.otel.shapes import (
    ANSWER,
    PASSAGES,
    QUESTION,
    SCORES,
    Gap,
    Shape,
    Trace,
    Turn,
    event,
    joined,
    prompt,
    shape,
)


def _model(asked: str, *, system: str = "Be brief.", reply: str = ANSWER) -> dict[str, Any]:
    told = {"gen_ai.system": "openai", "llm.request.type": "chat", "gen_ai.request.model": "small-model"}
    for number, (role, text) in enumerate((("system", system), ("user", asked))):
        told |= {f"gen_ai.prompt.{number}.role": role, f"gen_ai.prompt.{number}.content": text}
    return {**told, "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": reply}


def _entity(kind: str, given: object, came: object) -> dict[str, str]:
    told = {"traceloop.span.kind": kind, "traceloop.entity.name": "answer"}
    return {
        **told,
        "traceloop.entity.input": json.dumps({"args": [], "kwargs": given}),
        "traceloop.entity.output": json.dumps(came),
    }


_FOUND = [
    event(
        "db.query.result",
        {"db.query.result.id": f"d{n}", "db.query.result.distance": 1 - s, "db.query.result.document": t},
    )
    for n, (t, s) in enumerate(zip(PASSAGES, SCORES, strict=True))
]


@shape(Turn())
def openllmetry_decorated_steps() -> Trace:
    """A workflow and a task by decorator; the task returns the passages as a list of texts."""
    trace = Trace("traceloop.tracer")
    with trace.span("answer.workflow", _entity("workflow", {"question": QUESTION}, ANSWER)):
        trace.leaf("search.task", _entity("task", {"query": QUESTION}, list(PASSAGES)))
        trace.leaf("openai.chat", _model(prompt()), scope="opentelemetry.instrumentation.openai.v1")
    return trace


@shape(Turn())
def openllmetry_vector_store() -> Trace:
    """A Chroma query whose results are events on its span, below a workflow."""
    trace = Trace("traceloop.tracer")
    with trace.span("answer.workflow", _entity("workflow", {"question": QUESTION}, ANSWER)):
        store = {"db.system": "chroma", "db.operation": "query", "db.chroma.query.n_results": 3}
        trace.leaf("chroma.query", store, scope="opentelemetry.instrumentation.chromadb", events=_FOUND)
        trace.leaf("openai.chat", _model(prompt()), scope="opentelemetry.instrumentation.openai.v1")
    return trace


@shape(Turn())
def openllmetry_vector_store_without_a_workflow() -> Trace:
    """The same two spans below a web server's, and nothing else."""
    trace = Trace("opentelemetry.instrumentation.fastapi")
    with trace.span("POST /ask", {"http.request.method": "POST"}):
        store = {"db.system": "chroma", "db.operation": "query", "db.chroma.query.n_results": 3}
        trace.leaf("chroma.query", store, scope="opentelemetry.instrumentation.chromadb", events=_FOUND)
        trace.leaf("openai.chat", _model(prompt()), scope="opentelemetry.instrumentation.openai.v1")
    return trace


@shape(Turn())
def openllmetry_vector_store_with_texts_in_metadata() -> Trace:
    """Pinecone: what each hit says stands in its metadata, as Python shows it; a user's id comes first."""
    hits = [
        event(
            "db.query.result", {"db.query.result.id": f"d{n}", "db.query.result.metadata": str({"text": t})}
        )
        for n, t in enumerate(PASSAGES)
    ]
    told = {"args": ["user-7"], "kwargs": {"message": QUESTION}}
    asked = {**_entity("workflow", {}, ANSWER), "traceloop.entity.input": json.dumps(told)}
    trace = Trace("traceloop.tracer")
    with trace.span("chat.workflow", asked):
        store = {"db.system": "pinecone"}
        trace.leaf("pinecone.query", store, scope="opentelemetry.instrumentation.pinecone", events=hits)
        trace.leaf("openai.chat", _model(prompt()), scope="opentelemetry.instrumentation.openai.v1")
    return trace


@shape(Turn(one_text=True))
def traceloop_js_workflow() -> Trace:
    """Traceloop for JavaScript: the workflow's input is a list of arguments, its output a text."""
    told = {
        "traceloop.span.kind": "workflow",
        "traceloop.entity.name": "ask",
        "traceloop.entity.input": json.dumps({"args": [QUESTION], "kwargs": {}}),
        "traceloop.entity.output": json.dumps(ANSWER),
    }
    trace = Trace("@traceloop/node-server-sdk")
    with trace.span("ask.workflow", told):
        trace.leaf("openai.chat", _model(prompt()), scope="@traceloop/instrumentation-openai")
    return trace


@shape(Turn(one_text=True))
def litellm_request() -> Trace:
    """LiteLLM's own callback: one span for each request, the passages in the system message."""
    trace = Trace("litellm")
    system = f"Answer from the context alone.\n\nContext:\n{joined()}"
    trace.leaf("litellm_request", {**_model(QUESTION, system=system), "llm.is_streaming": "False"})
    return trace


@shape(Gap(cause="content_off", switch="turn_off_message_logging"))
def litellm_content_off() -> Trace:
    """LiteLLM with message logging turned off."""
    trace = Trace("litellm")
    trace.leaf("litellm_request", {"gen_ai.system": "openai", "gen_ai.request.model": "small-model"})
    return trace


@shape(Gap(cause="content_off", switch="TRACELOOP_TRACE_CONTENT"))
def openllmetry_content_off() -> Trace:
    """TRACELOOP_TRACE_CONTENT=false: kinds and names alone."""
    trace = Trace("opentelemetry.instrumentation.langchain")
    with trace.span("chain.workflow", {"traceloop.span.kind": "workflow", "traceloop.entity.name": "chain"}):
        trace.leaf("Retriever.task", {"traceloop.span.kind": "task", "traceloop.entity.name": "Retriever"})
        model = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "small-model",
            "llm.request.type": "chat",
        }
        trace.leaf("ChatOpenAI.chat", model)
    return trace


SHAPES: tuple[Shape, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Shape))
