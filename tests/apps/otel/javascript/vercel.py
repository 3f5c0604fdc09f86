"""The Vercel AI SDK (`ai.*`): one span for a call, one for each step of it, one for each tool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from apps.otel.shapes import (
    ANSWER,
    PASSAGES,
    QUERY,
    QUESTION,
    Gap,
    Shape,
    Trace,
    Turn,
    compact,
    joined,
    shape,
)

_MODEL = {"ai.model.id": "small-model", "ai.model.provider": "openai.responses"}
_SYSTEM = f"Answer from the context alone.\n\nContext:\n{joined()}"


def _named(operation: str) -> dict[str, Any]:
    return {
        "operation.name": f"{operation} rag",
        "ai.operationId": operation,
        "ai.telemetry.functionId": "rag",
    }


@contextmanager
def _call(
    trace: Trace, prompt: object, text: str = ANSWER, *, operation: str = "ai.generateText"
) -> Iterator[None]:
    """The outer span of a call."""
    said = {"ai.prompt": compact(prompt), "ai.response.text": text}
    with trace.span(operation, {**_named(operation), **_MODEL, **said}):
        yield


def _step(
    trace: Trace, messages: Sequence[object], text: str = "", *, operation: str = "ai.generateText.doGenerate"
) -> None:
    """One request to the model; without a text it asked for a tool."""
    reply = {"ai.response.text": text} if text else {"ai.response.toolCalls": compact([_asked("search")])}
    sent = {"ai.prompt.messages": compact(messages), "gen_ai.request.model": "small-model"}
    trace.leaf(
        operation, {**_named(operation), **_MODEL, **sent, **reply, "gen_ai.system": "openai.responses"}
    )


def _asked(tool: str) -> dict[str, Any]:
    return {"toolCallId": "call-1", "toolName": tool, "input": compact({"query": QUERY})}


def _tool(trace: Trace, result: object, *, name: str = "getInformation", args: object = None) -> None:
    told = {"ai.toolCall.name": name, "ai.toolCall.id": "call-1", "ai.toolCall.result": compact(result)}
    given = {"ai.toolCall.args": compact(args or {"question": QUERY})}
    trace.leaf("ai.toolCall", {**_named("ai.toolCall"), **told, **given})


def _user(text: str = QUESTION) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def _returned(value: object, *, name: str = "getInformation") -> list[dict[str, Any]]:
    kind = "text" if isinstance(value, str) else "json"
    call = {"type": "tool-call", "toolCallId": "call-1", "toolName": name, "input": {"question": QUERY}}
    part = {
        "type": "tool-result",
        "toolCallId": "call-1",
        "toolName": name,
        "output": {"type": kind, "value": value},
    }
    return [{"role": "assistant", "content": [call]}, {"role": "tool", "content": [part]}]


def _with_tool(result: object, *, sent: object = None) -> Trace:
    """A call that searches once and then answers."""
    trace = Trace("ai")
    with _call(trace, {"prompt": QUESTION}):
        _step(trace, [_user()])
        _tool(trace, result)
        _step(trace, [_user(), *_returned(result if sent is None else sent)], ANSWER)
    return trace


@shape(Turn(one_text=True))
def vercel_passages_in_the_system_prompt() -> Trace:
    """A route embeds the question, searches on its own, and puts the passages into `system`."""
    trace = Trace("ai")
    with trace.span("POST /api/chat", {"http.request.method": "POST"}, scope="next.js"):
        trace.leaf("ai.embed", {**_named("ai.embed"), "ai.value": compact(QUESTION), "ai.embedding": "[0.1]"})
        with _call(trace, {"system": _SYSTEM, "prompt": QUESTION}):
            _step(trace, [{"role": "system", "content": _SYSTEM}, _user()], ANSWER)
    return trace


@shape(Turn(one_text=True))
def vercel_streamed_chat_with_a_history() -> Trace:
    """streamText over a conversation: the last user message is the question."""
    earlier = [_user("Hello"), {"role": "assistant", "content": [{"type": "text", "text": "What can I do?"}]}]
    messages = [{"role": "system", "content": _SYSTEM}, *earlier, _user()]
    trace = Trace("ai")
    with _call(trace, {"messages": messages}, operation="ai.streamText"):
        _step(trace, messages, ANSWER, operation="ai.streamText.doStream")
    return trace


@shape(Turn())
def vercel_tool_returning_texts() -> Trace:
    """A search tool gives a plain list of strings."""
    return _with_tool(list(PASSAGES))


@shape(Turn(one_text=True))
def vercel_tool_returning_rows_of_a_table() -> Trace:
    """A search tool gives database rows, the passage under `name` beside its `similarity`."""
    return _with_tool([{"name": text, "similarity": 0.9} for text in PASSAGES])


@shape(Turn())
def vercel_tool_returning_ids_and_texts() -> Trace:
    """A search tool gives objects with `id` and `text`."""
    return _with_tool([{"id": f"d{n}", "text": text} for n, text in enumerate(PASSAGES)])


@shape(Turn(one_text=True))
def vercel_tool_returning_one_text() -> Trace:
    """A search tool joins its passages with empty lines."""
    return _with_tool(joined())


@shape(Turn())
def vercel_tool_of_an_mcp_server() -> Trace:
    """A tool of an MCP server gives content blocks."""
    return _with_tool({"content": [{"type": "text", "text": text} for text in PASSAGES], "isError": False})


@shape(Turn())
def vercel_search_beside_a_calculator() -> Trace:
    """Of two tools only the search gives contexts."""
    trace = Trace("ai")
    with _call(trace, {"prompt": QUESTION}):
        _step(trace, [_user()])
        _tool(trace, {"kilometres": 200, "miles": 124}, name="convert", args={"kilometres": 200})
        _tool(trace, list(PASSAGES))
        _step(trace, [_user(), *_returned(list(PASSAGES))], ANSWER)
    return trace


@shape(Turn())
def vercel_two_searches() -> Trace:
    """The model searches twice; each search finds other passages."""
    trace = Trace("ai")
    with _call(trace, {"prompt": QUESTION}):
        _step(trace, [_user()])
        _tool(trace, [PASSAGES[0]])
        _step(trace, [_user(), *_returned([PASSAGES[0]])])
        _tool(trace, list(PASSAGES[1:]), args={"question": "chain after rain"})
        sent = [*_returned([PASSAGES[0]]), *_returned(list(PASSAGES[1:]))]
        _step(trace, [_user(), *sent], ANSWER)
    return trace


@shape(Turn(one_text=True))
def vercel_structured_answer() -> Trace:
    """generateObject: the answer stands in a field of `ai.response.object`."""
    trace = Trace("ai")
    reply = {"ai.response.object": compact({"answer": ANSWER})}
    messages = compact([{"role": "system", "content": _SYSTEM}, _user()])
    outer = {"ai.prompt": compact({"system": _SYSTEM, "prompt": QUESTION}), **reply}
    with trace.span("ai.generateObject", {**_named("ai.generateObject"), **_MODEL, **outer}):
        inner = {"ai.prompt.messages": messages, "gen_ai.request.model": "small-model", **reply}
        trace.leaf(
            "ai.generateObject.doGenerate", {**_named("ai.generateObject.doGenerate"), **_MODEL, **inner}
        )
    return trace


@shape(Turn(contexts=(PASSAGES[1], PASSAGES[0])))
def vercel_reranked_passages() -> Trace:
    """rerank orders the candidates and the two best go into the prompt."""
    system = f"Answer from the context alone.\n\nContext:\n{joined((PASSAGES[1], PASSAGES[0]))}"
    ranking = [compact({"index": n, "relevanceScore": s}) for n, s in ((1, 0.9), (0, 0.8))]
    told = {
        "ai.documents": [compact(text) for text in PASSAGES],
        "ai.ranking.type": "text",
        "ai.ranking": ranking,
    }
    trace = Trace("ai")
    with trace.span("POST /api/chat", {"http.request.method": "POST"}, scope="next.js"):
        with trace.span("ai.rerank", {**_named("ai.rerank"), "ai.documents": told["ai.documents"]}):
            trace.leaf("ai.rerank.doRerank", {**_named("ai.rerank.doRerank"), **told})
        with _call(trace, {"system": system, "prompt": QUESTION}):
            _step(trace, [{"role": "system", "content": system}, _user()], ANSWER)
    return trace


@shape(Turn(one_text=True))
def vercel_query_rewritten_first() -> Trace:
    """One call writes a search query, a second one answers: the user's question is that of the second."""
    ask = f"Write a search query for this message: {QUESTION}"
    trace = Trace("ai")
    with trace.span("POST /api/chat", {"http.request.method": "POST"}, scope="next.js"):
        with _call(trace, {"prompt": ask}, QUERY):
            _step(trace, [_user(ask)], QUERY)
        with _call(trace, {"system": _SYSTEM, "prompt": QUESTION}):
            _step(trace, [{"role": "system", "content": _SYSTEM}, _user()], ANSWER)
    return trace


@shape(Turn())
def vercel_tool_run_by_the_provider() -> Trace:
    """No tool span: what the search found stands only in the next step's messages."""
    trace = Trace("ai")
    with _call(trace, {"prompt": QUESTION}):
        _step(trace, [_user()])
        _step(trace, [_user(), *_returned(list(PASSAGES), name="file_search")], ANSWER)
    return trace


@shape(Gap(cause="content_off", switch="recordInputs"))
def vercel_content_off() -> Trace:
    """recordInputs and recordOutputs are false: only names and numbers are told."""
    trace = Trace("ai")
    with trace.span("ai.generateText", {**_named("ai.generateText"), **_MODEL}):
        step = {**_named("ai.generateText.doGenerate"), **_MODEL, "gen_ai.request.model": "small-model"}
        trace.leaf("ai.generateText.doGenerate", step)
        trace.leaf("ai.toolCall", {**_named("ai.toolCall"), "ai.toolCall.name": "getInformation"})
        trace.leaf("ai.generateText.doGenerate", step)
    return trace


SHAPES: tuple[Shape, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Shape))
