"""What spans leave open is said, and what they say by a name or a form alone is not taken for more."""

from __future__ import annotations

import json
from typing import Any

import pytest
from otel_parts import ANSWER, QUESTION, TEXTS, messages, oi, prompt, span
from otel_turns import OTHER, one

from steelyard_opentelemetry import Span, read_spans

DRAFT = "It may well be the city of Lyon."


def call(*sent: tuple[str, str], reply: str, at: tuple[float, float], trace: str, **more: Any) -> Span:
    told = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": messages(*sent),
        "gen_ai.output.messages": messages(("assistant", reply)),
    }
    return span("chat", at=at, trace=trace, attributes=told, **more)


@pytest.mark.parametrize("is_told", [True, False])
def test_an_answer_that_a_later_call_was_told_may_be_a_step(is_told: bool) -> None:
    first = call(("user", prompt()), reply=DRAFT, at=(0, 1), trace=OTHER)
    again = ("user", f"{prompt()}\n\nDraft:\n{DRAFT if is_told else 'none'}\n\nImprove it.")
    records = read_spans([first, call(again, reply=ANSWER, at=(2, 3), trace="a" * 32)]).records
    notes = next(record.notes for record in records if record.answer == DRAFT)
    assert any("a later model call was told this answer" in note for note in notes) is is_told


@pytest.mark.parametrize("names", [["d1", "d2"], ["a.md", "b.md", "c.md"]])
def test_a_look_up_that_tells_names_alone_found_no_passages(names: list[str]) -> None:
    root = span("ask", attributes=oi("CHAIN", input__value=QUESTION, output__value=ANSWER), at=(0, 9))
    found = oi("RETRIEVER", input__value=QUESTION, output__value=json.dumps(names))
    record = one([root, span("find", root, attributes=found, at=(1, 2))])
    assert [context.text for context in record.contexts] == []
    assert any(note.startswith("documents_without_text") for note in record.notes)


@pytest.mark.parametrize("is_seen", [True, False])
def test_a_query_is_the_question_with_a_note_where_a_model_may_have_written_it(is_seen: bool) -> None:
    root = span("ask", attributes=oi("CHAIN", output__value=ANSWER), at=(0, 9))
    found = oi("RETRIEVER", input__value=QUESTION, output__value=json.dumps(list(TEXTS)))
    spans = [root, span("find", root, attributes=found, at=(1, 2))]
    if is_seen:
        spans.append(call(("user", prompt()), reply=ANSWER, at=(3, 4), trace=root.trace_id, parent=root))
    record = one(spans)
    assert record.question == QUESTION
    assert any(note.startswith("question_guessed") for note in record.notes) is not is_seen


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("gen_ai.completion", "gen_ai.prompt"),
        ("llm.response", "llm.prompt"),
        ("llm.response", "llm.user_text"),
    ],
)
def test_a_reply_in_a_form_of_any_names_is_a_reply(name: str, sent: str) -> None:
    form = json.dumps({"finding": ANSWER, "topics": ["towns"]})
    model = {"gen_ai.operation.name": "chat"} if name.startswith("gen_ai") else {"llm.model": "m"}
    root = span("ask", attributes=oi("CHAIN", input__value=QUESTION), at=(0, 9))
    found = oi("RETRIEVER", input__value=QUESTION, output__value=json.dumps(list(TEXTS)))
    reply = span("llm.chat", root, attributes={**model, sent: prompt(), name: form}, at=(3, 4))
    assert one([root, span("find", root, attributes=found, at=(1, 2)), reply]).answer == form


@pytest.mark.parametrize("event", ["ToolResult", "tool.result"])
def test_what_an_agent_elsewhere_found_counts_if_an_event_of_its_stream_tells_it(event: str) -> None:
    agent = call(("user", QUESTION), reply=ANSWER, at=(0, 9), trace=OTHER)
    told = {"app.event": event, "tool.result_summary": json.dumps([{"content": text} for text in TEXTS])}
    steps = [{"app.event": "Reasoning"}, told, {"app.event": "MessageComplete"}]
    record = one([agent, *(span("event", agent, trace=OTHER, attributes=a, at=(1, 2)) for a in steps)])
    assert (record.question, record.answer) == (QUESTION, ANSWER)
    assert [context.text for context in record.contexts] == list(TEXTS)


