"""Spans by hand: attributes and events under names of the application's own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

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
