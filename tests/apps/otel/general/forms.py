"""The same turn in other forms: a list as a text, a request as an argument, a file, an empty place."""

from __future__ import annotations

import base64
import json
from typing import Any

from apps.otel.general.conventions import chat
from apps.otel.shapes import ANSWER, PASSAGES, QUESTION, Shape, Trace, Turn, compact, joined, prompt, shape

_CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
_CLIENT = "opentelemetry.instrumentation.genai.openai"
_LEAVES = {"llm.request.type": "chat", "gen_ai.request.model": "m"}
_ASKED = (
    "You are a guide. Use the context of our manuals:\n1. Quote the context.\n2. Keep it short and sharp."
)


def _step(given: object, came: object, kind: str = "UNKNOWN") -> dict[str, str]:
    told = {"spanType": kind, "spanInputs": given, "spanOutputs": came, "traceRequestId": "tr-1"}
    return {f"mlflow.{key}": compact(value) for key, value in told.items()}


def _observed(kind: str, given: object, came: object) -> dict[str, str]:
    told = {"input": compact(given), "output": compact(came), "type": kind}
    return {f"langfuse.observation.{key}": value for key, value in told.items()}


def _sent(system: str, user: str = "", *, reply: str = ANSWER) -> dict[str, Any]:
    """A call by roles and contents, as OpenLLMetry writes it; without a user's message if there is none."""
    said = [("system", system), *([("user", user)] if user else [])]
    told = {f"gen_ai.prompt.{n}.role": role for n, (role, _) in enumerate(said)}
    told |= {f"gen_ai.prompt.{n}.content": text for n, (_, text) in enumerate(said)}
    return {**_LEAVES, **told, "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": reply}


@shape(Turn(without="guessed"))
def look_up_of_the_conventions_in_words_of_its_own() -> Trace:
    """A look-up in the conventions tells what it found as the list that the prompt shows."""
    parts = (f"[Source {n}] (score .{9 - n})\n{text}" for n, text in enumerate(PASSAGES, 1))
    listed = "\n\n---\n\n".join(parts)
    trace = Trace("my.service")
    with trace.span("answer", {"app.question": QUESTION, "app.answer": ANSWER}):
        told = {"gen_ai.operation.name": "retrieval", "input": f"user: {QUESTION}", "output": listed}
        trace.leaf("retrieval", told)
        trace.leaf("chat", _sent(f"Use these sources.\n\n{listed}", QUESTION), scope=_CLIENT)
    return trace


@shape(Turn(without="no_prompt_seen"))
def request_as_one_argument_of_the_client() -> Trace:
    """A traced client is called with its endpoint and, as another argument, the request."""
    request = {"messages": [{"role": "user", "content": prompt()}], "temperature": 0.1}
    replied = {"choices": [{"index": 0, "message": {"role": "assistant", "content": ANSWER}}]}
    trace = Trace("mlflow")
    with trace.span("predict", _step({"question": QUESTION}, ANSWER, "CHAIN")):
        found = [{"page_content": text, "metadata": {}} for text in PASSAGES]
        trace.leaf("look_up", _step({"query": QUESTION}, found, "RETRIEVER"))
        asked = {"endpoint": "small", "inputs": request}
        trace.leaf("completions", _step(asked, replied, "CHAT_MODEL"))
    return trace


def _files(data: list[str]) -> Trace:
    parts = [{"type": "file", "data": one, "mediaType": "text/plain", "filename": "a.txt"} for one in data]
    sent = [{"role": "user", "content": [*parts, {"type": "text", "text": QUESTION}]}]
    told = {"ai.operationId": "ai.generateText", "ai.response.text": ANSWER}
    trace = Trace("ai")
    with trace.span("ai.generateText", {**told, "ai.prompt": compact({"messages": sent})}):
        step = {"ai.operationId": "ai.generateText.doGenerate", "ai.response.text": ANSWER}
        trace.leaf("ai.generateText.doGenerate", {**step, "ai.prompt.messages": compact(sent)})
    return trace


@shape(Turn(without="guessed"))
def files_of_text_in_the_message() -> Trace:
    """What was found is sent as files of plain text beside the question."""
    return _files(list(PASSAGES))


