"""Vendors' SDKs: an input and an output under names of their own."""

from __future__ import annotations

import json
from typing import Any

from apps.otel.general.conventions import chat
from apps.otel.shapes import (
    ANSWER,
    PASSAGES,
    QUESTION,
    Gap,
    Shape,
    Trace,
    Turn,
    compact,
    joined,
    prompt,
    shape,
)

_SENT = [{"role": "user", "content": prompt()}]


@shape(Turn())
def mlflow_traced_functions() -> Trace:
    """Functions under `@mlflow.trace` with span types, exported over OTLP: every value is JSON, texts too."""
    found = [
        {"page_content": text, "metadata": {"doc_uri": f"part-{n}"}, "id": f"d{n}"}
        for n, text in enumerate(PASSAGES)
    ]

    def typed(kind: str, given: object, came: object) -> dict[str, str]:
        told = {"spanType": kind, "spanInputs": given, "spanOutputs": came, "traceRequestId": "tr-1"}
        return {f"mlflow.{key}": json.dumps(value) for key, value in told.items()}

    trace = Trace("__main__")
    with trace.span("answer", typed("CHAIN", {"question": QUESTION}, ANSWER)):
        trace.leaf("look_up", typed("RETRIEVER", {"query": QUESTION}, found))
        trace.leaf("Completions", typed("CHAT_MODEL", {"model": "small", "messages": _SENT}, _completion()))
    return trace


@shape(Turn(without="guessed"))
def langfuse_message_under_a_name_of_its_own() -> Trace:
    """A bot's message stands beside other fields, and a tag that is cut away stands around the reply."""

    def observed(kind: str, given: object, came: object) -> dict[str, str]:
        told = {"type": kind, "input": given, "output": came}
        return {f"langfuse.observation.{key}": compact(value) for key, value in told.items()}

    found = [{"chunk_id": f"d{n}", "text": text} for n, text in enumerate(PASSAGES)]
    trace = Trace("langfuse-sdk")
    message = {"message_id": "m1", "text": QUESTION, "lang": "en"}
    with trace.span("process-message", observed("span", message, {"response": ANSWER, "status": "sent"})):
        trace.leaf("search", observed("retriever", QUESTION, found))
        trace.leaf("llm", observed("generation", _SENT, f"<response>{ANSWER}</response>"))
    return trace


@shape(Turn(without="guessed"))
def traced_search_that_returns_the_joined_text_too() -> Trace:
    """A traced function returns the prompt's part and the list that it was joined from; the list counts."""
    found = [{"doc_name": "guide", "text": text, "chunk_index": n} for n, text in enumerate(PASSAGES)]
    trace = Trace("mlflow")

    def typed(given: object, came: object) -> dict[str, str]:
        return {"mlflow.spanInputs": compact(given), "mlflow.spanOutputs": compact(came)}

    with trace.span("support", typed({"query": QUESTION}, {"response": ANSWER})):
        trace.leaf("retrieve_policy", typed({"query": QUESTION}, [joined(), found]))
        trace.leaf("llm", {**typed(_SENT, ANSWER), "mlflow.spanType": '"LLM"'})
    return trace


def _completion() -> dict[str, Any]:
    message = {"role": "assistant", "content": ANSWER, "refusal": None}
    return {"id": "c1", "object": "chat.completion", "choices": [{"index": 0, "message": message}]}


@shape(Turn())
def langfuse_observed_functions() -> Trace:
    """Functions under `@observe`: a retriever and a generation by their types, arguments as `args`."""

    def observed(kind: str, given: object, came: object) -> dict[str, str]:
        shown = came if isinstance(came, str) else json.dumps(came)
        told = {"type": kind, "input": json.dumps(given), "output": shown}
        return {f"langfuse.observation.{key}": value for key, value in told.items()}

    trace = Trace("langfuse-sdk")
    with trace.span("answer", observed("span", {"args": [QUESTION], "kwargs": {}}, ANSWER)):
        trace.leaf("look_up", observed("retriever", {"args": [QUESTION], "kwargs": {}}, list(PASSAGES)))
        trace.leaf("generate", observed("generation", _SENT, ANSWER))
    return trace


