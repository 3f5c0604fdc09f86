"""Spans written by hand in the GenAI conventions, in each form that the conventions had for content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apps.otel.attributes import oi
from apps.otel.shapes import (
    ANSWER,
    PASSAGES,
    QUERY,
    QUESTION,
    SCORES,
    Shape,
    Trace,
    Turn,
    compact,
    event,
    joined,
    prompt,
    shape,
)

_MEMORY = "The user rides a touring bicycle to work each day."
_OBJECT = compact({"name": "Chains", "text": PASSAGES[0], "more": [PASSAGES[1]]})
_CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "small-model",
}
_SYSTEM = "You help our customers. Use these sources."
_TYPED = f"I read this: chains last for years. {QUESTION}"
_FORM = compact({"finding": ANSWER, "confidence": "as good as certain after two tests", "topics": ["chain"]})
_CALL = {"type": "tool_call", "id": "c1", "name": "look_up", "arguments": {"query": QUERY}}
_RESULT = {"type": "tool_call_response", "id": "c1", "response": joined()}


def said(*messages: tuple[str, str]) -> str:
    """Messages as the conventions have them today."""
    return compact([{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in messages])


def retrieval(query: str = QUESTION) -> dict[str, Any]:
    """A retrieval span whose documents have their texts."""
    found = [
        {"id": f"d{n}", "score": score, "content": text}
        for n, (text, score) in enumerate(zip(PASSAGES, SCORES, strict=True))
    ]
    told = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": query}
    return {**told, "gen_ai.data_source.id": "manuals", "gen_ai.retrieval.documents": compact(found)}


def chat(asked: str, reply: str, *before: tuple[str, str]) -> dict[str, Any]:
    """A model call with its content in attributes."""
    replied = {"gen_ai.output.messages": said(("assistant", reply))}
    return {**_CHAT, "gen_ai.input.messages": said(*before, ("user", asked)), **replied}


@shape(Turn())
def genai_attributes_of_today() -> Trace:
    """A retrieval and a model call below the application's own span, all content in attributes."""
    trace = Trace("my.service")
    with trace.span("answer"):
        trace.leaf("retrieval manuals", retrieval())
        trace.leaf("chat small-model", chat(prompt(), ANSWER))
    return trace


@shape(Turn())
def genai_details_in_one_event() -> Trace:
    """The content of a call stands in one event on its span, `inference.operation.details`."""
    told = {"gen_ai.input.messages": said(("user", prompt()))}
    details = {**_CHAT, **told, "gen_ai.output.messages": said(("assistant", ANSWER))}
    trace = Trace("my.service")
    with trace.span("answer"):
        trace.leaf("retrieval manuals", retrieval())
        events = [event("gen_ai.client.inference.operation.details", details)]
        trace.leaf("chat small-model", _CHAT, events=events)
    return trace


@shape(Turn(one_text=True, note="contexts_guessed", without="never ended"))
def genai_an_event_for_each_message() -> Trace:
    """The older form: `gen_ai.user.message` and `gen_ai.choice`, as events on the span."""
    choice = {"index": 0, "message": compact({"role": "assistant", "content": ANSWER})}
    events = [
        event("gen_ai.system.message", {"content": "Be brief."}),
        event("gen_ai.user.message", {"role": "user", "content": prompt()}),
        event("gen_ai.choice", choice),
    ]
    trace = Trace("my.service")
    with trace.span("answer"):
        trace.leaf("chat small-model", _CHAT, events=events)
    return trace


@shape(Turn(one_text=True, note="contexts_guessed"))
def genai_events_whose_content_is_json() -> Trace:
    """As Azure's inference clients write them: each event has its message as JSON in one attribute."""
    asked = compact({"role": "user", "content": prompt()})
    replied = compact({"message": {"content": ANSWER}, "finish_reason": "stop", "index": 0})
    events = [
        event("gen_ai.user.message", {"gen_ai.event.content": asked}),
        event("gen_ai.choice", {"gen_ai.event.content": replied}),
    ]
    trace = Trace("azure.ai.inference")
    trace.leaf("chat small-model", _CHAT, events=events)
    return trace


@shape(Turn(one_text=True, note="contexts_guessed"))
def genai_prompt_and_completion_events() -> Trace:
    """An event with the prompt and one with the completion, each as a plain text."""
    events = [
        event("gen_ai.content.prompt", {"gen_ai.prompt": prompt()}),
        event("gen_ai.content.completion", {"gen_ai.completion": ANSWER}),
    ]
    trace = Trace("openlit.otel.tracing")
    trace.leaf("chat small-model", _CHAT, events=events)
    return trace