@shape(Turn(without="guessed"))
def files_of_text_in_base64() -> Trace:
    """The same as clients encode files."""
    return _files([base64.b64encode(text.encode()).decode() for text in PASSAGES])


@shape(Turn(contexts=(), without="guessed"))
def own_search_with_an_empty_list() -> Trace:
    """A step whose name says nothing tells the question, and an empty list of documents."""
    trace = Trace("app")
    with trace.span("handle", {"app.question": QUESTION, "app.answer": ANSWER}):
        trace.leaf("step two", {"app.question": QUESTION, "app.documents": "[]", "app.k": 5})
        trace.leaf("chat", chat(f"Be brief.\n\n{QUESTION}", ANSWER), scope=_CLIENT)
    return trace


def _as_text(found: list[dict[str, str]]) -> Trace:
    trace = Trace("langfuse-sdk")
    given = {"args": [QUESTION], "kwargs": {}}
    with trace.span("answer", _observed("span", given, ANSWER)):
        trace.leaf("search", _observed("retriever", given, json.dumps(found)))
        sent = [{"role": "user", "content": prompt(passages=[one["text"] for one in found])}]
        trace.leaf("generation", _observed("generation", sent, {"role": "assistant", "content": ANSWER}))
    return trace


@shape(Turn(contexts=(), without="guessed"))
def empty_list_that_was_returned_as_a_text() -> Trace:
    """A traced search returns its empty list as JSON, so that its span holds JSON in JSON: no passage."""
    return _as_text([])


@shape(Turn(contexts=(), without="guessed"))
def empty_place_below_instructions_about_it() -> Trace:
    """The place for passages in the user's message is empty, and the instructions speak of the context."""
    trace = Trace("traceloop.tracer")
    told = {"traceloop.span.kind": "workflow", "traceloop.entity.output": compact(ANSWER)}
    given = compact({"args": ["Guide", QUESTION], "kwargs": {}})
    with trace.span("rag.workflow", {**told, "traceloop.entity.input": given}):
        sent = _sent(_ASKED, f"Context:\n\n\nUser Question: {QUESTION}\n\nAnswer:")
        trace.leaf("ollama.chat", sent, scope="opentelemetry.instrumentation.ollama")
    return trace


@shape(Turn(note="question_guessed", without="contexts_not_in_prompt"))
def tool_that_code_called_for_a_prompt() -> Trace:
    """Code calls a tool, puts what it returned above the question, and sends all of it as one message."""
    called = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look_up"}
    found = [{"id": f"d{n}", "text": text} for n, text in enumerate(PASSAGES)]
    trace = Trace("my.service")
    with trace.span("handle", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}):
        trace.leaf("step two", {**called, "gen_ai.tool.call.result": compact(found)})
        sent = f"You help our staff.\n\nRelevant documents:\n\n{joined()}\n\n{QUESTION}"
        trace.leaf("chat", chat(sent, ANSWER), scope=_CLIENT)
    return trace


@shape(Turn(without="question_guessed"))
def one_span_with_the_prompt_and_the_question() -> Trace:
    """One span tells the question, the prompt around it, the documents as Python shows them, the answer."""
    shown = ", ".join(
        f"Document(id='d{n}', metadata={{'page': {n}}}, page_content={text!r})"
        for n, text in enumerate(PASSAGES)
    )
    sent = f"{QUESTION} Please take this into account: {joined()}"
    told = {"input.value": QUESTION, "output.value": ANSWER, "llm.prompts": sent}
    trace = Trace("__main__")
    trace.leaf("chat_interaction", {**told, "retrieval.documents": f"[{shown}]"})
    return trace