@shape(Turn())
def trulens_instrumented_functions() -> Trace:
    """TruLens' own attributes: a record's root, a retrieval with its contexts, and a plain model call."""
    names = "ai.observability"
    root = {f"{names}.record_root.input": QUESTION, f"{names}.record_root.output": ANSWER}
    found = {f"{names}.retrieval.query_text": QUESTION, f"{names}.retrieval.retrieved_contexts": PASSAGES}
    trace = Trace("trulens.core.otel.instrument")
    with trace.span("app.answer", {f"{names}.span_type": "record_root", **root}):
        trace.leaf("app.look_up", {f"{names}.span_type": "retrieval", **found})
        told = {f"{names}.call.kwargs.prompt": prompt(), f"{names}.call.return": ANSWER}
        trace.leaf("app.generate", {f"{names}.span_type": "generation", **told})
    return trace


@shape(Turn())
def genkit_flow() -> Trace:
    """A flow with a retriever and a model, whose documents and messages are made of parts."""

    def action(subtype: str, given: object, came: object) -> dict[str, str]:
        told = {
            "type": "action",
            "metadata:subtype": subtype,
            "input": compact(given),
            "output": compact(came),
        }
        return {f"genkit:{key}": value for key, value in told.items()}

    found = {"documents": [{"content": [{"text": text}], "metadata": {}} for text in PASSAGES]}
    asked = {"messages": [{"role": "user", "content": [{"text": prompt()}]}], "config": {}}
    replied = {"message": {"role": "model", "content": [{"text": ANSWER}]}, "finishReason": "stop"}
    trace = Trace("genkit-tracer")
    with trace.span("answer", action("flow", {"question": QUESTION}, ANSWER)):
        trace.leaf("manuals", action("retriever", {"query": {"content": [{"text": QUESTION}]}}, found))
        trace.leaf("small-model", action("model", asked, replied))
    return trace


@shape(Turn())
def braintrust_logged_spans() -> Trace:
    """Input and output as JSON, the type inside an attribute that is JSON itself."""

    def logged(kind: str, given: object, came: object) -> dict[str, str]:
        told = {"span_attributes": {"type": kind}, "input_json": given, "output_json": came}
        return {f"braintrust.{key}": json.dumps(value) for key, value in told.items()}

    trace = Trace("braintrust")
    with trace.span("answer", logged("task", {"question": QUESTION}, ANSWER)):
        trace.leaf("search_manual", logged("function", {"query": QUESTION}, list(PASSAGES)))
        trace.leaf(
            "Chat Completion", logged("llm", _SENT, [{"message": {"role": "assistant", "content": ANSWER}}])
        )
    return trace


@shape(Turn())
def langsmith_chain() -> Trace:
    """A chain under LangSmith's OpenTelemetry mode: runs as JSON, a retriever called embeddings."""

    def run(kind: str, operation: str, given: object, came: object) -> dict[str, str]:
        told = {"langsmith.span.kind": kind, "gen_ai.operation.name": operation, "gen_ai.system": "langchain"}
        return {**told, "gen_ai.prompt": compact(given), "gen_ai.completion": compact(came)}

    found = [{"id": f"d{n}", "page_content": text, "type": "Document"} for n, text in enumerate(PASSAGES)]
    human = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "HumanMessage"]}
    sent = {**human, "kwargs": {"content": prompt(), "type": "human"}}
    replied = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"]}
    message = {**replied, "kwargs": {"content": ANSWER, "type": "ai"}}
    generations = {"generations": [[{"text": ANSWER, "type": "ChatGeneration", "message": message}]]}
    variables = {"context": joined(), "question": QUESTION}
    trace = Trace("langsmith")
    with trace.span("RunnableSequence", run("chain", "chain", {"input": QUESTION}, {"output": ANSWER})):
        with trace.span("RunnableParallel", run("chain", "chain", {"input": QUESTION}, variables)):
            trace.leaf("Manuals", run("retriever", "embeddings", {"query": QUESTION}, {"documents": found}))
        trace.leaf("ChatPromptTemplate", run("prompt", "chat", variables, {"output": {"messages": [sent]}}))
        trace.leaf("ChatModel", run("llm", "chat", {"messages": [[sent]]}, generations))
    return trace


