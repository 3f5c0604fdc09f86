"""Several turns in one trace, where no span holds each of them: sessions, batches, loops."""

from __future__ import annotations

from apps.otel.attributes import oi, oi_model, oi_retriever
from apps.otel.general.conventions import chat, retrieval, said
from apps.otel.shapes import (
    ANSWER,
    PASSAGES,
    QUERY,
    QUESTION,
    Shape,
    Trace,
    Turn,
    compact,
    joined,
    prompt,
    shape,
)

NEXT_QUESTION = "And what is done with it after a ride in the rain?"
NEXT_ANSWER = "It is dried and oiled again."
_TURNS = ((QUESTION, ANSWER), (NEXT_QUESTION, NEXT_ANSWER))
_BOTH = (Turn(), Turn(question=NEXT_QUESTION, answer=NEXT_ANSWER))


@shape(*_BOTH)
def session_of_retrievals_and_calls() -> Trace:
    """One span around a session of two turns; the second prompt holds the first exchange."""
    trace = Trace("my.service")
    with trace.span("session"):
        before: list[tuple[str, str]] = []
        for question, answer in _TURNS:
            trace.leaf("retrieval manuals", retrieval(question))
            trace.leaf("chat small-model", chat(prompt(question), answer, *before))
            before += [("user", question), ("assistant", answer)]
    return trace


@shape(*_BOTH)
def workflow_around_two_turns() -> Trace:
    """A workflow's span, which says nothing of a question, around a loop over two questions."""
    trace = Trace("my.service")
    with trace.span("invoke_workflow batch", {"gen_ai.operation.name": "invoke_workflow"}):
        for question, answer in _TURNS:
            trace.leaf("retrieval manuals", retrieval(question))
            trace.leaf("chat small-model", chat(prompt(question), answer))
    return trace


@shape(*_BOTH)
def agent_span_around_two_turns() -> Trace:
    """An agent's span without input or output around both turns of a conversation."""
    trace = Trace("my.service")
    with trace.span("session", oi("AGENT")):
        for question, answer in _TURNS:
            trace.leaf("retrieve", oi_retriever(question))
            trace.leaf("chat", oi_model([("user", prompt(question))], answer))
    return trace


@shape(*_BOTH)
def batch_that_retrieves_first() -> Trace:
    """A batch: all questions are looked up, then all are answered, below one server span."""
    trace = Trace("my.service")
    with trace.span("POST /batch", {"http.request.method": "POST"}):
        for question, _ in _TURNS:
            trace.leaf("retrieval manuals", retrieval(question))
        for question, answer in _TURNS:
            trace.leaf("chat small-model", chat(prompt(question), answer))
    return trace


@shape(*(Turn(question=turn.question, answer=turn.answer) for turn in _BOTH))
def session_of_tool_loops() -> Trace:
    """A plain loop of model calls and tools, for two questions in a row, below one span."""
    trace = Trace("my.service")
    with trace.span("session"):
        for question, answer in _TURNS:
            trace.leaf("chat small-model", {**_asks(question), "gen_ai.output.messages": compact([_CALL])})
            tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search_manual"}
            trace.leaf("execute_tool", {**tool, "gen_ai.tool.call.result": compact(PASSAGES)})
            replied = {"gen_ai.output.messages": said(("assistant", answer))}
            trace.leaf("chat small-model", {**_asks(question, with_result=True), **replied})
    return trace


_CALL = {
    "role": "assistant",
    "parts": [{"type": "tool_call", "id": "c1", "name": "search_manual", "arguments": {"query": QUERY}}],
}


def _asks(question: str, *, with_result: bool = False) -> dict[str, str]:
    asked = {"role": "user", "parts": [{"type": "text", "content": question}]}
    part = {"type": "tool_call_response", "id": "c1", "response": list(PASSAGES)}
    messages = [asked, _CALL, {"role": "tool", "parts": [part]}] if with_result else [asked]
    return {"gen_ai.operation.name": "chat", "gen_ai.input.messages": compact(messages)}


@shape(
    *(
        Turn(one_text=True, question=turn.question, answer=turn.answer, note="contexts_guessed")
        for turn in _BOTH
    )
)
def decorated_workflow_that_calls_another_one_twice() -> Trace:
    """Workflows by decorator: an outer one calls one for each question; no span retrieves."""
    trace = Trace("traceloop.tracer")
    outer = {"traceloop.span.kind": "workflow", "traceloop.entity.input": '{"args": [], "kwargs": {}}'}
    with trace.span("session.workflow", {**outer, "traceloop.entity.output": "null"}):
        for question, answer in _TURNS:
            given = {"traceloop.entity.input": compact({"args": [question], "kwargs": {}})}
            inner = {"traceloop.span.kind": "workflow", **given, "traceloop.entity.output": compact(answer)}
            with trace.span("answer.workflow", inner):
                call = chat(prompt(question), answer)
                trace.leaf("openai.chat", call, scope="opentelemetry.instrumentation.openai.v1")
    return trace


