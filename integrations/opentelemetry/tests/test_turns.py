"""Turns out of hand-made spans: what belongs together, what does not, and why something gives no record."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from otel_parts import (
    ANSWER,
    QUESTION,
    SCORES,
    SECOND,
    TEXTS,
    TRACE,
    documents,
    event,
    is_right,
    messages,
    oi,
    prompt,
    rag_turn,
    span,
)

from steelyard.record import Record
from steelyard_opentelemetry import Extraction, Span, read_spans

OTHER = "1af7651916cd43dd8448eb211c80319c"


def one(spans: list[Span]) -> Record:
    reading = read_spans(spans)
    assert len(reading.records) == 1, (reading.records, [str(d) for d in reading.diagnoses])
    return reading.records[0]


def causes(reading: Extraction) -> list[str]:
    assert reading.records == []
    return [diagnosis.cause for diagnosis in reading.diagnoses]


def test_a_turn_has_its_identity_times_and_source() -> None:
    spans = rag_turn()
    record = one(spans)
    assert is_right(record)
    assert record.contexts_source == "in_prompt"
    assert [(c.id, c.score, c.rank, c.in_prompt) for c in record.contexts] == [
        ("d1", 0.91, 0, True),
        ("d2", 0.55, 1, True),
        ("d3", 0.31, 2, True),
    ]
    assert record.trace is not None and record.timings is not None
    assert (record.trace.trace_id, record.trace.span_id) == (spans[-1].trace_id, spans[-1].span_id)
    assert (record.timings.total, record.timings.retrieval, record.timings.generation) == (3.0, 1.0, 1.0)
    assert record.metadata["dialects"] == ["openinference"]


def test_the_span_is_named_whose_documents_the_contexts_are() -> None:
    retriever, model, root = rag_turn()
    assert one([retriever, model, root]).metadata["retrieval_span"] == retriever.span_id
    inner = span("bm25", retriever, at=(0, 0.5), attributes=oi("RETRIEVER", **documents(TEXTS[:1])))
    assert one([inner, retriever, model, root]).metadata["retrieval_span"] == retriever.span_id


def test_no_span_is_named_where_several_retrieved_or_positions_differ() -> None:
    retriever, model, root = rag_turn()
    more = span("again", root, at=(1, 1.5), attributes=oi("RETRIEVER", **documents(("Another passage.",))))
    assert "retrieval_span" not in one([retriever, more, model, root]).metadata
    best = documents((TEXTS[2], TEXTS[0]), prefix="reranker.output_documents")
    rerank = span("rerank", root, at=(1, 2), attributes=oi("RERANKER", **best))
    assert "retrieval_span" not in one([retriever, rerank, root]).metadata


def test_the_same_spans_give_the_same_id_in_any_order_and_however_often() -> None:
    spans = rag_turn()
    first, again = one(spans), one([*reversed(spans), *spans])
    assert first == again


def test_several_turns_below_one_server_span() -> None:
    server = span("POST /batch", at=(0, 30))
    spans = [server]
    for number in range(3):
        spans += rag_turn(question=f"Which city is number {number}?", at=number * 5, parent=server)
    reading = read_spans(spans)
    assert [record.question for record in reading.records] == [f"Which city is number {n}?" for n in range(3)]
    assert reading.diagnoses == []


def test_a_bare_bracket_around_turns_is_not_a_turn() -> None:
    loop = span("loop", at=(0, 30), attributes=oi("CHAIN"))
    spans = [
        loop,
        *rag_turn(question="Who is first?", parent=loop),
        *rag_turn(question="Who is next?", at=5, parent=loop),
    ]
    assert [record.question for record in read_spans(spans).records] == ["Who is first?", "Who is next?"]


def test_pieces_below_a_server_span_are_one_turn() -> None:
    server = span("POST /ask", at=(0, 9))
    retriever = span(
        "find", server, at=(1, 2), attributes=oi("RETRIEVER", input__value=QUESTION, **documents())
    )
    model = span(
        "chat",
        server,
        at=(3, 4),
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": messages(("user", prompt())),
            "gen_ai.output.messages": messages(("assistant", ANSWER)),
        },
    )
    record = one([retriever, model, server])
    assert is_right(record)
    assert record.trace is not None and record.trace.span_id == server.span_id
    assert record.metadata["dialects"] == ["genai", "openinference"]


def test_a_turn_whose_root_never_ended() -> None:
    retriever, model, _ = rag_turn(parent=None)
    spans = [replace(retriever, parent_id="00000000000000aa"), replace(model, parent_id="00000000000000bb")]
    record = one(spans)
    assert is_right(record)
    assert any("never ended" in note for note in record.notes)


def test_a_lost_span_in_the_middle_makes_no_second_turn() -> None:
    root = span("agent", at=(0, 9), attributes=oi("AGENT", input__value=QUESTION, output__value=ANSWER))
    inner = rag_turn(question="capital of France", parent="00000000000000cc", at=1)
    assert is_right(one([root, *inner]))


def test_a_turn_below_one_that_has_ended_is_a_turn_of_its_own() -> None:
    first = rag_turn(question="Who is first?")
    second = rag_turn(question="Who is next?", answer="Another.", parent=first[-1], at=5)
    records = {record.question: record.answer for record in read_spans([*first, *second]).records}
    assert records == {"Who is first?": ANSWER, "Who is next?": "Another."}


def test_formatted_documents_are_no_answer() -> None:
    """The upper half of the trace is lost; what is left of it retrieved and formatted."""
    joined = "\n\n".join(TEXTS)
    step = span("step", "aa", at=(0, 2), attributes=oi("CHAIN", input__value=QUESTION, output__value=joined))
    found = span("find", step, attributes=oi("RETRIEVER", input__value=QUESTION, **documents()))
    assert causes(read_spans([found, step])) == ["no_answer"]


def test_pieces_of_two_turns_without_roots_do_not_mix() -> None:
    spans: list[Span] = []
    for number, texts in enumerate((TEXTS, ("Rome is the capital of Italy.", "Italy is in Europe."))):
        question = QUESTION if number == 0 else "What is the capital of Italy?"
        answer = ANSWER if number == 0 else "Rome."
        at = number * 0.5
        found = span(
            "find",
            "aa",
            at=(at, at + 1),
            attributes=oi("RETRIEVER", input__value=question, **documents(texts)),
        )
        sent = {
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": prompt(question, texts),
        }
        got = {
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": answer,
        }
        spans += [found, span("model", "bb", at=(2 + at, 3 + at), attributes=oi("LLM", **sent, **got))]
    records = {record.question: (len(record.contexts), record.answer) for record in read_spans(spans).records}
    assert records == {QUESTION: (3, ANSWER), "What is the capital of Italy?": (2, "Rome.")}


def pieces_in_two_traces(first: dict[str, object], second: dict[str, object]) -> tuple[Span, Span]:
    """A retrieval that tells ids and scores, and the model call that used it, each in a trace of its own."""
    listed = json.dumps([{"id": f"d{n}", "score": score} for n, score in enumerate(SCORES, start=1)])
    found = {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.query.text": QUESTION,
        "gen_ai.retrieval.documents": listed,
    }
    said = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": messages(("user", prompt())),
        "gen_ai.output.messages": messages(("assistant", ANSWER)),
    }
    half = span("retrieval", at=(0, 1), attributes={**found, **first})
    return half, span("chat", at=(2, 3), trace=OTHER, attributes={**said, **second})


@pytest.mark.parametrize("name", ["session.id", "gen_ai.conversation.id", "request.id", "steelyard.turn"])
def test_pieces_in_two_traces_are_joined_by_what_identifies_them(name: str) -> None:
    half, call = pieces_in_two_traces({name: "7"}, {name: "7"})
    record = one([half, call])
    assert is_right(record)
    assert [(c.id, c.score) for c in record.contexts] == [("d1", 0.91), ("d2", 0.55), ("d3", 0.31)]
    assert record.trace is not None and record.trace.trace_id == OTHER
    assert record.metadata["traces"] == [half.trace_id]


def test_pieces_that_are_linked_are_joined_whichever_holds_the_link() -> None:
    half, call = pieces_in_two_traces({}, {})
    linked = replace(call, links=((half.trace_id, half.span_id),))
    assert one([half, linked]).contexts[0].id == "d1"
    linked = replace(half, links=((call.trace_id, call.span_id),))
    assert one([linked, call]).contexts[0].id == "d1"


@pytest.mark.parametrize("names", [({}, {}), ({"session.id": "7"}, {"session.id": "8"})])
def test_pieces_in_two_traces_are_not_joined_because_their_texts_are_alike(
    names: tuple[dict[str, object], dict[str, object]],
) -> None:
    reading = read_spans(pieces_in_two_traces(*names))
    (record,) = reading.records
    assert is_right(record)
    assert [context.id for context in record.contexts] == [None, None, None]
    assert any(note.startswith("contexts_from_prompt") for note in record.notes)
    assert "traces" not in record.metadata
    (left,) = reading.diagnoses
    assert left.cause == "documents_without_text"


def test_documents_of_one_tenant_never_reach_the_record_of_another() -> None:
    """Two users ask at the same time; only one model call follows, and a document is shared."""
    shared = "Every customer can cancel within 14 days."
    first = oi("RETRIEVER", input__value=QUESTION, **documents((shared, "Anna pays 90 euros.")))
    second = oi("RETRIEVER", input__value=QUESTION, **documents((shared, "Bert pays 40 euros.")))
    said = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": messages(("user", prompt(texts=(shared, "Bert pays 40 euros.")))),
        "gen_ai.output.messages": messages(("assistant", ANSWER)),
    }
    spans = [
        span("find", trace="1" * 32, at=(0, 1), attributes=first),
        span("find", trace="2" * 32, at=(0, 1), attributes=second),
        span("chat", trace="3" * 32, at=(2, 3), attributes=said),
    ]
    reading = read_spans(spans)
    assert [len(record.contexts) for record in reading.records] == [2]
    assert not any("Anna" in str(record) for record in reading.records)
    assert [diagnosis.cause for diagnosis in reading.diagnoses] == ["unlinked", "unlinked"]
    assert "steelyard.turn" in reading.diagnoses[0].advice


def test_halves_of_two_processes_are_not_joined() -> None:
    found = oi("RETRIEVER", input__value=QUESTION, **documents())
    said = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": messages(("user", "Hello " + QUESTION))}
    call = replace(span("chat", at=(2, 3), trace=OTHER, attributes=said), service="another")
    assert sorted(causes(read_spans([span("find", attributes=found), call]))) == ["no_retrieval", "unlinked"]


def traceloop_turn(server: Span, trace: str = TRACE) -> list[Span]:
    """The turn as OpenLLMetry writes it."""
    root = span(
        "RunnableSequence.workflow",
        server,
        at=(0, 4),
        trace=trace,
        scope="opentelemetry.instrumentation.langchain",
        attributes={
            "traceloop.span.kind": "workflow",
            "traceloop.entity.input": json.dumps({"inputs": QUESTION}),
            "traceloop.entity.output": json.dumps({"outputs": ANSWER}),
        },
    )
    retriever = span(
        "vector_db_retrieve R",
        root,
        at=(1, 2),
        trace=trace,
        attributes={
            "traceloop.span.kind": "task",
            "gen_ai.operation.name": "vector_db_retrieve",
            "traceloop.entity.input": json.dumps({"query": QUESTION}),
            "traceloop.entity.output": json.dumps({"documents": [{"page_content": text} for text in TEXTS]}),
        },
    )
    return [server, root, retriever]


def test_two_instrumentors_tell_one_turn() -> None:
    server = span("POST /ask", at=(0, 9))
    reading = read_spans([*traceloop_turn(server), *rag_turn(parent=server)])
    assert [is_right(record) for record in reading.records] == [True]
    assert reading.duplicates == 1
    # The one that tells more is kept.
    assert reading.records[0].metadata["dialects"] == ["openinference"]


def test_a_turn_of_another_user_with_the_same_words_is_not_told_again() -> None:
    """Each instrumentor tells a turn once, so that a second telling by the same one is another turn."""
    server, other = span("POST /ask", at=(0, 9)), span("POST /ask", at=(0, 9), trace=OTHER)
    spans = [*traceloop_turn(other, OTHER), *traceloop_turn(server), *rag_turn(parent=server)]
    reading = read_spans(spans)
    assert [is_right(record) for record in reading.records] == [True, True]
    assert {record.trace_id for record in reading.records} == {TRACE, OTHER}
    assert reading.duplicates == 1


def test_two_dialects_on_the_same_span_give_each_part_once() -> None:
    retriever, model, root = rag_turn()
    listed = json.dumps([{"content": text} for text in TEXTS])
    both = {
        **retriever.attributes,
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.documents": listed,
    }
    record = one([replace(retriever, attributes=both), model, root])
    assert is_right(record)
    assert record.contexts[0].id == "d1"


def agent(*, results: bool = True) -> list[Span]:
    """An agent that searches twice."""
    root = span("agent", at=(0, 9), attributes=oi("AGENT", input__value=QUESTION, output__value=ANSWER))
    spans = [root]
    for number, texts in enumerate((TEXTS[:2], TEXTS[1:])):
        at = number * 3.0
        tool = span(
            "search",
            root,
            at=(at, at + 2),
            attributes=oi("TOOL", tool__name="search", output__value="\n\n".join(texts)),
        )
        spans.append(tool)
        if results:
            asked = oi("RETRIEVER", input__value=f"query {number}", **documents(texts))
            spans.append(span("find", tool, at=(at, at + 1), attributes=asked))
    return spans


def test_an_agent_is_one_turn_with_hops() -> None:
    record = one(agent())
    assert [(c.text, c.hop, c.query) for c in record.contexts] == [
        (TEXTS[0], 0, "query 0"),
        (TEXTS[1], 0, "query 0"),
        (TEXTS[2], 1, "query 1"),
    ]
    assert (record.question, record.standalone_question, record.answer) == (QUESTION, None, ANSWER)


def test_results_of_tools_stand_in_for_documents() -> None:
    record = one(agent(results=False))
    assert record.contexts_source == "tool"
    assert [context.text for context in record.contexts] == list(TEXTS)


def test_documents_of_every_tool_call_count() -> None:
    root = span("agent", at=(0, 9), attributes=oi("AGENT", input__value=QUESTION, output__value=ANSWER))
    spans = [root]
    for number, texts in enumerate((TEXTS[:2], TEXTS[1:])):
        artifact = [{"id": text[:1], "page_content": text, "metadata": {}} for text in texts]
        output = {"type": "tool", "data": {"content": "two passages", "artifact": artifact}}
        found = oi("TOOL", tool__name="kb", output__value=json.dumps(output))
        spans.append(span("kb", root, at=(number, number + 1), attributes=found))
    record = one(spans)
    assert [(c.text, c.id, c.hop) for c in record.contexts] == [
        (TEXTS[0], "P", 0),
        (TEXTS[1], "F", 0),
        (TEXTS[2], "B", 1),
    ]
    assert record.contexts_source == "tool"


def test_a_rewritten_question_is_kept_apart() -> None:
    retriever, model, root = rag_turn(question="And its capital?")
    rewritten = replace(retriever, attributes={**retriever.attributes, "input.value": QUESTION})
    record = one([rewritten, model, root])
    assert (record.question, record.standalone_question) == ("And its capital?", None)
    given = {"input": "And its capital?", "chat_history": [["user", "Where is Lyon?"], ["ai", "In France."]]}
    talking = replace(root, attributes={**root.attributes, "input.value": json.dumps(given)})
    record = one([rewritten, model, talking])
    assert (record.question, record.standalone_question) == ("And its capital?", QUESTION)


def test_a_reranker_decides_where_no_prompt_is_seen() -> None:
    retriever, _, root = rag_turn()
    best = documents((TEXTS[2], TEXTS[0]), prefix="reranker.output_documents")
    rerank = span("rerank", root, at=(1, 2), attributes=oi("RERANKER", **best))
    record = one([retriever, rerank, root])
    assert [context.text for context in record.contexts] == [TEXTS[2], TEXTS[0]]
    assert [context.text for context in record.retrieved] == list(TEXTS)


def test_an_inner_retrieval_is_a_stage() -> None:
    retriever, model, root = rag_turn()
    inner = span(
        "bm25", retriever, at=(0, 0.5), attributes=oi("RETRIEVER", input__value="q", **documents(TEXTS[:1]))
    )
    record = one([inner, retriever, model, root])
    assert is_right(record)
    assert [(stage.name, len(stage.contexts)) for stage in record.stages] == [("bm25", 1)]


def test_marks_by_hand_win() -> None:
    marked = span(
        "answer",
        attributes={
            "steelyard.question": QUESTION,
            "steelyard.contexts": TEXTS,
            "steelyard.answer": ANSWER,
            "steelyard.reference": "Paris",
        },
    )
    record = one([marked, *rag_turn(question="something else", answer="else", parent=marked)])
    assert is_right(record)
    assert record.reference == "Paris"


def test_marked_contexts_all_count_whatever_the_prompt_shows() -> None:
    marked = span("answer", at=(0, 5), attributes={"steelyard.contexts": [*TEXTS, "Rome is in Italy."]})
    record = one([marked, *rag_turn(parent=marked)])
    assert [context.text for context in record.contexts] == [*TEXTS, "Rome is in Italy."]


def test_what_is_not_marked_is_found_below() -> None:
    marked = span("answer", at=(0, 5), attributes={"steelyard.question": QUESTION})
    assert is_right(one([marked, *rag_turn(question="something else", parent=marked)]))


@pytest.mark.parametrize(
    ("kind", "status", "error"),
    [
        ("builtins.ValueError", "error", "ValueError: broken"),
        ("asyncio.exceptions.CancelledError", "cancelled", None),
        ("langgraph.errors.GraphInterrupt", "interrupted", None),
    ],
)
def test_a_failed_root_tells_how_it_ended(kind: str, status: str, error: str | None) -> None:
    retriever, model, root = rag_turn()
    raised = event("exception", exception__type=kind, exception__message="broken")
    record = one([retriever, model, replace(root, failed=True, events=(raised,))])
    assert (record.status, record.error, record.question) == (status, error, QUESTION)


def test_an_answer_whose_stream_was_closed_early_is_truncated() -> None:
    retriever, model, root = rag_turn()
    closed = replace(model, failed=True, events=(event("exception", exception__type="GeneratorExit"),))
    assert one([retriever, closed, root]).status == "truncated"
    hedged = replace(model, span_id="f" * 16, attributes={**model.attributes})
    assert one([retriever, closed, hedged, root]).status == "ok"


def test_an_answer_that_hides_an_error_is_an_error() -> None:
    retriever, model, root = rag_turn(answer="Empty Response")
    record = one([retriever, replace(model, failed=True, error="timeout"), root])
    assert (record.status, record.error, record.answer) == ("error", "timeout", "")


def test_hidden_content_names_the_switch_of_its_dialect() -> None:
    redacted = {
        "openinference.span.kind": "CHAIN",
        "input.value": "__REDACTED__",
        "output.value": "__REDACTED__",
    }
    (found,) = read_spans([span("chain", attributes=redacted)]).diagnoses
    assert (found.cause, "OPENINFERENCE_HIDE_INPUTS" in found.advice) == ("content_off", True)
    bare = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    (found,) = read_spans([span("chat", attributes=bare)]).diagnoses
    assert found.cause == "content_off"
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in str(found)
    other = span("ChatOpenAI.chat", scope="opentelemetry.instrumentation.langchain", attributes=bare)
    (found,) = read_spans([other]).diagnoses
    assert (found.cause, "TRACELOOP_TRACE_CONTENT" in found.advice) == ("content_off", True)


def test_half_hidden_content_is_told_as_hidden() -> None:
    retriever, model, root = rag_turn()
    silent = {**root.attributes, "output.value": "__REDACTED__"}
    blind = oi("LLM", output__value="__REDACTED__")
    reading = read_spans([retriever, replace(model, attributes=blind), replace(root, attributes=silent)])
    assert causes(reading) == ["content_off"]


def test_dropped_attributes_are_told_in_the_record_or_instead_of_it() -> None:
    retriever, model, root = rag_turn()
    last = {key: value for key, value in retriever.attributes.items() if ".0." not in key}
    record = one([replace(retriever, attributes=last, dropped=3), model, root])
    assert record.truncated == ("contexts",)
    assert any("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT" in note for note in record.notes)
    empty = replace(retriever, attributes=oi("RETRIEVER"), dropped=140)
    blind = replace(model, attributes=oi("LLM"))
    assert causes(read_spans([empty, blind, root])) == ["attributes_dropped"]


def test_broken_json_is_told() -> None:
    cut = {"openinference.span.kind": "CHAIN", "input.value": '{"question": "What is', "output.value": ANSWER}
    retriever = span("find", attributes=oi("RETRIEVER", **documents()))
    root = span("chain", attributes=cut)
    assert causes(read_spans([root, replace(retriever, parent_id=root.span_id)])) == ["unreadable"]


@pytest.mark.parametrize(
    ("spans", "cause"),
    [
        ([span("GET /")], "no_llm_spans"),
        ([span("chain", attributes=oi("CHAIN", input__value="Hi", output__value="Hello"))], "no_retrieval"),
        ([span("find", attributes=oi("RETRIEVER", input__value=QUESTION, **documents()))], "unlinked"),
        ([span("find", attributes=oi("RETRIEVER", input__value=QUESTION))], "no_documents"),
        ([span("step", "aa", attributes=oi("CHAIN"))], "orphan"),
    ],
)
def test_every_lack_has_a_name(spans: list[Span], cause: str) -> None:
    assert causes(read_spans(spans)) == [cause]


def test_a_circle_of_parents_ends() -> None:
    first = span("a", "b", attributes=oi("CHAIN"))
    second = replace(span("b", first, attributes=oi("CHAIN")), span_id="b")
    reading = read_spans([first, second])
    assert reading.records == []


def test_ten_megabytes_are_cut_or_told() -> None:
    huge = "x" * 10_000_000
    retriever, model, root = rag_turn()
    large = {**root.attributes, "input.value": huge}
    assert one([retriever, model, replace(root, attributes=large)]).question == huge
    packed = {**root.attributes, "input.value": json.dumps({"question": huge}), "output.value": ""}
    quiet = replace(model, attributes=oi("LLM"))
    unasked = replace(retriever, attributes=oi("RETRIEVER", **documents()))
    assert causes(read_spans([unasked, quiet, replace(root, attributes=packed)])) == ["unreadable"]


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    [
        *("openinference.span.kind", "input.value", "output.value", "llm.input_messages.0.message.role"),
        *("llm.input_messages.0.message.content", "retrieval.documents.0.document.content", "metadata"),
        *(
            "retrieval.documents.0.document.metadata",
            "retrieval.documents.x",
            "llm.prompt_template.variables",
        ),
        *(
            "traceloop.span.kind",
            "traceloop.entity.input",
            "traceloop.entity.output",
            "gen_ai.operation.name",
        ),
        *(
            "gen_ai.input.messages",
            "gen_ai.output.messages",
            "gen_ai.retrieval.documents",
            "gen_ai.prompt.0.content",
        ),
        *(
            "gen_ai.tool.call.result",
            "steelyard.question",
            "steelyard.contexts",
            "steelyard.answer",
            "tool.name",
        ),
    ]
)
KINDS = st.sampled_from(
    ["CHAIN", "LLM", "RETRIEVER", "TOOL", "workflow", "task", "chat", "retrieval", "execute_tool"]
)
VALUES = ODD | KINDS | ODD.map(lambda value: json.dumps(value)) | st.just('{"cut": [1, ')


@given(st.lists(st.dictionaries(KEYS, VALUES, max_size=6), min_size=1, max_size=4), st.data())
def test_no_attributes_whatever_raise(found: list[dict[str, object]], data: st.DataObject) -> None:
    spans: list[Span] = []
    for attributes in found:
        above = data.draw(st.sampled_from([None, "aa", *spans]))
        spans.append(span("any", above, at=(0, data.draw(st.integers(0, 3))), attributes=attributes))
    reading = read_spans(spans)
    assert len(reading.records) + len(reading.diagnoses) <= len(spans)


def test_patience_is_measured_on_the_spans() -> None:
    half = span("find", attributes=oi("RETRIEVER", input__value=QUESTION, **documents()))
    said = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": messages(("user", prompt())),
        "gen_ai.output.messages": messages(("assistant", ANSWER)),
    }
    late = span("chat", at=(9000, 9001), trace=OTHER, attributes=said)
    record = one([half, late])
    assert record.timings is not None and record.timings.started_at == late.start / SECOND