@pytest.mark.parametrize(("flow", "is_joined"), [("task-1", True), ("task-2", False)])
def test_a_look_up_belongs_to_a_call_in_the_task_of_the_request_around_it(flow: str, is_joined: bool) -> None:
    request = span("POST /chat", attributes={"http.request.method": "POST"}, at=(0, 9), flow="task-1")
    found = oi("RETRIEVER", input__value=QUESTION, output__value=json.dumps(list(TEXTS)))
    looked = span("find", request, attributes=found, at=(1, 2))
    answered = call(("user", prompt()), reply=ANSWER, at=(3, 4), trace=OTHER, flow=flow)
    records = read_spans([request, looked, answered]).records
    assert [record.contexts_source == "in_prompt" for record in records] == [is_joined]


@pytest.mark.parametrize("reply", ["[[ ## answer ## ]]\nParis.", "[1] Paris is the capital, as it says."])
def test_a_text_that_only_begins_like_json_is_a_text(reply: str) -> None:
    root = span("ask", attributes=oi("CHAIN", input__value=QUESTION, output__value=reply), at=(0, 9))
    found = oi("RETRIEVER", input__value=QUESTION, output__value=json.dumps(list(TEXTS)))
    record = one([root, span("find", root, attributes=found, at=(1, 2))])
    assert record.answer == reply
    assert not any("could not be read" in note for note in record.notes)


def test_a_turn_that_code_told_after_its_call_is_told_once() -> None:
    made = call(("user", QUESTION), reply=ANSWER, at=(0, 1), trace=OTHER)
    told = {"rag.query": QUESTION, "rag.answer": ANSWER, "rag.context": "\n\n".join(TEXTS)}
    record = one([made, span("RAG session", attributes=told, at=(2, 3))])
    assert record.contexts


@pytest.mark.parametrize(("name", "is_look_up"), [("retrieve.task", True), ("plan.task", False)])
def test_a_decorated_function_that_found_nothing_is_a_look_up_by_its_name(
    name: str, is_look_up: bool
) -> None:
    given = json.dumps({"args": [QUESTION], "kwargs": {}})
    kind = "traceloop.span.kind"
    told = {kind: "workflow", "traceloop.entity.input": given, "traceloop.entity.output": json.dumps(ANSWER)}
    root = span("ask.workflow", scope="traceloop.tracer", attributes=told, at=(0, 9))
    nothing = {kind: "task", "traceloop.entity.input": given, "traceloop.entity.output": "[]"}
    step = span(name, root, scope="traceloop.tracer", attributes=nothing, at=(1, 2))
    model = call(("user", QUESTION), reply=ANSWER, at=(3, 4), trace=root.trace_id, parent=root)
    assert bool(read_spans([root, step, model]).records) is is_look_up


@pytest.mark.parametrize(("result", "counts"), [({"blocked": False}, False), ({"kilometres": 200}, True)])
def test_a_checks_yes_or_no_is_no_passage(result: dict[str, object], counts: bool) -> None:
    root = span("ask", attributes=oi("CHAIN", input__value=QUESTION, output__value=ANSWER), at=(0, 9))
    found = oi("RETRIEVER", input__value=QUESTION, output__value=json.dumps(list(TEXTS)))
    tool = oi("TOOL", input__value=QUESTION, output__value=json.dumps(result))
    spans = [root, span("check", root, attributes=tool, at=(1, 2)), span("find", root, attributes=found)]
    texts = [context.text for context in one(spans).contexts]
    assert (json.dumps(result) in texts) is counts


@pytest.mark.parametrize("mark", ["[[ ## {} ## ]]", "<{}>", "=== {} ===", "**{}**"])
@pytest.mark.parametrize("is_shown", [True, False])
def test_a_reply_between_marks_of_its_prompt_is_a_form(mark: str, is_shown: bool) -> None:
    begin, end = mark.format("answer"), mark.format("done")
    form = f"Write:\n{begin}\n...\n{end}" if is_shown else "Write it down."
    reply = f"{begin}\n{ANSWER}\n{end}"
    record = one([call(("system", form), ("user", prompt()), reply=reply, at=(0, 1), trace=OTHER)])
    assert any("of the model's form" in note for note in record.notes) is is_shown


