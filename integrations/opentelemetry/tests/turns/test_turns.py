"""What a record is made of: question, contexts, hops, stages and marks, out of hand-made spans."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from otel_parts import ANSWER, QUESTION, TEXTS, documents, is_right, messages, oi, rag_turn, span
from otel_turns import causes, one

from steelyard_opentelemetry import Span, read_spans


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
    retriever, model, _ = spans
    assert set(record.origins["contexts"]) == {f"retriever {retriever.name}"}
    assert record.origins["answer"] == (f"reply of model {model.name}",)


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
    told = " ".join(context.text for context in record.contexts)
    assert all(text in told for text in TEXTS)


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


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("answer", ["Both say that Skagen comes first.", ""])
def test_a_call_that_joins_what_was_answered_of_parts_is_the_turn(answer: str, apart: bool) -> None:
    """Below one span, or each in a trace; where none tells its reply, a part's is not taken for it."""
    server = span("POST /ask", at=(0, 9))
    said = ("By the first file it is Skagen.", "By the second file it is Skagen too.")

    def step(name: str, at: float, attributes: dict[str, Any]) -> Span:
        if not apart:
            return span(name, server, at=(at, at + 0.5), attributes=attributes)
        named = {**attributes, "session.id": "9f86d081884c7d65"}
        return span(name, trace=f"{int(at):032x}", at=(at, at + 0.5), attributes=named)

    def call(text: str, reply: str, at: int) -> Span:
        told = {"input.messages": messages(("user", text)), "output.messages": messages(("assistant", reply))}
        return step(
            "chat", at, {"gen_ai.operation.name": "chat", **{f"gen_ai.{name}": told[name] for name in told}}
        )

    spans = [call(f"Join these.\nQuestion: {QUESTION}\n1. {said[0]}\n2. {said[1]}", answer, 6)]
    for at, (text, reply) in enumerate(zip(TEXTS, said, strict=False)):
        found = oi("RETRIEVER", input__value=QUESTION, **documents((text,)))
        asking = call(f"Of this file alone: {text}\nQuestion: {QUESTION}", reply, 2 * at + 2)
        spans += [step("find", 2 * at + 1, found), asking]
    reading = read_spans(spans if apart else [server, *spans])
    if answer:
        [record] = reading.records
        assert (record.question, record.answer) == (QUESTION, answer)
        assert [one.text for one in record.contexts or ()] == list(TEXTS[:2])
    else:
        assert not reading.records and causes(reading) == ["no_answer"]


def test_tools_that_an_index_of_objects_finds_are_no_passages() -> None:
    tool = (
        "Tool name: crm\nTool description: crm(query: 'str') -> 'Any'\nLooks something up.\nTool schema: {}\n"
    )
    root = span("agent", at=(0, 9), attributes=oi("AGENT", input__value=QUESTION, output__value=ANSWER))
    found = span(
        "tools", root, at=(1, 2), attributes=oi("RETRIEVER", input__value=QUESTION, **documents((tool,)))
    )
    turn = rag_turn(at=3, parent=root)
    assert is_right(one([root, found, *turn]))


def test_engines_whose_replies_one_call_made_an_answer_of_are_one_turn() -> None:
    server = span("POST /ask", at=(0, 30))
    replies = [f"The file {n} says that it is Paris." for n in range(2)]
    engines = [each for n in range(2) for each in rag_turn(answer=replies[n], at=5 * n, parent=server)]
    asked = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": messages(("user", "\n".join(["Make one answer.", *replies, QUESTION]))),
        "gen_ai.output.messages": messages(("assistant", ANSWER)),
    }
    last = span("chat", server, at=(20, 21), attributes=asked)
    record = one([server, *engines, last])
    assert (record.question, record.answer) == (QUESTION, ANSWER)
    assert is_right(record)
    untold = replace(last, attributes={**asked, "gen_ai.output.messages": messages(("assistant", ""))})
    assert [each.answer for each in read_spans([server, *engines, untold]).records] in ([], [""])
