"""Which spans are one turn: below a server's span, in several traces, told by two instrumentors."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest
from otel_parts import (
    ANSWER,
    QUESTION,
    SECOND,
    TEXTS,
    TRACE,
    documents,
    is_right,
    messages,
    oi,
    prompt,
    rag_turn,
    span,
)
from otel_turns import OTHER, causes, one, pieces_in_two_traces

from steelyard_opentelemetry import Span, read_spans

_NEXT = "And how many people live there?"


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


def test_turns_that_lost_the_same_span_may_be_parts_of_one_and_say_so() -> None:
    parts = [rag_turn(question=f"Who is number {n}?", at=5 * n, parent="00000000000000aa") for n in range(2)]
    records = read_spans([span for part in parts for span in part]).records
    assert [any("never ended" in note for note in record.notes) for record in records] == [True, True]
    assert not any("never ended" in note for note in one(parts[0]).notes), "a server's, more likely"


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


_NAMES = ["session.id", "gen_ai.conversation.id", "request.id", "steelyard.turn"]
_LONG = "5f0c2a9e41d84b7c"


@pytest.mark.parametrize("name", _NAMES)
def test_pieces_in_two_traces_are_joined_by_what_identifies_them(name: str) -> None:
    half, call = pieces_in_two_traces({name: _LONG}, {name: _LONG})
    record = one([half, call])
    assert (record.question, record.answer, record.contexts_source) == (QUESTION, ANSWER, "guessed")
    assert [c.id for c in record.contexts if c.id] == []
    assert record.trace is not None and record.trace.trace_id == OTHER
    assert record.metadata["traces"] == [half.trace_id]


_CHOSEN = ["7", "conversation-of-anna", "chatcmpl-0000000000000001", "2026-11-23T10:00:00.000001", "1" * 40]


@pytest.mark.parametrize("chosen", _CHOSEN)
@pytest.mark.parametrize("name", _NAMES)
def test_pieces_in_two_traces_are_not_joined_by_a_name_that_others_may_choose(name: str, chosen: str) -> None:
    (record,) = read_spans(pieces_in_two_traces({name: chosen}, {name: chosen})).records
    assert "traces" not in record.metadata


_DRAWN = [
    "0190d5ac-7c1e-7f31-9c53-a1b2c3d4e5f6",
    "chatcmpl-AbC9dEf2GhIj3kLmN4oP",
    "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "resp_68b1c9f0a2d481979be3",
]


@pytest.mark.parametrize("drawn", _DRAWN)
def test_ids_that_are_drawn_at_random_join_wherever_they_stand(drawn: str) -> None:
    record = one(list(pieces_in_two_traces({"session.id": drawn}, {"session.id": drawn})))
    assert len(record.metadata["traces"]) == 1


@pytest.mark.parametrize("name", ["user.id", "tenant.id", "session.id"])
def test_pieces_of_two_users_or_tenants_are_not_joined(name: str) -> None:
    pieces = pieces_in_two_traces({"request.id": _LONG, name: "anna"}, {"request.id": _LONG, name: "bert"})
    (record,) = read_spans(pieces).records
    assert "traces" not in record.metadata


def test_a_record_has_the_tenant_that_its_spans_name() -> None:
    half, call = pieces_in_two_traces({"session.id": _LONG}, {"session.id": _LONG, "tenant.id": "acme"})
    assert one([half, call]).tenant == "acme"


def test_pieces_that_are_linked_are_joined_whichever_holds_the_link() -> None:
    half, call = pieces_in_two_traces({}, {})
    linked = replace(call, links=((half.trace_id, half.span_id),))
    assert one([half, linked]).metadata["traces"] == [half.trace_id]
    linked = replace(half, links=((call.trace_id, call.span_id),))
    assert one([linked, call]).metadata["traces"] == [half.trace_id]


@pytest.mark.parametrize("names", [({}, {}), ({"session.id": _LONG}, {"session.id": _LONG[::-1]})])
def test_pieces_in_two_traces_are_not_joined_because_their_texts_are_alike(
    names: tuple[dict[str, object], dict[str, object]],
) -> None:
    reading = read_spans(pieces_in_two_traces(*names))
    (record,) = reading.records
    assert (record.question, record.answer, record.contexts_source) == (QUESTION, ANSWER, "guessed")
    assert [context.id for context in record.contexts if context.id] == []
    assert any(note.startswith("contexts_guessed") for note in record.notes)
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
    assert ["Bert" in str(record.contexts[0].text) for record in reading.records] == [True]
    assert not any("Anna" in str(asdict(record)) for record in reading.records)
    assert [diagnosis.cause for diagnosis in reading.diagnoses] == ["unlinked", "unlinked"]
    assert "steelyard.turn" in reading.diagnoses[0].advice


def test_halves_of_two_processes_are_not_joined() -> None:
    found = oi("RETRIEVER", input__value=QUESTION, **documents())
    said = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": messages(("user", "Hello " + QUESTION))}
    call = replace(span("chat", at=(2, 3), trace=OTHER, attributes=said), service="another")
    assert sorted(causes(read_spans([span("find", attributes=found), call]))) == ["no_retrieval", "unlinked"]


def look_up_and_answer(
    found: dict[str, object],
    *before: tuple[str, str],
    asked: str = QUESTION,
    at: tuple[float, float] = (0, 1),
    service: str = "app",
) -> int:
    """How many records are joined of a retriever and a call in two traces of one session."""
    said = {
        "session.id": _LONG,
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": messages(
            *before, ("user", f"Use the wiki on Paris. {prompt(_NEXT if before else QUESTION)}")
        ),
        "gen_ai.output.messages": messages(("assistant", ANSWER)),
    }
    step = span("find", at=at, attributes=oi("RETRIEVER", input__value=asked, **found))
    step = replace(step, service=service, attributes={**step.attributes, "session.id": _LONG})
    call = span("chat", at=(2, 3), trace=OTHER, attributes=said)
    reading = read_spans([step, call])
    return sum("traces" in record.metadata for record in reading.records)


def test_a_look_up_is_of_the_answer_that_shows_it_behind_it_in_one_service() -> None:
    assert look_up_and_answer(documents()) == 1
    assert look_up_and_answer(documents(), service="another") == 0
    assert look_up_and_answer(documents(), at=(1, 4)) == 0


def test_a_look_up_that_tells_its_query_alone_is_known_by_more_than_a_word() -> None:
    assert look_up_and_answer({}) == 1
    assert look_up_and_answer({}, asked="Paris.") == 0
    # That of an earlier turn stands in the conversation.
    assert look_up_and_answer({}, ("user", QUESTION), ("assistant", ANSWER)) == 0
    assert look_up_and_answer({}, ("user", QUESTION), ("assistant", ANSWER), asked=_NEXT) == 1


def test_the_same_words_twice_are_two_turns_by_one_instrumentor_or_in_two_services() -> None:
    first, again = rag_turn(), [replace(one, trace_id=OTHER) for one in rag_turn()]
    assert len(read_spans([*first, *again]).records) == 2
    server, other = span("POST /ask", at=(0, 9)), span("POST /ask", at=(0, 9), trace=OTHER)
    elsewhere = [replace(one, service="another") for one in traceloop_turn(other, OTHER)]
    assert len(read_spans([*elsewhere, server, *rag_turn(parent=server)]).records) == 2


def test_a_counter_of_another_service_is_not_the_same_turn() -> None:
    """Even within a trace: what tells no texts belongs to nobody else's answer."""
    half, call = pieces_in_two_traces({"steelyard.turn": "7"}, {"steelyard.turn": "7"})
    there = replace(call, trace_id=half.trace_id)
    elsewhere = replace(there, service="another")
    assert read_spans([half, there]).diagnoses == []
    assert [one.cause for one in read_spans([half, elsewhere]).diagnoses] == ["documents_without_text"]


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