@pytest.mark.parametrize("label", ["Question: ", "User question: ", "## Question\n"])
def test_a_question_that_was_answered_before_is_not_this_turns(label: str) -> None:
    root = span("handle", at=(0, 9))
    look_up = {"gen_ai.operation.name": "retrieval", "app.output": json.dumps(list(TEXTS))}
    before = [("user", f"{label}Who oiled the chain?"), ("assistant", "Nobody did.")]
    now = ("user", "\n\n".join((*TEXTS, "Tell me more")))
    made = call(*before, now, reply=ANSWER, at=(3, 4), trace=root.trace_id, parent=root)
    found = read_spans([root, span("fetch", root, attributes=look_up, at=(1, 2)), made])
    assert [record.question for record in found.records] == []
    assert [diagnosis.cause for diagnosis in found.diagnoses] == ["no_question"]


@pytest.mark.parametrize(("reply", "is_form"), [("Thought: {}\nAnswer: {}", True), ("Well: {}\n{}", False)])
def test_what_has_the_labels_of_the_reply_shows_its_form_and_is_no_passage(reply: str, is_form: bool) -> None:
    form = "<context>\nThought: I can answer now, in the user's words.\nAnswer: [what you say]\n</context>"
    said = reply.format("It is known.", ANSWER)
    sent = [("system", form), ("user", QUESTION)]
    records = read_spans([call(*sent, reply=said, at=(0, 1), trace=OTHER)]).records
    assert [record.contexts_source for record in records] == ([] if is_form else ["guessed"])


def root_and(name: str, told: dict[str, Any]) -> list[Span]:
    """A root that was asked and answered, and a step below it."""
    root = span("ask", attributes=oi("CHAIN", input__value=QUESTION, output__value=ANSWER), at=(0, 9))
    return [root, span(name, root, attributes=told, at=(1, 2))]


@pytest.mark.parametrize("counted", ["Found 2 relevant chunks", "Retrieved 3 documents", "4 results found."])
@pytest.mark.parametrize("written", ["openinference", "langfuse"])
def test_how_many_a_search_found_is_no_passage(counted: str, written: str) -> None:
    own = {"langfuse.observation.type": "retriever", "langfuse.observation.input": QUESTION}
    told = oi("RETRIEVER", input__value=QUESTION, output__value=counted)
    other = {**own, "langfuse.observation.output": counted}
    record = one(root_and("find", told if written == "openinference" else other))
    assert record.contexts == record.retrieved == ()
    assert any("documents are not" in note for note in record.notes)


@pytest.mark.parametrize("name", ["rag.chunks_count", "retriever.document_count", "docs.found", "numResults"])
@pytest.mark.parametrize("kind", ["RETRIEVER", None])
@pytest.mark.parametrize("count", [0, 2])
def test_a_count_of_none_says_that_nothing_was_found(name: str, kind: str | None, count: int) -> None:
    told = {**(oi(kind, input__value=QUESTION) if kind else {"rag.query": QUESTION}), name: count}
    record = one(root_and("retrieve", told))
    assert record.contexts == ()
    lacking = [note for note in record.notes if note.startswith(("no_documents", "no_retrieval"))]
    assert bool(lacking) is (count > 0)


@pytest.mark.parametrize(("result", "counts"), [({"results": 2}, False), ({"kilometres": 2}, True)])
def test_how_much_a_tool_found_is_no_passage(result: dict[str, int], counts: bool) -> None:
    found = {"langfuse.observation.type": "tool", "langfuse.observation.output": json.dumps(result)}
    records = read_spans(root_and("look_up", found)).records
    assert [one.text for record in records for one in record.contexts] == [json.dumps(result)] * counts


@pytest.mark.parametrize("came", [{"response": ANSWER}, {"output": ANSWER, "took": 3}])
def test_a_step_that_tells_passages_and_returned_an_object_answers(came: dict[str, object]) -> None:
    told = {"mlflow.spanType": '"CHAIN"', "mlflow.spanInputs": json.dumps(QUESTION)}
    passages = {"retrieved_chunks": json.dumps(list(TEXTS)), "mlflow.spanOutputs": json.dumps(came)}
    root = span("ask", attributes={**told, **passages}, at=(0, 9))
    model = call(("user", prompt()), reply=ANSWER, at=(3, 4), trace=root.trace_id, parent=root)
    record = one([root, model])
    assert (record.question, record.answer, len(record.contexts)) == (QUESTION, ANSWER, len(TEXTS))


