"""Vendors' SDKs and attributes set by hand: an input and an output under names of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from apps.otel.attributes import oi
from apps.otel.general.conventions import chat
from apps.otel.shapes import (
    ANSWER,
    PASSAGES,
    QUESTION,
    SCORES,
    Gap,
    Shape,
    Trace,
    Turn,
    compact,
    event,
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


@shape(Turn(without="contexts_guessed"))
def service_whose_search_has_results() -> Trace:
    """A service's own spans: `results` of a span that is called a search are what it found."""
    found = compact([{"id": f"d{n}", "text": text} for n, text in enumerate(PASSAGES)])
    trace = Trace("service")
    with trace.span("rag", {"query": QUESTION, "answer": ANSWER}):
        trace.leaf("vector_search", {"query": QUESTION, "top_k": 3, "results": found})
        trace.leaf("llm.generate", {"llm.prompt": prompt(), "llm.completion": ANSWER})
    return trace


@shape(Turn(without="guessed"))
def adapter_with_an_event_for_each_document_by_its_number() -> Trace:
    """Ids alone stand on the span of the search, and each text in an event that is called by its number."""
    found = [
        event(f"retrieved_doc_{n}", {"doc.rank": n, "doc.chunk_id": f"d{n}", "doc.preview": text})
        for n, text in enumerate(PASSAGES)
    ]
    trace = Trace("adapter")
    with trace.span("rag-trace", {"input.value": QUESTION, "output.value": ANSWER}):
        ids = [f"d{n}" for n in range(len(PASSAGES))]
        trace.leaf("retrieval", {"input.value": QUESTION, "output.value": ids}, events=found)
        trace.leaf("generation", {"input.value": prompt(), "output.value": ANSWER})
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


def _by_hand(found: object, *, asked: str = QUESTION, sent: str = "") -> Trace:
    """A service that writes a span of its own for its search, and has the model's client instrumented."""
    trace = Trace("my.service")
    with trace.span("POST /ask", {"http.request.method": "POST"}):
        trace.leaf("step one", {"svc.text": asked, "svc.limit": 3, "svc.out": found})
        trace.leaf("chat", chat(sent or prompt(), ANSWER), scope="opentelemetry.instrumentation.genai.openai")
    return trace


@shape(Turn(without="guessed"))
def own_span_with_a_list_of_texts() -> Trace:
    """A span of the application's own tells the question and, under any name, texts that the prompt shows."""
    return _by_hand(PASSAGES)


@shape(Turn(without="guessed"))
def own_span_with_json() -> Trace:
    """The same with documents as JSON."""
    return _by_hand(compact([{"id": f"d{n}", "text": text} for n, text in enumerate(PASSAGES)]))


@shape(Turn(one_text=True, without="guessed"))
def own_span_with_one_text() -> Trace:
    """The same with the passages joined, as one text."""
    return _by_hand(joined())


@shape(Turn(without="guessed"))
def own_span_inside_a_chain() -> Trace:
    """The same within a chain of OpenInference."""
    trace = Trace("my.service")
    with trace.span("chain", oi("CHAIN", QUESTION, ANSWER)):
        trace.leaf("step one", {"svc.text": QUESTION, "svc.out": PASSAGES})
        trace.leaf("chat", chat(prompt(), ANSWER))
    return trace


@shape(Turn(without="guessed"))
def own_span_below_the_one_that_was_asked() -> Trace:
    """The question stands on a span of the application's own, and what was found on one below it."""
    trace = Trace("my.service")
    with trace.span("handle", {"svc.body": compact({"user": "anna", "message": QUESTION})}):
        with trace.span("step one", {"svc.limit": 3}):
            trace.leaf("store", {"svc.out": PASSAGES})
        trace.leaf("chat", chat(prompt(), ANSWER))
    return trace


@shape(Turn(one_text=True, without="contexts_guessed"))
def own_span_below_a_servers_that_tells_the_question() -> Trace:
    """The question is an attribute that the application put onto its web framework's span."""
    trace = Trace("opentelemetry.instrumentation.fastapi")
    with trace.span("POST /ask", {"http.request.method": "POST", "app.question": QUESTION}):
        trace.leaf("build_context", {"svc.out": joined()}, scope="my.service")
        trace.leaf("chat", chat(prompt(), ANSWER), scope="opentelemetry.instrumentation.genai.openai")
    return trace


@shape(Turn(without="guessed"))
def own_spans_with_an_event_for_each_hit() -> Trace:
    """A question on a span, a search below it, and an event for each document that it found."""
    hits = [event("hit", {"id": f"d{n}", "text": text}) for n, text in enumerate(PASSAGES)]
    trace = Trace("my.service")
    with trace.span("rag", {"question": QUESTION, "answer": ANSWER}):
        trace.leaf("vector_search", {"top_k": 3}, events=hits)
        trace.leaf("chat", chat(prompt(), ANSWER))
    return trace