@shape(Turn(answer="Every 200 km."))
def drafts_of_one_turn() -> Trace:
    """The same question answered, looked up again and answered anew: one turn, whose last answer counts."""
    trace = Trace("my.service")
    with trace.span("answer"):
        for answer in ("I do not know how often that is.", "Every 200 km."):
            trace.leaf("retrieval manuals", retrieval())
            trace.leaf("chat small-model", chat(prompt(), answer))
    return trace


@shape(Turn())
def parts_of_one_turn() -> Trace:
    """Two questions of the application's own are answered; a last call is shown both answers: one turn."""
    trace = Trace("my.service")
    parts = (
        ("How often is a chain oiled?", "A chain needs oil every 200 km."),
        ("What does rain do to a chain?", "After rain it is dried and oiled again."),
    )
    with trace.span("answer", {"gen_ai.operation.name": "invoke_agent", **_root()}):
        for question, answer in parts:
            trace.leaf("retrieval manuals", retrieval(question))
            trace.leaf("chat small-model", chat(prompt(question), answer))
        shown = "\n".join(answer for _, answer in parts)
        trace.leaf("chat small-model", chat(f"Combine:\n{shown}\n\nQuestion: {QUESTION}", ANSWER))
    return trace


_PARTS = (
    ("How often is the chain of a bicycle oiled?", "A chain needs oil every 200 km, the manual says."),
    ("What does rain do to the chain of a bicycle?", "After rain it has to be dried and oiled again."),
)
_COMBINED = "Combine these:\n" + "\n".join(answer for _, answer in _PARTS) + f"\n\nQuestion: {QUESTION}"


def _chains(trace: Trace) -> None:
    """A chain with a span of its own for each part."""
    for question, answer in _PARTS:
        with trace.span("RetrievalQA", oi("CHAIN", {"query": question}, {"result": answer})):
            trace.leaf("Retriever", oi_retriever(question))
            trace.leaf("ChatModel", oi_model([("user", prompt(question))], answer))


@shape(*(Turn(question=asked, answer=came, note="question_rewritten_only") for asked, came in _PARTS))
def planned_parts_with_a_span_each() -> Trace:
    """A model writes part questions, a chain answers each, and no span says what the user asked."""
    trace = Trace("openinference.instrumentation.langchain")
    with trace.span("POST /ask", {"http.request.method": "POST"}):
        plan = "\n".join(f"{number}. {question}" for number, (question, _) in enumerate(_PARTS, start=1))
        trace.leaf("ChatModel", oi_model([("user", f"Break this down: {QUESTION}")], plan))
        _chains(trace)
        trace.leaf("ChatModel", oi_model([("user", _COMBINED)], ANSWER))
    return trace


@shape(*(Turn(question=asked, answer=came) for asked, came in _PARTS))
def fixed_parts_with_a_span_each() -> Trace:
    """The same with part questions of the application's own: a last call is shown both answers."""
    trace = Trace("openinference.instrumentation.langchain")
    with trace.span("POST /ask", {"http.request.method": "POST"}):
        _chains(trace)
        trace.leaf("ChatModel", oi_model([("user", _COMBINED)], ANSWER))
    return trace


@shape(*(Turn(question=asked, answer=came) for asked, came in _PARTS))
def title_of_a_session() -> Trace:
    """A last call names a session of two turns: it was shown both as a conversation."""
    lines = "\n".join(f"User: {question}\nAssistant: {answer}" for question, answer in _PARTS)
    trace = Trace("openinference.instrumentation.langchain")
    with trace.span("POST /ask", {"http.request.method": "POST"}):
        _chains(trace)
        trace.leaf("ChatModel", oi_model([("user", f"Write a title for this.\n{lines}")], "Care of Chains"))
    return trace


_SADDLE = ("How high should the saddle be?", "So high that the heel reaches the pedal.")
_BATCH = ((QUESTION, ANSWER, PASSAGES[:2]), (*_SADDLE, PASSAGES[2:]))
_ITEMS = tuple(Turn(question=asked, answer=came, contexts=found) for asked, came, found in _BATCH)


def _item(trace: Trace, asked: str, came: str, found: tuple[str, ...]) -> None:
    trace.leaf("Retriever", oi_retriever(asked, found))
    trace.leaf("ChatModel", oi_model([("system", joined(found)), ("user", asked)], came))