@shape(Gap(cause="content_off", switch="LANGSMITH_HIDE_INPUTS"))
def langsmith_hidden() -> Trace:
    """The same mode with its inputs and outputs hidden: empty objects."""
    empty = {"gen_ai.prompt": "{}", "gen_ai.completion": "{}"}
    trace = Trace("langsmith")
    with trace.span("RunnableSequence", {"langsmith.span.kind": "chain", **empty}):
        trace.leaf("Manuals", {"langsmith.span.kind": "retriever", **empty})
        trace.leaf("ChatModel", {"langsmith.span.kind": "llm", **empty})
    return trace


@shape(Turn())
def langwatch_typed_values() -> Trace:
    """LangWatch: every value beside the name of its type, and the passages on the span that retrieved."""
    passages = [{"document_id": f"d{n}", "chunk_id": "0", "content": text} for n, text in enumerate(PASSAGES)]

    def told(kind: str, given: tuple[str, object], came: tuple[str, object], **more: str) -> dict[str, str]:
        values = {
            f"langwatch.{name}": compact({"type": what, "value": value})
            for name, (what, value) in (("input", given), ("output", came))
        }
        return {"langwatch.span.type": kind, **values, **more}

    asked = ("json", {"q": QUESTION})
    found = {"langwatch.rag_contexts": compact(passages), "langwatch.timestamps": "{}"}
    said = ("chat_messages", [{"role": "assistant", "content": ANSWER}])
    trace = Trace("langwatch")
    with trace.span("ask", told("span", asked, ("text", ANSWER))):
        trace.leaf("fetch", told("rag", asked, ("json", passages), **found))
        trace.leaf("llm", told("llm", ("chat_messages", _SENT), said, **{"gen_ai.request.model": "small"}))
    return trace


@shape(Turn(without="guessed"))
def langfuse_rows_of_a_table() -> Trace:
    """A retriever under `@observe` that returns what its database does: a name and a text in each row."""
    trace = Trace("langfuse-sdk")
    rows = [[f"manual-{n}.md", text] for n, text in enumerate(PASSAGES)]
    found = {"type": "retriever", "input": QUESTION, "output": json.dumps(rows)}
    with trace.span(
        "answer", {"langfuse.observation.input": QUESTION, "langfuse.observation.output": ANSWER}
    ):
        trace.leaf("search", {f"langfuse.observation.{key}": value for key, value in found.items()})
        sent = "\n\n".join(f"[{name}] {text}" for name, text in rows)
        trace.leaf("chat small-model", chat(f"{sent}\n\nQuestion: {QUESTION}", ANSWER))
    return trace


@shape(Turn(without="no_"))
def langfuse_chunks_beside_the_generation() -> Trace:
    """A step that routes returns a code, a search a number; the generation's metadata has the chunks."""

    def observed(kind: str, given: object, came: object, **beside: object) -> dict[str, str]:
        told = {"type": kind, "input": given, "output": came}
        told |= {f"metadata.{name}": value for name, value in beside.items()}
        return {f"langfuse.observation.{key}": compact(value) for key, value in told.items()}

    chunks = [{"filename": "guide.pdf", "content_preview": text, "score": 0.5} for text in PASSAGES]
    shown = "\n\n".join(f"[Source {n}: guide.pdf]\n{text}" for n, text in enumerate(PASSAGES, 1))
    sent = [{"role": "user", "content": f"From our documents:\n{shown}\n\nQuestion: {QUESTION}"}]
    trace = Trace("langfuse-sdk")
    request, result = {"question": QUESTION, "k": 3}, {"answer": ANSWER, "tool_used": "rag"}
    with trace.span("rag_query", observed("span", request, result)):
        trace.leaf("tool_routing", observed("span", {"question": QUESTION}, {"selected_tool": "rag"}))
        trace.leaf("vector_retrieval", observed("span", {"k": 3}, {"num_results": 3}))
        told = observed("generation", {"messages": sent}, {"answer": ANSWER}, context_chunks=chunks)
        trace.leaf("llm_generation", told)
    return trace


SHAPES: tuple[Shape, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Shape))