@shape(Turn(one_text=True, note="contexts_guessed"))
def genai_prompt_and_completion_as_one_text() -> Trace:
    """As LangChain4j under Quarkus writes them: the whole prompt and the whole completion, one text each."""
    trace = Trace("io.quarkus.opentelemetry")
    with trace.span("langchain4j.aiservices.Mechanic.answer"):
        told = {**_CHAT, "gen_ai.operation.name": "completion"}
        trace.leaf("completion small", {**told, "gen_ai.prompt": prompt(), "gen_ai.completion": ANSWER})
    return trace


@shape(Turn(one_text=True))
def genai_events_in_one_attribute() -> Trace:
    """An agent whose model calls keep the conversation as a JSON list of events in `events`."""
    call = {"id": "c1", "type": "function", "function": {"name": "search_manual", "arguments": "{}"}}
    asked = {"event.name": "gen_ai.user.message", "role": "user", "content": QUESTION}
    called = {"event.name": "gen_ai.assistant.message", "role": "assistant", "tool_calls": [call]}
    found = "\n\n".join(PASSAGES)
    returned = {"event.name": "gen_ai.tool.message", "role": "tool", "id": "c1", "content": found}
    replied = {"event.name": "gen_ai.assistant.message", "role": "assistant", "content": ANSWER}
    trace = Trace("logfire.openai_agents")
    run = {"name": "mechanic", "gen_ai.system": "openai"}
    with trace.span("OpenAI Agents trace: {name}"), trace.span("Agent run: {name!r}", run):
        trace.leaf("Responses API", {**_CHAT, "events": compact([asked, called])})
        trace.leaf("Function: {name}", {"name": "search_manual", "input": "{}", "output": found})
        trace.leaf("Responses API", {**_CHAT, "events": compact([asked, called, returned, replied])})
    return trace


@shape(Turn(one_text=True))
def genai_events_with_blocks() -> Trace:
    """An agent whose spans have all content in events, as JSON of blocks; a tool's result is its choice."""
    use = {"toolUse": {"toolUseId": "c1", "name": "search_manual", "input": {"query": QUERY}}}
    back = {"toolResult": {"toolUseId": "c1", "content": [{"text": "\n\n".join(PASSAGES)}]}}
    asked = event("gen_ai.user.message", {"content": compact([{"text": QUESTION}])})
    called = event("gen_ai.choice", {"finish_reason": "tool_use", "message": compact([use])})
    sent = event("gen_ai.tool.message", {"role": "tool", "content": compact({"query": QUERY}), "id": "c1"})
    found = event("gen_ai.choice", {"message": compact(back["toolResult"]["content"]), "id": "c1"})
    before = event("gen_ai.assistant.message", {"content": compact([use])})
    returned = event("gen_ai.tool.message", {"content": compact([back])})
    replied = event("gen_ai.choice", {"finish_reason": "end_turn", "message": compact([{"text": ANSWER}])})
    final = event("gen_ai.choice", {"message": ANSWER + "\n", "finish_reason": "end_turn"})
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search_manual"}
    trace = Trace("strands.telemetry.tracer")
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.system": "strands-agents"}
    with trace.span("invoke_agent mechanic", agent, events=[asked, final]):
        trace.leaf("chat", _CHAT, events=[asked, called])
        trace.leaf("execute_tool search_manual", tool, events=[sent, found])
        trace.leaf("chat", _CHAT, events=[asked, before, returned, replied])
    return trace


@shape(Turn())
def genai_parts_that_are_not_words() -> Trace:
    """An image beside the question, what a model thought beside its answer, and parts of no known kind."""
    image = {"type": "blob", "mime_type": "image/png", "content": "iVBORw0KGgo" * 40}
    asked = [{"role": "user", "parts": [{"type": "text", "content": QUESTION}, image, None, 3]}]
    thought = {"type": "reasoning", "content": "The manual has a part about chains."}
    replied = [{"role": "assistant", "parts": [thought, {"type": "text", "content": ANSWER}]}]
    told = {"gen_ai.input.messages": compact(asked), "gen_ai.output.messages": compact(replied)}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search_manual"}
    trace = Trace("my.service")
    with trace.span("invoke_agent mechanic", {"gen_ai.operation.name": "invoke_agent", **told}):
        result = {"gen_ai.tool.call.arguments": compact({"query": QUERY})}
        result["gen_ai.tool.call.result"] = compact({"items": PASSAGES, "total": 3})
        trace.leaf("execute_tool search_manual", {**tool, **result})
        trace.leaf("chat small-model", {**chat(prompt(), ANSWER), **_without_input(told)})
    return trace