@pytest.mark.parametrize("known", [[], list(TEXTS)])
def test_a_number_that_code_made_of_a_models_form_is_no_turn(known: list[str]) -> None:
    given = json.dumps({"question": QUESTION, "documents": known, "generation": ANSWER})
    root = span("score", attributes=oi("CHAIN", input__value=given, output__value="0.667"), at=(0, 9))
    ask, form = (
        f"How well is it answered?\n{QUESTION}\n{known}\n{ANSWER}",
        '{"tone": 2, "why": "It is kind."}',
    )
    judge = call(("user", ask), reply=form, at=(1, 2), trace=root.trace_id, parent=root)
    assert not read_spans([root, judge]).records


@pytest.mark.parametrize("passages", [list(TEXTS), []])
def test_a_models_step_that_was_given_an_object_was_sent_what_is_in_it(passages: list[str]) -> None:
    given = {"query": QUESTION, "context_docs": passages, "state": {"step": "draft"}}
    told = {"gen_ai.operation.name": "chat", "span.kind": "llm", "input": json.dumps(given), "output": ANSWER}
    search = {"gen_ai.operation.name": "retrieval", "input": json.dumps({"query": QUESTION})}
    root = span("handle", at=(0, 9))
    found = span("find", root, attributes={**search, "output": json.dumps(passages)}, at=(1, 2))
    record = one([root, found, span("write", root, attributes=told, at=(3, 4))])
    assert (record.question, record.answer) == (QUESTION, ANSWER)
    assert [one.text for one in record.contexts] == passages


@pytest.mark.parametrize("form", [{"reponse": ANSWER, "sources": ["d1"]}, {"finding": ANSWER, "sure": True}])
def test_a_form_that_an_agent_returned_is_the_answer(form: dict[str, object]) -> None:
    agent = {"gen_ai.operation.name": "invoke_agent", "agent_name": "a", "final_result": json.dumps(form)}
    said = [{"role": "user", "parts": [{"type": "text", "content": prompt()}]}]
    told = {**agent, "pydantic_ai.all_messages": json.dumps(said)}
    agent_run = span("agent run", scope="pydantic-ai", attributes=told, at=(0, 9))
    found = oi("RETRIEVER", input__value=QUESTION, output__value=json.dumps(list(TEXTS)))
    record = one([agent_run, span("find", agent_run, attributes=found, at=(1, 2))])
    assert json.loads(record.answer) == form


@pytest.mark.parametrize("form", [{"reply": ANSWER, "sure": True}, {"finding": ANSWER, "citations": ["d1"]}])
def test_a_models_step_that_filled_in_a_form_replied(form: dict[str, object]) -> None:
    kind, given, came = (f"langfuse.observation.{name}" for name in ("type", "input", "output"))
    told = {kind: "agent", given: json.dumps({"args": [], "kwargs": {"message": QUESTION}})}
    root = span("turn", attributes={**told, came: json.dumps({**form, "thread": "t1"})}, at=(0, 9))
    found = {kind: "retriever", given: json.dumps({"query": QUESTION}), came: json.dumps(list(TEXTS))}
    sent = [{"role": "user", "content": prompt()}]
    model = {kind: "generation", given: json.dumps(sent), came: json.dumps(form)}
    steps = [("find", found, (1, 2)), ("write", model, (3, 4))]
    record = one([root, *(span(name, root, attributes=a, at=at) for name, a, at in steps)])
    assert (record.question, [context.text for context in record.contexts]) == (QUESTION, list(TEXTS))
    assert ANSWER in record.answer


@pytest.mark.parametrize("written", ["\n\n".join(TEXTS), json.dumps(list(TEXTS))])
def test_passages_on_the_step_that_answered_count_if_no_prompt_was_seen(written: str) -> None:
    told = {
        **oi("CHAIN", input__value=QUESTION, output__value="It is a city."),
        "retrieval.documents": written,
    }
    record = one([span("ask", attributes=told, at=(0, 9))])
    assert "\n\n".join(context.text for context in record.contexts) == "\n\n".join(TEXTS)
    assert any(note.startswith("no_prompt_seen") for note in record.notes)


def test_documents_whose_fields_have_long_names_are_read() -> None:
    listed = [
        {"document.content": text, "document.score": 0.5, "document.metadata": {"a": 1}} for text in TEXTS
    ]
    told = {"span_type": "Retrieval", "retrieval.query": QUESTION, "retrieval.documents": json.dumps(listed)}
    assert [context.text for context in one(root_and("search", told)).contexts] == list(TEXTS)