@shape(*_ITEMS)
def batch_told_by_its_first_question_and_last_answer() -> Trace:
    """A chain for each item of a batch, below a span that tells the first question and the last answer."""
    trace = Trace("openinference.instrumentation.langchain")
    with trace.span("batch", oi("CHAIN", QUESTION, _SADDLE[1])):
        for asked, came, found in _BATCH:
            with trace.span("chain", oi("CHAIN", asked, came)):
                _item(trace, asked, came, found)
    return trace


@shape(*_ITEMS)
def batch_side_by_side_told_by_its_first_question_and_last_answer() -> Trace:
    """The same without a span for each item."""
    trace = Trace("openinference.instrumentation.langchain")
    with trace.span("batch", oi("CHAIN", QUESTION, _SADDLE[1])):
        for asked, came, found in _BATCH:
            _item(trace, asked, came, found)
    return trace


@shape(*_ITEMS)
def batch_of_conversations() -> Trace:
    """A batch of message lists, whose last question alone is read from them, and no output."""
    trace = Trace("openinference.instrumentation.langchain")
    given = [[{"role": "user", "content": asked}] for asked, _, _ in _BATCH]
    with trace.span("batch", oi("CHAIN", given, [came for _, came, _ in _BATCH])):
        for asked, came, found in _BATCH:
            with trace.span("chain", oi("CHAIN", asked, came)):
                _item(trace, asked, came, found)
    return trace


@shape(Turn(contexts=PASSAGES[:2]))
def second_try_with_a_rewritten_question() -> Trace:
    """A chain answers badly, a model rewrites the question, the same chain answers that: one turn."""
    trace = Trace("openinference.instrumentation.langchain")
    again = "At which interval is a touring chain oiled?"
    with trace.span("corrective", oi("CHAIN", QUESTION, ANSWER)):
        for asked, came, found in ((QUESTION, _SADDLE[1], PASSAGES[2:]), (again, ANSWER, PASSAGES[:2])):
            with trace.span("chain", oi("CHAIN", asked, came)):
                _item(trace, asked, came, found)
            if asked == QUESTION:
                trace.leaf("ChatModel", oi_model([("user", f"Rewrite as a better question: {asked}")], again))
    return trace


@shape(Turn(contexts=PASSAGES[:2]))
def second_try_with_a_longer_question() -> Trace:
    """The same where the application adds words of its own to the question."""
    trace = Trace("openinference.instrumentation.langchain")
    again = f"{QUESTION} Look in the manual."
    with trace.span("corrective", oi("CHAIN", QUESTION, ANSWER)):
        for asked, came, found in ((QUESTION, _SADDLE[1], PASSAGES[2:]), (again, ANSWER, PASSAGES[:2])):
            with trace.span("chain", oi("CHAIN", asked, came)):
                _item(trace, asked, came, found)
    return trace


def _root() -> dict[str, str]:
    return {"gen_ai.input.messages": said(("user", QUESTION))}


@shape(Turn(contexts=(), answer="Nobody has written that down."))
def result_written_down_beside_its_step() -> Trace:
    """A step tells the question and its answer, and a span after it the same once more, for the log."""
    told = {"rag.question": QUESTION, "rag.answer": "Nobody has written that down."}
    trace = Trace("my.service")
    with trace.span("rag.ask", {"rag.question": QUESTION}):
        trace.leaf("rag.retrieve", {"rag.num_retrieved": 0})
        trace.leaf("rag.generate", {**told, "rag.llm_model": "small"})
        trace.leaf("rag.result", {**told, "rag.latency_seconds": 1.2})
    return trace


_NONE = "Nobody has written that down."


@shape(Turn(one_text=True, note="contexts_guessed"), Turn(question=NEXT_QUESTION, contexts=(), answer=_NONE))
def loop_of_the_application_around_its_own_spans() -> Trace:
    """Each round has a span that counts, an agent that is given a prompt, and a line for the log."""
    trace = Trace("my.service")
    with trace.span("evaluation"):
        for question, answer, found in ((QUESTION, ANSWER, PASSAGES), (NEXT_QUESTION, _NONE, ())):
            sent = prompt(question, found or ("None there.",))
            with trace.span("round", {"round.category": "simple"}):
                trace.leaf("retrieval", {"question": question, "num_contexts": len(found)})
                told = {"gen_ai.input.messages": said(("user", sent))}
                asked = {"gen_ai.operation.name": "invoke_agent", **told}
                with trace.span("agent", {**asked, "gen_ai.output.messages": said(("assistant", answer))}):
                    trace.leaf("chat small-model", chat(sent, answer))
                trace.leaf("output", {"question": question, "answer": answer, "num_contexts": len(found)})
    return trace


SHAPES: tuple[Shape, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Shape))