@shape(Turn(note="question_guessed", without="contexts_guessed"))
def own_spans_with_one_event_of_documents() -> Trace:
    """A question on a span, and an event that lists what was found, with the model's client instrumented."""
    found = event("retrieved", {"documents": PASSAGES})
    trace = Trace("my.service")
    with trace.span("handle", {"user_question": QUESTION}):
        trace.leaf("search", {"index": "manuals"}, events=[found])
        trace.leaf("chat", chat(prompt(), ANSWER))
    return trace


@shape(Turn(one_text=True, note="contexts_guessed"))
def own_span_with_what_was_said_before() -> Trace:
    """A span tells the conversation so far, which is sent before the question: that is no passage."""
    said = "A touring bicycle has a chain that has to be oiled now and then."
    sent = compact(
        [{"role": role, "content": text} for role, text in (("assistant", said), ("user", prompt()))]
    )
    trace = Trace("my.service")
    with trace.span("handle", {"user_question": QUESTION}):
        trace.leaf("load history", {"svc.turns": [said]})
        told = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": sent}
        trace.leaf("chat", {**chat(prompt(), ANSWER), **told})
    return trace


@shape(Turn(one_text=True, note="contexts_guessed"))
def own_span_that_tells_another_question() -> Trace:
    """What was found for another question is not taken, although the prompt shows it."""
    return _by_hand(PASSAGES, asked="How high should the saddle be?")


@shape(Turn(one_text=True, note="contexts_guessed"))
def own_span_with_instructions() -> Trace:
    """A span tells the question and how the prompt begins: that is an instruction."""
    return _by_hand("Answer from the context alone.")


@shape(Turn(one_text=True, note="contexts_guessed"))
def own_span_with_the_whole_prompt() -> Trace:
    """A span tells the question and the prompt as it was put together."""
    return _by_hand(f"{prompt()}\nBe brief.", sent=f"Today is Monday.\n{prompt()}\nBe brief.")


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
def attributes_of_ones_own() -> Trace:
    """Spans by hand with the application's own names: `rag.question`, `rag.documents`, `llm.response`."""
    trace = Trace("my.service")
    with trace.span("rag.query", {"rag.question": QUESTION, "rag.answer": ANSWER}):
        trace.leaf("rag.retrieve", {"rag.query": QUESTION, "rag.documents": PASSAGES, "rag.top_k": 3})
        trace.leaf("rag.generate", {"llm.prompt": prompt(), "llm.response": ANSWER, "llm.model": "small"})
    return trace


@shape(Turn())
def input_and_output_without_a_kind() -> Trace:
    """`input.value` and `output.value` on every span, and nothing that says what a span is but its name."""
    trace = Trace("my.service")
    with trace.span("answer_question", {"input.value": QUESTION, "output.value": ANSWER}):
        trace.leaf("retrieve", {"input.value": QUESTION, "output.value": json.dumps(PASSAGES)})
        trace.leaf("generate", {"input.value": prompt(), "output.value": ANSWER})
    return trace