@shape(Turn(note="contexts_guessed", without="question_guessed"))
def names_and_a_count_of_what_was_found() -> Trace:
    """A search tells titles and a count; the prompt has the parts below lines in brackets, between rules."""
    parts = "\n\n".join(f"[Care - part {part}]\n{text}" for part, text in zip("ABC", PASSAGES, strict=True))
    system = f"Be concise. Use the notes below.\n\n--- NOTES ---\n{parts}\n--- END NOTES ---"
    trace = Trace("langfuse-sdk")
    with trace.span("turn", _observed("span", QUESTION, ANSWER)):
        titles = [{"title": "Care", "section": f"part {part}", "score": 0.7} for part in "ABC"]
        count = {"langfuse.observation.metadata.retrievedChunks": "3"}
        trace.leaf("search", {**_observed("retriever", QUESTION, titles), **count})
        sent = [{"role": "system", "content": system}, {"role": "user", "content": QUESTION}]
        trace.leaf("generation", _observed("generation", sent, {"role": "assistant", "content": ANSWER}))
    return trace


@shape(Turn(one_text=True, note="contexts_guessed"))
def messages_written_down_as_one_text() -> Trace:
    """A callback writes down what was sent as one text, each message behind its role in brackets."""
    sent = f"[system]: Use the excerpts.\n[human]: Policy excerpts:\n{joined()}\n\nQuestion: {QUESTION}"
    trace = Trace("app")
    trace.leaf("llm.helper", {"llm.model": "m", "llm.prompt": sent, "llm.response": ANSWER})
    return trace


@shape(Turn(one_text=True, note="no_prompt_seen"))
def generation_given_an_object() -> Trace:
    """A model's step is given the question and the passages as an object, and nobody tells its prompt."""
    given = {"question": QUESTION, "context": joined()}
    trace = Trace("langfuse-sdk")
    trace.leaf("generate_small", _observed("generation", given, {"answer": ANSWER}))
    return trace


@shape(Turn(contexts=(), without="guessed"))
def own_search_that_returned_an_object_with_an_empty_list() -> Trace:
    """The same where the search returned its list within an object, beside what it measured."""
    told = {"status": "ok", "chunks": [], "milliseconds": 12}
    trace = Trace("app")
    with trace.span("handle", {"query": QUESTION, "return": ANSWER}):
        trace.leaf("step two", {"query": QUESTION, "return": compact(told)})
        trace.leaf("chat", {**_LEAVES, "gen_ai.completion.0.content": ANSWER}, scope=_CLIENT)
    return trace


@shape(Turn(note="no_prompt_seen"))
def decorated_search_that_returned_an_object() -> Trace:
    """A function decorated as a task is called a search, and returned its list within an object."""
    found = {"status": "ok", "chunks": [{"id": f"d{n}", "text": text} for n, text in enumerate(PASSAGES)]}
    given = compact({"args": [QUESTION], "kwargs": {}})
    trace = Trace("traceloop.tracer")
    with trace.span("rag.workflow", {"traceloop.span.kind": "workflow", "traceloop.entity.input": given}):
        task = {"traceloop.span.kind": "task", "traceloop.entity.input": given}
        trace.leaf("retrieve.task", {**task, "traceloop.entity.output": compact(found)})
        trace.leaf("openai.chat", {**_LEAVES, "gen_ai.completion.0.content": ANSWER}, scope=_CLIENT)
    return trace


@shape(Turn(note="no_prompt_seen"))
def step_that_tells_passages_and_an_answer() -> Trace:
    """The outermost step tells what was found and its answer, and the steps below it what was asked."""
    outer = {"mlflow.spanType": '"CHAIN"', "mlflow.spanOutputs": compact(ANSWER), "rag.contexts": PASSAGES}
    trace = Trace("mlflow")
    with trace.span("handle", outer):
        trace.leaf("look_up", _step({"query": QUESTION}, list(PASSAGES), "RETRIEVER"))
        trace.leaf("generate", _step({"question": QUESTION, "context": joined()}, ANSWER))
    return trace


@shape(Turn(one_text=True, without="no_contexts"))
def tool_result_in_a_list_under_names_of_a_vendor() -> Trace:
    """A tool's span is in the conventions, and its result, beside the call's id, in words of a vendor."""
    came = [{"id": "c1", "name": "search", "result": joined()}]
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
    asked = {"gen_ai.operation.name": "invoke_agent", "gen_ai.prompt": compact(_user(QUESTION))}
    trace = Trace("io.framework")
    with trace.span("invoke_agent guide", {**asked, "gen_ai.completion": ANSWER}):
        trace.leaf("execute_tool search", {**tool, "langfuse.observation.output": compact(came)})
        sent = {"gen_ai.prompt": compact([*_user(QUESTION), {"role": "TOOL"}]), "gen_ai.completion": ANSWER}
        trace.leaf("chat m", {**_CHAT, **sent})
    return trace


