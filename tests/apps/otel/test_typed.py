"""What users and models wrote stays as it was written, and what a template had before is no passage."""

from __future__ import annotations

import json
from dataclasses import replace

from apps.otel.attributes import oi, oi_documents, oi_model, oi_retriever
from apps.otel.general.conventions import chat
from apps.otel.shapes import ANSWER, PASSAGES, QUESTION, Trace, compact, joined, prompt
from steelyard.record import Record
from steelyard_opentelemetry import read_spans

TYPED = json.dumps({"question": QUESTION, "context": ["The saddle is made of leather."]})
ROLE = "You answer for the front desk of a small office, briefly and in plain words."


def one(trace: Trace) -> Record:
    reading = read_spans(trace.spans)
    assert len(reading.records) == 1, [str(each) for each in reading.diagnoses]
    return reading.records[0]


def texts(record: Record) -> tuple[str, ...]:
    return tuple(context.text for context in record.contexts)


def test_a_question_in_json_is_read_as_it_was_typed() -> None:
    trace = Trace("openinference.instrumentation.llama_index")
    with trace.span("POST /chat", scope="web"):
        trace.leaf("Shelf.retrieve", oi_retriever(TYPED))
        trace.leaf("CompactAndRefine.synthesize", oi("CHAIN", TYPED, "Empty Response"))
    assert one(trace).question == TYPED


def test_a_workflow_of_llamaindex_is_given_words_and_a_graph_its_state() -> None:
    said = [{"role": "user", "parts": [{"type": "text", "content": TYPED}]}]
    asked = {}
    for framework in ("llama_index", "langchain"):
        trace = Trace(f"opentelemetry.instrumentation.genai.{framework}")
        root = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.input.messages": json.dumps(said)}
        with trace.span("invoke_workflow desk", root):
            tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.result": PASSAGES[0]}
            trace.leaf("execute_tool search", {**tool, "gen_ai.tool.name": "search"})
            trace.leaf("chat small-model", chat(prompt(), ANSWER))
        asked[framework] = one(trace).question
    assert asked == {"llama_index": TYPED, "langchain": QUESTION}


def test_a_reply_in_json_is_the_answer_whole() -> None:
    reply = json.dumps({"text": PASSAGES[0], "more": [PASSAGES[1]]})
    trace = Trace("opentelemetry.instrumentation.langchain")
    step = {"traceloop.span.kind": "workflow", "traceloop.entity.input": compact({"inputs": QUESTION})}
    with trace.span(
        "RunnableSequence.workflow", {**step, "traceloop.entity.output": compact({"outputs": reply})}
    ):
        trace.leaf("chat small-model", chat(prompt(), reply))
    assert one(trace).answer == reply


def test_a_reply_in_json_is_the_answer_whole_where_a_span_tells_it_as_an_object() -> None:
    said = {"text": PASSAGES[0], "more": [PASSAGES[1]]}
    trace = Trace("openinference.instrumentation.langchain")
    with trace.span("RunnableSequence", oi("CHAIN", QUESTION, said)):
        trace.leaf("Model", oi_model([("user", prompt())], json.dumps(said)))
    assert one(trace).answer == json.dumps(said)


def test_what_llamaindex_bound_to_a_template_is_no_passage() -> None:
    bound = {"role": ROLE, "query_str": QUESTION}
    shown = f"PromptTemplate(template_vars=['role', 'query_str', 'context_str'], kwargs={bound!r})"
    filled = {**bound, "context_str": joined()}
    trace = Trace("openinference.instrumentation.llama_index")
    with trace.span("RetrieverQueryEngine.query", oi("CHAIN", QUESTION, ANSWER)):
        trace.leaf("Shelf.retrieve", oi_retriever(QUESTION))
        told = oi("LLM", {"prompt": shown}, llm__prompt_template__variables=json.dumps(filled))
        with trace.span("OpenAI.predict", told):
            trace.leaf("OpenAI.chat", oi_model([("user", f"{ROLE}\n\n{prompt()}")], ANSWER))
    assert texts(one(trace)) == PASSAGES