@shape(Turn())
def genai_agent_that_is_given_a_state() -> Trace:
    """LangChain's agents tell their whole input as JSON, in a message of the user's."""
    state = compact({"input": QUESTION, "chat_history": []})
    asked = [{"role": "user", "parts": [{"type": "text", "content": state}]}]
    replied = [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}]
    told = {"gen_ai.input.messages": compact(asked), "gen_ai.output.messages": compact(replied)}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search_manual"}
    tool |= {"gen_ai.tool.call.arguments": compact({"query": QUERY})}
    trace = Trace("opentelemetry.instrumentation.genai.langchain")
    with trace.span("invoke_agent mechanic", {"gen_ai.operation.name": "invoke_agent", **told}):
        trace.leaf("execute_tool search_manual", {**tool, "gen_ai.tool.call.result": compact(PASSAGES)})
        trace.leaf("chat small-model", {**chat(prompt(), ANSWER), **_without_input(told)})
    return trace


def _without_input(told: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in told.items() if key != "gen_ai.input.messages"}


@shape(Turn(without="guessed"))
def documents_as_blocks_of_a_message() -> Trace:
    """Documents beside the question, each a block of the user's message, as Anthropic wants them."""
    found = compact([{"id": f"d{n}", "content": text} for n, text in enumerate(PASSAGES)])
    documents = [{"type": "document", "source": {"type": "text", "data": text}} for text in PASSAGES]
    said = {"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": ANSWER}
    sent = {
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": compact([*documents, {"type": "text", "text": QUESTION}]),
    }
    trace = Trace("my.service")
    with trace.span("GET /ask"):
        told = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": QUESTION}
        trace.leaf("retrieval kb", {**told, "gen_ai.retrieval.documents": found})
        trace.leaf(
            "anthropic.chat", {"llm.request.type": "chat", "gen_ai.request.model": "s", **sent, **said}
        )
    return trace