def _user(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def _titles_alone(sent: str, **beside: str) -> Trace:
    """A look-up tells titles of what it found, and the model's input has it all."""
    found = {"documents": [{"id": f"d{n}", "title": f"Part {n}"} for n in range(len(PASSAGES))], **beside}
    trace = Trace("langfuse-sdk")
    with trace.span("answer", _observed("span", QUESTION, ANSWER)):
        trace.leaf("find", _observed("retriever", {"query": QUESTION}, found))
        trace.leaf("write", _observed("generation", _user(sent), ANSWER))
    return trace


@shape(Turn(note="contexts_guessed"))
def message_that_is_an_object() -> Trace:
    """The user's message is an object as JSON, with a list of passages in it."""
    parts = [{"source": n, "text": text} for n, text in enumerate(PASSAGES, 1)]
    return _titles_alone(compact({"previous": [], "question": QUESTION, "documentation": parts}))


@shape(Turn(note="contexts_guessed"))
def lines_of_json_in_a_fence_with_a_language() -> Trace:
    """Each passage is a line of JSON, in a fence that says so, below a long line that announces it."""
    lines = "\n".join(compact({"reference_id": f"{n}", "content": text}) for n, text in enumerate(PASSAGES))
    head = "Document Chunks (each entry has a reference_id that refers to the list of files below):"
    return _titles_alone(f"---Context---\n\n{head}\n\n```json\n{lines}\n```\n\n{QUESTION}")


_FIGURE = "Sold in the last day: 31 chains of 12 kinds."


@shape(Turn(contexts=(*PASSAGES, _FIGURE), note="contexts_guessed"))
def figures_beside_titles_of_documents() -> Trace:
    """A look-up tells a text beside the titles of documents: it is not all that was found."""
    parts = "\n\n".join(f"[Part {n}] {text}" for n, text in enumerate(PASSAGES))
    return _titles_alone(f"CONTEXT:\n{parts}\n\n{_FIGURE}\n\nQUESTION: {QUESTION}", figures=_FIGURE)


@shape(Turn(without="answer"))
def state_that_keeps_the_conversation_beside_the_answer() -> Trace:
    """A graph's state holds what was said before, as it was given, and the new answer under a name."""
    before = [*_user("Who are you?"), {"role": "assistant", "content": "I am a guide to bicycles."}]
    state = {"question": QUESTION, "messages": before}
    run = {"langsmith.span.kind": "chain", "gen_ai.prompt": compact(state)}
    told = {"gen_ai.completion": compact({**state, "answer": ANSWER})}
    trace = Trace("langsmith")
    with trace.span("LangGraph", {**run, **told}):
        found = {"gen_ai.prompt": compact({"query": QUESTION}), "gen_ai.completion": compact(list(PASSAGES))}
        trace.leaf("find", {"langsmith.span.kind": "retriever", **found})
        sent = {"gen_ai.prompt": compact({"messages": [*before, *_user(prompt())]})}
        said = {"gen_ai.completion": compact({"role": "assistant", "content": ANSWER})}
        trace.leaf("ChatModel", {"langsmith.span.kind": "llm", **sent, **said})
    return trace


SHAPES: tuple[Shape, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Shape))


def _asked_and_found(told: dict[str, Any]) -> Trace:
    trace = Trace("my.service")
    with trace.span(
        "answer", {"openinference.span.kind": "CHAIN", "input.value": QUESTION, "output.value": ANSWER}
    ):
        trace.leaf("look_up", {"openinference.span.kind": "RETRIEVER", "input.value": QUESTION, **told})
        sent = {"llm.input_messages": [compact({"message": {"role": "user", "content": prompt()}})]}
        reply = {"llm.output_messages": [compact({"message": {"role": "assistant", "content": ANSWER}})]}
        trace.leaf("call", {"openinference.span.kind": "LLM", **sent, **reply})
    return trace