def test_documents_that_a_thread_kept_of_an_earlier_turn_do_not_count() -> None:
    def documents(*found: str) -> list[dict[str, object]]:
        return [{"page_content": text, "metadata": {}, "type": "Document"} for text in found]

    def turn(question: str, kept: list[dict[str, object]], found: str, answer: str, shown: str) -> Trace:
        trace = Trace("openinference.instrumentation.langchain")
        state = {"question": question, "documents": kept}
        with trace.span("LangGraph", oi("CHAIN", {"question": question}, {"answer": answer})):
            trace.leaf("look", oi("CHAIN", state, {"documents": documents(found)}))
            trace.leaf("Model", oi_model([("user", shown)], answer))
        return trace

    first = turn(QUESTION, [], PASSAGES[0], PASSAGES[0], prompt(passages=PASSAGES[:1]))
    again = "And how high is a saddle?"
    talk = f"{QUESTION}\n{PASSAGES[0]}\n\n{prompt(again, PASSAGES[2:])}"
    later = turn(again, documents(PASSAGES[0]), PASSAGES[2], "Up to the heel.", talk)
    shift = first.spans[-1].end
    shift -= min(span.start for span in later.spans)
    moved = [replace(span, start=span.start + shift, end=span.end + shift) for span in later.spans]
    reading = read_spans([*first.spans, *moved])
    assert sorted(map(texts, reading.records)) == sorted([PASSAGES[:1], PASSAGES[2:]])


def test_a_step_that_chose_among_passages_leaves_the_question_to_the_look_up_before_it() -> None:
    asked = 'My question is: "How often?"'
    spans = []
    for name, told in (
        ("Shelf.retrieve", oi_retriever(asked)),
        ("Ranks.postprocess", {**oi("RERANKER"), **oi_documents(prefix="reranker.output_documents")}),
        ("OpenAI.chat", oi_model([("user", prompt(asked))], ANSWER)),
    ):
        trace = Trace("openinference.instrumentation.llama_index")
        trace.leaf(name, {**told, "session.id": "0f8a63c2d4b71e95"})
        spans += trace.spans
    (record,) = read_spans(spans).records
    assert (record.question, texts(record)) == (asked, PASSAGES)


def test_what_python_shows_of_a_conversation_is_no_record_of_a_step() -> None:
    typed = f"Context: The saddle is made of leather.\n\nQuestion: {QUESTION}"
    said = "".join(
        f"ChatMessage(role=<MessageRole.{role.upper()}: {role!r}>, additional_kwargs={{}}, "
        f"blocks=[TextBlock(block_type='text', text={text!r})]), "
        for role, text in (("system", ROLE), ("user", typed))
    )
    event = f"AgentInput(input=[{said}], current_agent_name='Agent')"
    trace = Trace("openinference.instrumentation.llama_index")
    with trace.span("AgentWorkflow.run", oi("CHAIN", {"init_state": {"is_running": False}}, ANSWER)):
        trace.leaf("AgentWorkflow.setup_agent", oi("CHAIN", {"ctx": "", "ev": event}, "AgentSetup(...)"))
        trace.leaf("search", oi("TOOL", {"kwargs": {"query": "saddle"}}, list(PASSAGES)))
        asked = [("system", ROLE), ("user", typed), ("tool", json.dumps(PASSAGES))]
        trace.leaf("Chats.achat", oi_model(asked, ANSWER))
    assert texts(one(trace)) == PASSAGES


def test_a_function_that_returned_the_answer_looked_nothing_up() -> None:
    """It quotes a passage, so that it could have copied it; it is the model's reply all the same."""
    trace, reply = Trace("promptflow"), PASSAGES[0].rstrip(".")
    messages = json.dumps({"messages": [{"role": "user", "content": prompt()}]})

    def step(kind: str, given: str, came: object) -> dict[str, str]:
        return {"span_type": kind, "inputs": given, "output": json.dumps(came)}

    with trace.span("flow", step("Function", json.dumps({"question": QUESTION}), reply)):
        found = [{"id": str(at), "text": text} for at, text in enumerate(PASSAGES)]
        trace.leaf("search_index", step("Retrieval", json.dumps({"query": QUESTION}), found))
        with trace.span("call_llm", step("Function", messages, reply)):
            trace.leaf("openai_chat", step("LLM", messages, {"choices": [{"message": {"content": reply}}]}))
    record = one(trace)
    assert (record.question, texts(record), record.answer) == (QUESTION, PASSAGES, reply)
    assert record.retrieved == ()
    assert record.notes == (), "the outermost function tells the question"