@shape(Turn(without="guessed"))
def documents_as_blocks_and_nothing_else() -> Trace:
    """The same call alone: the documents are said to be such, so that nothing is cut out of the prompt."""
    documents = [{"type": "document", "source": {"type": "text", "data": text}} for text in PASSAGES]
    sent = compact([*documents, {"type": "text", "text": QUESTION}])
    told = {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": sent}
    said = {"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": ANSWER}
    trace = Trace("opentelemetry.instrumentation.anthropic")
    trace.leaf("anthropic.chat", {"llm.request.type": "chat", "gen_ai.request.model": "s", **told, **said})
    return trace


@shape(Turn())
def step_called_chat_around_a_call() -> Trace:
    """A workflow called `chat` tells the user's message alone; the client below tells what was sent."""
    asked = {"type": "chat_messages", "value": [{"role": "user", "content": QUESTION}]}
    found = {
        "type": "json",
        "value": [{"document_id": f"d{n}", "content": t} for n, t in enumerate(PASSAGES)],
    }
    trace = Trace("langwatch")
    told = {"langwatch.span.type": "workflow", "langwatch.input": compact(asked)}
    above = {**told, "langwatch.output": compact({"type": "text", "value": ANSWER})}
    client = "opentelemetry.instrumentation.genai.openai"
    with (
        trace.span("chat", above),
        trace.span("rag", {"langwatch.span.type": "rag", "langwatch.contexts": compact(found)}),
    ):
        trace.leaf("chat small-model", chat(prompt(), ANSWER), scope=client)
    return trace


@shape(Turn(contexts=(_OBJECT,), without="guessed"))
def tool_result_that_is_one_object() -> Trace:
    """What a tool returned is an object that says more than its text: all of it was shown."""
    asked = {"type": "tool_call", "id": "c1", "name": "look_up", "arguments": {"query": QUERY}}
    came = {"type": "tool_call_response", "id": "c1", "response": _OBJECT}
    sent = [
        {"role": "user", "parts": [{"type": "text", "content": QUESTION}]},
        {"role": "assistant", "parts": [asked]},
        {"role": "tool", "parts": [came]},
    ]
    replied = {"gen_ai.output.messages": said(("assistant", ANSWER))}
    trace = Trace("my.service")
    with trace.span("answer"):
        trace.leaf("chat small-model", {**_CHAT, "gen_ai.input.messages": compact(sent), **replied})
    return trace


@shape(Turn(contexts=(_MEMORY, *PASSAGES), without="guessed"))
def memories_that_were_searched() -> Trace:
    """A search of what is remembered of the user, beside a retrieval; both stand in the prompt."""
    told = {"gen_ai.operation.name": "search_memory", "gen_ai.memory.query.text": QUESTION}
    trace = Trace("my.service")
    with trace.span("answer"):
        records = compact([{"id": "m1", "content": _MEMORY}])
        trace.leaf("search_memory users", {**told, "gen_ai.memory.records": records})
        trace.leaf("retrieval manuals", retrieval())
        trace.leaf("chat small-model", chat(f"Of the user: {_MEMORY}\n\n{prompt()}", ANSWER))
    return trace


@shape(Turn(note="contexts_guessed"))
def numbered_titles_with_rules_between() -> Trace:
    """Each passage stands below its number and its title, and rules stand between, as in .NET services."""
    parts = (f"[{n}] Manual > Chapter {n}\n\n{text}" for n, text in enumerate(PASSAGES, 1))
    shown = "\n\n---\n\n".join(parts)
    trace = Trace("Experimental.Microsoft.Extensions.AI")
    trace.leaf("chat", chat(f"=== DOCUMENTATION ===\n{shown}\n=== END ===\n\nQuestion: {QUESTION}", ANSWER))
    return trace


@shape(Turn(note="contexts_guessed"))
def numbered_parts_in_a_message_of_their_own() -> Trace:
    """A second system message has passages below a label that no list of words has."""
    parts = (f"[{n}] Nowak [00:1{n} - 00:2{n}]:\n{text}" for n, text in enumerate(PASSAGES, 1))
    shown = "Odpowiednie fragmenty transkrypcji:\n\n" + "\n\n".join(parts)
    trace = Trace("ai")
    trace.leaf("chat", chat(QUESTION, ANSWER, ("system", "You are sarcastic."), ("system", shown)))
    return trace


def _message(role: str, part: object) -> dict[str, Any]:
    parts = [{"type": "text", "content": part} if isinstance(part, str) else part]
    return {"role": role, "parts": parts}


def _call(sent: Sequence[object], reply: object) -> dict[str, Any]:
    told = {"gen_ai.input.messages": compact(sent), "gen_ai.output.messages": compact([reply])}
    return {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small-model", **told}


def _looped(asked: str) -> list[dict[str, Any]]:
    """A conversation in which a model called a tool."""
    return [
        *(_message("system", _SYSTEM), _message("user", asked)),
        *(_message("assistant", _CALL), _message("tool", _RESULT)),
    ]


@shape(Turn(question=_TYPED, one_text=True))
def agent_asked_for_another_version() -> Trace:
    """Code asks an agent's model to improve its draft: what was typed before is the question as it is."""
    trace, sent = Trace("my.service"), _looped(_TYPED)
    draft = "The chain needs oil once a year, or so they say."
    more = _message("user", f"Draft:\n{draft}\n\nImprove the draft.")
    with trace.span("POST /ask", {"http.request.method": "POST"}):
        trace.leaf("chat", _call(sent[:2], sent[2]))
        trace.leaf("execute_tool look_up", {"gen_ai.operation.name": "execute_tool"})
        trace.leaf("chat", _call(sent, _message("assistant", draft)))
        trace.leaf("chat", _call([*sent, more], _message("assistant", ANSWER)))
    return trace


@shape(Turn(without="question_whole_prompt"))
def step_that_was_given_the_whole_prompt() -> Trace:
    """A step around the model's call tells its messages joined: the user's is the question."""
    system = f"Answer from the context alone.\n\nContext:\n{joined()}"
    trace = Trace("my.service")
    with trace.span("generate", oi("CHAIN", f"{system}\n\n{QUESTION}", ANSWER)):
        trace.leaf("search", {"hits": PASSAGES, "query": QUESTION})
        trace.leaf("chat", chat(QUESTION, ANSWER, ("system", system)))
    return trace


@shape(Turn(answer="Nothing was found on that.", note="no_prompt_seen"))
def workflow_that_ends_without_a_model() -> Trace:
    """A workflow returns an answer of its own and no sources, as a pair that Python shows."""
    trace = Trace("openinference.instrumentation.llama_index")
    found = {f"retrieval.documents.{at}.document.content": text for at, text in enumerate(PASSAGES)}
    result = "StopEvent(result=('Nothing was found on that.', ''))"
    with trace.span("Docs.run", oi("CHAIN", {"question": QUESTION}, result)):
        trace.leaf("Retriever.aretrieve", {**oi("RETRIEVER", QUESTION), **found})
    return trace


@shape(Turn(answer=_FORM, without="form"))
def agent_that_returns_the_whole_form() -> Trace:
    """A decorated agent returns all of the form that its model filled in: no field of it is the answer."""
    trace = Trace("instruments")
    with trace.span("agent", {**oi("AGENT", {"query": QUESTION}), "output.value": _FORM}):
        trace.leaf("search", {"hits": PASSAGES, "query": QUESTION})
        trace.leaf("chat", chat(f"Fill in the form.\n\nContext:\n{joined()}\n\nQuestion: {QUESTION}", _FORM))
    return trace


SHAPES: tuple[Shape, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Shape))