@shape(Turn())
def documents_with_scores_as_json() -> Trace:
    """A span by hand with its documents as JSON, beside a model call in the GenAI conventions."""
    found = [{"text": text, "score": score} for text, score in zip(PASSAGES, SCORES, strict=True)]
    model = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small-model"}
    sent = {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": prompt()}
    trace = Trace("my.service")
    with trace.span("POST /ask", {"http.request.method": "POST"}):
        trace.leaf("vector search", {"app.search_query": QUESTION, "app.retrieved_chunks": compact(found)})
        trace.leaf("chat small-model", {**model, **sent, "gen_ai.completion.0.content": ANSWER})
    return trace


@shape(Turn(one_text=True))
def context_as_one_text() -> Trace:
    """A step by hand that keeps the joined context as one attribute of the model's span."""
    told = {"question": QUESTION, "context": joined(), "prompt": prompt(), "response": ANSWER}
    trace = Trace("my.service")
    with trace.span("rag", {"input": QUESTION, "output": ANSWER}):
        trace.leaf("llm call", told)
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


@shape(Turn(note="no_prompt_seen"))
def one_span_with_everything() -> Trace:
    """One span by hand has the question, the passages and, as its output, the answer."""
    told = {"app.question": QUESTION, "app.contexts": PASSAGES, "app.output": ANSWER}
    trace = Trace("my.service")
    trace.leaf("handle", told)
    return trace


@shape(Turn(one_text=True, without="no_prompt_seen"))
def one_span_with_everything_around_a_call() -> Trace:
    """The same, with the model's client instrumented: the call's prompt shows what was used."""
    trace = Trace("my.service")
    told = {"rag.question": QUESTION, "rag.context": "\n---\n".join(PASSAGES), "rag.answer": ANSWER}
    with trace.span("rag.pipeline", told):
        trace.leaf(
            "chat small-model", chat(prompt(), ANSWER), scope="opentelemetry.instrumentation.genai.openai"
        )
    return trace


@shape(Turn(without="guessed"))
def operation_that_is_called_retrieve() -> Trace:
    """The GenAI conventions by hand, with an operation and a query named a little otherwise."""
    found = compact([{"id": f"d{n}", "content": text} for n, text in enumerate(PASSAGES)])
    told = {"gen_ai.operation.name": "retrieve", "gen_ai.retrieval.query": QUESTION}
    trace = Trace("my.service")
    with trace.span("GET /ask"):
        trace.leaf("kb.retrieve", {**told, "gen_ai.retrieval.documents": found})
        trace.leaf("chat small-model", chat(prompt(), ANSWER))
    return trace


@shape(Gap(cause="unlinked", switch="instrument the model client"))
def one_span_whose_output_is_its_passages() -> Trace:
    """What a step puts out is the passages once more, as one text: it is no answer."""
    told = {"app.question": QUESTION, "app.contexts": PASSAGES, "app.output": joined()}
    trace = Trace("my.service")
    trace.leaf("handle", told)
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


def _told_by_hand(question: Mapping[str, str], hits: Sequence[str] = (), model: str = ANSWER) -> Trace:
    """Spans of the application's own, under any names, around a call of an instrumented client."""
    trace = Trace("my.service")
    with trace.span("handle", {"app.lang": "en", **question}):
        trace.leaf("find", {"app.top_k": 3}, events=[event("hit", {"text": text}) for text in hits])
        trace.leaf("chat small-model", chat(f"Notes: {joined()}\nInput: {QUESTION}\nBe brief.", model))
    return trace


@shape(Turn(note="contexts_guessed", without="question_guessed", one_text=True))
def own_span_that_names_the_question() -> Trace:
    """The application wrote what it was asked; the passages are cut out of the prompt."""
    return _told_by_hand({"rag.query.text": QUESTION})


@shape(Turn(without="guessed"))
def own_spans_of_any_names() -> Trace:
    """The outermost span has one text that the model was sent, and one below it tells of hits."""
    return _told_by_hand({"app.user_text": QUESTION}, PASSAGES)


@shape(Turn(without="guessed"))
def hit_that_begins_the_message() -> Trace:
    """The prompt begins with the first hit, as it might with instructions."""
    trace = Trace("my.service")
    with trace.span("handle", {"app.user_text": QUESTION}):
        trace.leaf("find", {"app.top_k": 3}, events=[event("hit", {"text": text}) for text in PASSAGES])
        trace.leaf("chat small-model", chat(f"{joined()}\n\n{QUESTION}", ANSWER))
    return trace


@shape(Turn(answer=PASSAGES[0], without="guessed"))
def answer_that_quotes_a_hit() -> Trace:
    """The model's answer is one of the passages, which stays one, and is not what was looked up under."""
    return _told_by_hand({"app.user_text": QUESTION}, PASSAGES, model=PASSAGES[0])


@shape(Turn(note="no_prompt_seen", without="guessed"))
def session_with_a_span_for_each_text() -> Trace:
    """Written down afterwards: a span with question and answer, one below it for each text of the context."""
    trace = Trace("session")
    with trace.span("RAG Session 7", {"rag.query": QUESTION, "rag.answer": ANSWER}):
        for at, text in enumerate(PASSAGES):
            trace.leaf(f"Context Chunk {at}", {"rag.context.index": at, "rag.context.text": text})
    return trace


@shape(Turn(note="no_prompt_seen", one_text=True))
def model_span_that_repeats_the_question_beside_a_preview() -> Trace:
    """No other span says what was asked, and a look-up tells its texts joined, under no question."""
    trace = Trace("service")
    with trace.span("rag_pipeline", {"request.id": "7"}):
        trace.leaf("retrieval", {"rag.chunk_count": 3, "rag.context_preview": joined()})
        trace.leaf("llm_call", oi("LLM", QUESTION, ANSWER))
    return trace


@shape(Turn(note="no_prompt_seen", without="guessed"))
def look_up_with_numbered_attributes() -> Trace:
    """Each text stands in an attribute with a number in its name, beside its score."""
    told = {f"rag.chunks.{at}.content": text for at, text in enumerate(PASSAGES)}
    trace = Trace("service")
    with trace.span("rag", {"rag.question": QUESTION, "rag.answer": ANSWER}):
        trace.leaf("retrieve", {"rag.query": QUESTION, **told, "rag.chunks.0.score": 0.9})
    return trace


SHAPES: tuple[Shape, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Shape))