@shape(Turn(without="contexts"))
def objects_as_texts_of_a_list() -> Trace:
    """An attribute holds no objects: documents and messages are lists of JSON."""
    found = [{"score": 0.9, "document": {"content": text, "metadata": {"title": "Oil"}}} for text in PASSAGES]
    return _asked_and_found({"retrieval.documents": list(map(compact, found))})


@shape(Turn(without="contexts"))
def class_of_the_application_as_python_shows_it() -> Trace:
    """A look-up returned objects of a class, which a tracer can only print."""
    hits = [f"Hit(id='d{n}', text={text!r}, score=0.5)" for n, text in enumerate(PASSAGES)]
    return _asked_and_found({"output.value": compact(hits)})


@shape(Turn(without="contexts"))
def class_of_the_application_from_a_tool() -> Trace:
    """A tool returned them."""
    hits = [f"Hit(id='d{n}', text={text!r}, score=0.5)" for n, text in enumerate(PASSAGES)]
    trace = Trace("my.service")
    with trace.span("answer", {"app.question": QUESTION, "app.answer": ANSWER}):
        told = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "fetch"}
        trace.leaf("execute_tool fetch", {**told, "gen_ai.tool.call.result": compact(hits)})
        trace.leaf("chat", _sent(prompt()), scope=_CLIENT)
    return trace


@shape(Turn(without="answer"))
def answer_told_of_the_trace_alone() -> Trace:
    """The root tells its type and what the user was given; what was asked is told by the step within."""
    trace = Trace("langfuse-sdk")
    told = {"langfuse.observation.type": "chain", "langfuse.trace.output": ANSWER}
    draft = _observed("span", QUESTION, {"draft": f"<en>{ANSWER}</en>", "is_idk": False})
    with trace.span("message", told), trace.span("generate", draft):
        trace.leaf("search", _observed("retriever", QUESTION, [{"text": text} for text in PASSAGES]))
        reply = {"role": "assistant", "content": f"<en>{ANSWER}</en>"}
        trace.leaf("call", _observed("generation", [{"role": "user", "content": prompt()}], reply))
    return trace


_JSON = compact({"name": "chain", "text": ANSWER, "more": ["A spoke is straight."]})


@shape(Turn(contexts=(_JSON, *PASSAGES[1:]), answer=_JSON, without="question"))
def reply_that_is_a_passage_in_json() -> Trace:
    """A model repeats a passage that is JSON, and the application returns that in an object of its own."""
    found = [{"text": text} for text in (_JSON, *PASSAGES[1:])]
    trace = Trace("my.service")
    told = {
        "app.request": compact({"message": QUESTION}),
        "app.answer": compact({"reply": _JSON, "status": "ok"}),
    }
    with trace.span("handle", told):
        trace.leaf("fetch", {"gen_ai.operation.name": "retrieval", "app.output": compact(found)})
        trace.leaf("chat", _sent(joined((_JSON, *PASSAGES[1:])), QUESTION, reply=_JSON), scope=_CLIENT)
    return trace


_FORM = "```\nThought: I can answer now, in the words of the user.\nAnswer: [what you say here]\n```"


def _agent(name: str, system: str, reply: str) -> Trace:
    trace = Trace("openinference.instrumentation.llama_index")
    told = {
        "openinference.span.kind": "CHAIN",
        "input.value": QUESTION,
        "output.value": ANSWER,
    }
    with trace.span(name, told):
        sent = [("system", system), ("user", QUESTION)]
        messages = {f"llm.input_messages.{n}.message.role": role for n, (role, _) in enumerate(sent)}
        messages |= {f"llm.input_messages.{n}.message.content": text for n, (_, text) in enumerate(sent)}
        said = {
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": reply,
        }
        trace.leaf("Model.achat", {"openinference.span.kind": "LLM", **messages, **said})
    return trace


@shape(Turn(contexts=(), without="guessed"))
def agent_that_called_no_tool() -> Trace:
    """An agent of LlamaIndex answers without its tools; the form for its reply is no passage."""
    return _agent("ReActAgent.run", _FORM, f"Thought: I can answer now.\nAnswer: {ANSWER}")
