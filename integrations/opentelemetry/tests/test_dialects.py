"""Each dialect, as its instrumentors write it; what the real ones write is in `test_real_instrumentors`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from otel_parts import ANSWER, QUESTION, SCORES, TEXTS, documents, event, is_right, messages, oi, prompt, span

from steelyard.record import Record
from steelyard_opentelemetry import Span, read_spans

NATIVE = "llamaindex.opentelemetry.tracer"
NODES = [
    {"node": {"id_": f"d{n}", "text": text, "metadata": {}}, "score": score}
    for n, (text, score) in enumerate(zip(TEXTS, SCORES, strict=True), start=1)
]
BARE = json.dumps([{"id": f"d{n}", "score": score} for n, score in enumerate(SCORES, start=1)])


def one(spans: list[Span]) -> Record:
    reading = read_spans(spans)
    assert len(reading.records) == 1, [str(d) for d in reading.diagnoses]
    return reading.records[0]


def has_ids(record: Record) -> bool:
    found = [(context.id, context.score) for context in record.contexts]
    return found == [("d1", 0.91), ("d2", 0.55), ("d3", 0.31)]


def native(*, root: str = "RetrieverQueryEngine.query", query: bool = True, end: bool = True) -> list[Span]:
    """A query engine's turn in LlamaIndex's own integration."""
    events = [event("QueryStartEvent", query=QUESTION)] if query else []
    events += [event("QueryEndEvent", response__response=ANSWER)] if end else []
    top = span(root, at=(0, 9), scope=NATIVE, events=tuple(events))
    asked = {"str_or_query_bundle.query_str": QUESTION}
    found = (
        event("RetrievalStartEvent", **asked),
        event("RetrievalEndEvent", **asked, nodes=json.dumps(NODES)),
    )
    retriever = span("LR.retrieve", top, at=(1, 2), scope=NATIVE, events=found)
    said = json.dumps([{"role": "user", "blocks": [{"block_type": "text", "text": prompt()}]}])
    model = span(
        "OpenAI.chat", top, at=(3, 4), scope=NATIVE, events=(event("LLMChatStartEvent", messages=said),)
    )
    return [retriever, model, top]


def test_llamaindex_query_engine() -> None:
    record = one(native())
    assert is_right(record)
    assert has_ids(record)
    assert record.contexts_source == "in_prompt"


def test_llamaindex_streamed_query_has_no_answer() -> None:
    reading = read_spans(native(end=False))
    assert [d.cause for d in reading.diagnoses] == ["no_answer"]
    assert "openinference" in reading.diagnoses[0].advice


def test_llamaindex_chat_engine_streams_its_answer_in_pieces() -> None:
    spans = native(root="ContextChatEngine.stream_chat", query=False, end=False)
    deltas = tuple(event("StreamChatDeltaReceivedEvent", delta=word + " ") for word in ANSWER.split())
    written = span("StreamingAgentChatResponse.write", spans[-1], at=(4, 5), scope=NATIVE, events=deltas)
    assert is_right(one([*spans, written]))


def test_llamaindex_workflow_shows_its_events_as_python_does() -> None:
    spans = native(root="W.run", query=False, end=False)
    top = spans[-1]
    summary = {"llamaindex.step.input_summary": f"StartEvent(query={QUESTION!r})"}
    step = span("W.retrieve", top, at=(0, 1), scope=NATIVE, attributes=summary)
    shown = (event("step.output", output=f"StopEvent(result={ANSWER!r})"),)
    stop = span("W.synthesize", top, at=(5, 6), scope=NATIVE, events=shown)
    out = (event("workflow.output", output=f"StopEvent(result={ANSWER!r})"),)
    record = one([step, stop, spans[0], Span(**{**fields(top), "events": out})])
    assert is_right(record)


def fields(found: Span) -> dict[str, Any]:
    return {name: getattr(found, name) for name in Span.__slots__}


def test_openllmetry_llamaindex_tells_its_steps_apart_by_their_payloads() -> None:
    scope = "opentelemetry.instrumentation.llamaindex"

    def step(name: str, above: Span | None, at: tuple[float, float], given: object, got: object) -> Span:
        kind = "task" if above else "workflow"
        payload = {"traceloop.span.kind": kind, "traceloop.entity.input": json.dumps(given)}
        return span(
            name,
            above,
            at=at,
            scope=scope,
            attributes={**payload, "traceloop.entity.output": json.dumps(got)},
        )

    top = step(
        "E.workflow", None, (0, 9), {"str_or_query_bundle": QUESTION}, {"response": ANSWER, "metadata": {}}
    )
    found = step(
        "LR.task", top, (1, 2), {"qb": {"query_str": QUESTION}}, [json.dumps(node) for node in NODES]
    )
    said = {"messages": [{"role": "user", "blocks": [{"block_type": "text", "text": prompt()}]}]}
    reply = {"message": {"role": "assistant", "blocks": [{"text": ANSWER}]}, "raw": {"id": "x"}}
    record = one([found, step("M.task", top, (3, 4), said, reply), top])
    assert is_right(record)
    assert has_ids(record)
    assert record.contexts_source == "in_prompt"


def test_openllmetry_vector_store_events_are_documents() -> None:
    top = span(
        "ask",
        at=(0, 9),
        attributes={
            "traceloop.span.kind": "workflow",
            "traceloop.entity.input": json.dumps({"question": QUESTION}),
            "traceloop.entity.output": json.dumps(ANSWER),
        },
    )
    hits = tuple(
        event(
            "db.query.result",
            **{
                "db.query.result.id": f"d{n}",
                "db.query.result.document": text,
                "db.query.result.score": score,
            },
        )
        for n, (text, score) in enumerate(zip(TEXTS, SCORES, strict=True), start=1)
    )
    record = one([top, span("chroma.query", top, at=(1, 2), events=hits)])
    assert is_right(record)
    assert has_ids(record)


def genai(operation: str, above: Span | None, at: tuple[float, float], **values: Any) -> Span:
    named = {f"gen_ai.{key.replace('__', '.')}": item for key, item in values.items()}
    return span(operation, above, at=at, attributes={"gen_ai.operation.name": operation, **named})


def test_genai_texts_from_prompt_variables() -> None:
    top = genai("invoke_workflow", None, (0, 9))
    found = genai("retrieval", top, (1, 2), retrieval__query__text=QUESTION, retrieval__documents=BARE)
    variables = {"prompt__variable__context": "\n\n".join(TEXTS), "prompt__variable__question": QUESTION}
    chat = genai("chat", top, (3, 4), output__messages=messages(("assistant", ANSWER)), **variables)
    record = one([found, chat, top])
    assert (record.question, record.answer) == (QUESTION, ANSWER)
    assert [(context.text, context.id) for context in record.contexts] == [("\n\n".join(TEXTS), None)]


def test_genai_texts_from_a_tools_result() -> None:
    top = genai(
        "invoke_agent",
        None,
        (0, 9),
        input__messages=messages(("user", QUESTION)),
        output__messages=messages(("assistant", ANSWER)),
    )
    tool = genai("execute_tool", top, (1, 4), tool__name="search_docs", tool__call__result="\n\n".join(TEXTS))
    found = genai(
        "retrieval", tool, (2, 3), retrieval__query__text="capital of France", retrieval__documents=BARE
    )
    record = one([found, tool, top])
    assert (record.question, record.answer, record.contexts_source) == (QUESTION, ANSWER, "tool")
    assert [(context.text, context.id) for context in record.contexts] == [("\n\n".join(TEXTS), None)]


def test_genai_before_messages_were_json() -> None:
    top = span("ask", at=(0, 9), attributes=oi("CHAIN", input__value=QUESTION))
    older = {
        "gen_ai.request.model": "m",
        "gen_ai.prompt.0.role": "system",
        "gen_ai.prompt.0.content": "Be short.",
        "gen_ai.prompt.1.role": "user",
        "gen_ai.prompt.1.content": prompt(),
        "gen_ai.completion.0.content": ANSWER,
    }
    record = one([span("openai.chat", top, at=(1, 2), attributes=older), top])
    assert (record.question, record.answer, record.contexts_source) == (QUESTION, ANSWER, "guessed")


@pytest.mark.parametrize(
    "shown",
    [
        "Context information is below.\n-----------------\n{}\n-----------------\nQuery: {}\nAnswer: ",
        "Use this.\n<context>\n{}\n</context>\nQuestion: {}",
        "Documents:\n{}\n\nQuestion: {}\nHelpful Answer:",
        "Answer from the context.\nContext: {}\nQ: {}",
    ],
)
@pytest.mark.parametrize(
    "joined",
    [
        "\n\n".join(TEXTS),
        "\n---\n".join(TEXTS),
        "\n\n".join(f"source: d{n}.md\n\n{text}" for n, text in enumerate(TEXTS)),
        "\n".join(f"[{n}] {text}" for n, text in enumerate(TEXTS, start=1)),
        "\n\n".join(f"Document {n}: {text}" for n, text in enumerate(TEXTS, start=1)),
    ],
)
def test_passages_out_of_a_prompt(shown: str, joined: str) -> None:
    said = messages(("user", shown.format(joined, QUESTION)))
    chat = genai("chat", None, (0, 1), input__messages=said, output__messages=messages(("assistant", ANSWER)))
    record = one([chat])
    assert (record.question, record.answer, record.contexts_source) == (QUESTION, ANSWER, "guessed")
    told = " ".join(context.text for context in record.contexts)
    assert all(text in told for text in TEXTS if text != ANSWER)
    assert [context.id for context in record.contexts if context.id] == []


@pytest.mark.parametrize(
    "given",
    [
        QUESTION,
        {"question": QUESTION},
        {"input": QUESTION, "chat_history": [["user", "Before?"]]},
        {"messages": [["user", "Before?"], ["assistant", "Yes."], ["user", QUESTION]]},
        {"messages": [["user", QUESTION]]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": QUESTION}]}]},
        {"messages": [{"lc": 1, "type": "constructor", "kwargs": {"type": "human", "content": QUESTION}}]},
        {"messages": [{"type": "human", "data": {"content": QUESTION}}]},
        {"str_or_query_bundle": {"query_str": QUESTION}},
        {"kwargs": {"user_msg": QUESTION}},
        {"args": [QUESTION]},
    ],
)
@pytest.mark.parametrize(
    "got",
    [
        ANSWER,
        {"answer": ANSWER, "context": [{"page_content": "x"}]},
        {"messages": [["user", QUESTION], ["assistant", ANSWER]]},
        {"generations": [[{"text": ANSWER}]]},
        {"result": {"response": {"role": "assistant", "blocks": [{"block_type": "text", "text": ANSWER}]}}},
        f"StopEvent(result={ANSWER!r})",
    ],
)
def test_questions_and_answers_in_every_shape(given: object, got: object) -> None:
    shown = [item if isinstance(item, str) else json.dumps(item) for item in (given, got)]
    top = span("chain", at=(0, 3), attributes=oi("CHAIN", input__value=shown[0], output__value=shown[1]))
    listed = json.dumps([{"page_content": text, "metadata": {}} for text in TEXTS])
    found = span(
        "find", top, at=(1, 2), attributes=oi("RETRIEVER", input__value=QUESTION, output__value=listed)
    )
    assert is_right(one([found, top]))


def told(kind: str, above: Span | None, at: tuple[float, float], **values: Any) -> Span:
    return span(kind.lower(), above, at=at, attributes=oi(kind, **values))


def test_openinference_constants_of_a_template_are_no_passages() -> None:
    """The instrumentor tells what a template was made with among what it was filled in with."""
    tools = "search(query: str) - Searches the pages of the museum."
    variables = json.dumps({"tools": tools, "passages": TEXTS[0]})
    given = json.dumps({"input": QUESTION, "passages": TEXTS[0]})
    top = told("CHAIN", None, (0, 9), input__value=QUESTION, output__value=ANSWER)
    filled = told("PROMPT", top, (1, 2), input__value=given, llm__prompt_template__variables=variables)
    sent = f"{tools}\n{TEXTS[0]}\n{QUESTION}"
    model = told("LLM", top, (3, 4), input__value=sent, output__value=ANSWER)
    assert [context.text for context in one([filled, model, top]).contexts] == [TEXTS[0]]


def test_two_dialects_on_one_span_are_read_as_one() -> None:
    top = told("CHAIN", None, (0, 9), input__value=QUESTION)
    found = told("RETRIEVER", top, (1, 2), input__value=QUESTION, **documents())
    said = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": messages(("assistant", ANSWER))}
    model = told("LLM", top, (3, 4), input__value=prompt(), **said)
    assert is_right(one([found, model, top]))


def test_a_prompt_that_a_tool_wrote_is_no_passage() -> None:
    """A tool that builds the prompt has found nothing, whatever it is called."""
    asked = f"Use the context below.\n\nContext:\n{TEXTS[0]}\n\nQuestion: {QUESTION}"
    top = told("CHAIN", None, (0, 9), input__value=QUESTION, output__value=ANSWER)
    search = told("TOOL", top, (1, 2), input__value=QUESTION, output__value=TEXTS[0])
    written = told("TOOL", top, (2, 3), input__value=QUESTION, output__value=asked)
    model = told("LLM", top, (3, 4), input__value=asked, output__value=ANSWER)
    assert [context.text for context in one([search, written, model, top]).contexts] == [TEXTS[0]]


@pytest.mark.parametrize(
    "noted",
    [
        {"output__value": "\n\n".join(TEXTS)},
        {"retrieval__documents": json.dumps([{"id": "d1", "text": text} for text in TEXTS])},
        {"retrieval__documents": list(TEXTS)},
        {"retrieval__context": "\n\n".join(TEXTS)},
    ],
    ids=["a text", "JSON", "texts", "a context"],
)
def test_a_retriever_by_hand_says_what_it_found_in_its_own_way(noted: dict[str, Any]) -> None:
    top = told("CHAIN", None, (0, 9), input__value=QUESTION, output__value=ANSWER)
    found = told("RETRIEVER", top, (1, 2), input__value=QUESTION, **noted)
    model = told("LLM", top, (3, 4), input__value=prompt(), output__value=ANSWER)
    record = one([found, model, top])
    assert record.contexts_source == "in_prompt"
    assert "\n\n".join(context.text for context in record.contexts) == "\n\n".join(TEXTS)


def test_names_that_a_retriever_by_hand_notes_are_no_passages() -> None:
    top = told("CHAIN", None, (0, 9), input__value=QUESTION, output__value=ANSWER)
    found = told("RETRIEVER", top, (1, 2), input__value=QUESTION, output__value="Paris, Berlin")
    model = told("LLM", top, (3, 4), input__value=prompt(), output__value=ANSWER)
    assert read_spans([found, model, top]).records[0].contexts_source == "guessed"


def test_what_springs_filter_writes_is_not_called_broken() -> None:
    """Its texts are joined without escapes, so that what looks like JSON is none."""
    said = {
        "gen_ai.operation.name": "chat",
        "gen_ai.prompt": f'["{prompt()}"]',
        "gen_ai.completion": f'["{ANSWER}"]',
    }
    record = one([span("chat m", attributes=said, scope="org.springframework.boot")])
    assert (record.question, record.answer) == (QUESTION, ANSWER)
    assert not any("could not be read" in note for note in record.notes)


def test_a_call_under_an_operation_of_the_instrumentors_own_is_one() -> None:
    said = {
        "gen_ai.operation.name": "acompletion",
        "gen_ai.request.model": "m",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": prompt(),
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": ANSWER,
    }
    record = one([span("litellm_request", attributes=said, scope="litellm")])
    assert (record.question, record.answer, record.contexts_source) == (QUESTION, ANSWER, "guessed")
