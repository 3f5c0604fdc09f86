"""LangChain4j: spans of Quarkus, of its Micrometer module, and of OpenInference's listeners."""

from __future__ import annotations

from typing import Any

from apps.otel.attributes import oi, oi_model, oi_tool
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

_QUARKUS = "io.quarkus.opentelemetry"
_RULES = "You answer questions of cyclists. Say so where you do not know."
_FROM_PROMPT = Turn(one_text=True, note="contexts_guessed")


def _injected(question: str = QUESTION) -> str:
    """The user's message with what the retriever found below it."""
    return f"{question}\n\nAnswer using the following information:\n{joined()}"


def _completion(trace: Trace, sent: str | None, reply: str | None, *, is_old: bool = False) -> None:
    """A model call of Quarkus: all messages as one text, a line between two of them."""
    told = {} if is_old else {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "open_ai"}
    told |= {"gen_ai.request.model": "small-model", "gen_ai.response.id": "r-1"}
    told |= {"gen_ai.prompt": sent} if sent else {}
    told |= {"gen_ai.completion": reply} if reply else {}
    trace.leaf("completion small-model", told)


def _searched(trace: Trace) -> None:
    """A tool of Quarkus that returned a list of texts."""
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "searchManual"}
    told = {"gen_ai.tool.call.arguments": compact({"query": QUERY})}
    result = {"gen_ai.tool.call.result": compact(list(PASSAGES))}
    trace.leaf("langchain4j.tools.searchManual", {**tool, **told, **result})


def _service(sent: str | None, reply: str | None, **more: bool) -> Trace:
    trace = Trace(_QUARKUS)
    with trace.span("GET /ask", {"http.route": "/ask"}), trace.span("langchain4j.aiservices.Guide.chat"):
        _completion(trace, sent, reply, **more)
    return trace


@shape(_FROM_PROMPT)
def quarkus_service_with_a_retriever() -> Trace:
    """An AI service with a content retriever, which has no span; prompt and completion are switched on."""
    return _service(_injected(), ANSWER)


@shape(Turn(one_text=True, note="question_guessed"))
def quarkus_service_with_a_system_message() -> Trace:
    """The same with a system message, which stands in the line above the question, in one text."""
    return _service(f"{_RULES}\n{_injected()}", ANSWER)


@shape(_FROM_PROMPT)
def quarkus_spans_of_older_releases() -> Trace:
    """Releases before the spans named their operation."""
    return _service(_injected(), ANSWER, is_old=True)


@shape(Turn())
def quarkus_service_with_a_tool() -> Trace:
    """A tool that searches; its result and the second prompt are told."""
    trace = Trace(_QUARKUS)
    with trace.span("langchain4j.aiservices.Guide.chat"):
        _completion(trace, QUESTION, None)
        _searched(trace)
        _completion(trace, f"{QUESTION}\nnull\n{compact(list(PASSAGES))}", ANSWER)
    return trace


@shape(Turn(note="question_guessed"))
def quarkus_tool_and_a_system_message() -> Trace:
    """The same with a system message: only the last line of the first prompt is surely the user's."""
    trace = Trace(_QUARKUS)
    with trace.span("langchain4j.aiservices.Guide.chat"):
        _completion(trace, f"{_RULES}\n{QUESTION}", None)
        _searched(trace)
        _completion(trace, f"{_RULES}\n{QUESTION}\nnull\n{compact(list(PASSAGES))}", ANSWER)
    return trace


@shape(Turn(one_text=True, question="How often does it need oil?", note="question_guessed"))
def quarkus_query_compressed_first() -> Trace:
    """A conversation: the model condenses the question for the retriever; the user's words are the last."""
    trace = Trace(_QUARKUS)
    told = (
        "Conversation:\nUser: I have a touring bicycle.\nAI: Good.\n\nUser query: How often does it need oil?"
    )
    with trace.span("langchain4j.aiservices.Guide.chat"):
        _completion(trace, f"Write the query anew for a search.\n\n{told}\n\nReply with it alone.", QUESTION)
        before = f"{_RULES}\nI have a touring bicycle.\nGood."
        _completion(trace, f"{before}\n{_injected('How often does it need oil?')}", ANSWER)
    return trace


@shape(_FROM_PROMPT)
def quarkus_queries_expanded_first() -> Trace:
    """The model writes several queries, one a line, for a retriever that has no span."""
    trace = Trace(_QUARKUS)
    with trace.span("langchain4j.aiservices.Guide.chat"):
        asked = f"Write 2 versions of the user's query, one a line.\nUser query: {QUESTION}"
        _completion(trace, asked, "oil interval of a chain\nhow to care for a bicycle chain")
        _completion(trace, _injected(), ANSWER)
    return trace


@shape(Gap(cause="content_off", switch="quarkus.langchain4j.tracing.include-prompt"))
def quarkus_as_it_comes() -> Trace:
    """Nothing is switched on: the model's name is all that is told."""
    return _service(None, None)


@shape(Gap(cause="content_off", switch="quarkus.langchain4j.tracing.include-tool-result"))
def quarkus_tool_as_it_comes() -> Trace:
    """Prompts are told, and what the tool returned is not."""
    trace = Trace(_QUARKUS)
    with trace.span("langchain4j.aiservices.Guide.chat"):
        tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "searchManual"}
        trace.leaf("langchain4j.tools.searchManual", tool)
        _completion(trace, QUESTION, ANSWER)
    return trace


@shape(Gap(cause="content_off", switch="openinference-instrumentation-langchain4j"))
def micrometer_observations() -> Trace:
    """LangChain4j's Micrometer module in Spring Boot: it writes no content, and has no switch for it."""
    trace = Trace("org.springframework.boot")
    told = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "OPEN_AI", "outcome": "SUCCESS"}
    models = {"gen_ai.request.model": "small-model", "gen_ai.response.model": "small-model"}
    with trace.span("http post /ask", {"http.route": "/ask"}):
        trace.leaf("chat small-model", {**told, **models, "output_tokens": "12", "input_tokens": "80"})
    return trace


def _listened(*calls: tuple[str, dict[str, Any]], system: bool = True) -> Trace:
    """An AI service under OpenInference's listeners: its span holds the messages before anything is added."""
    asked = [{"role": "system", "content": _RULES}] if system else []
    trace = Trace("com.arize.instrumentation.langchain4j")
    given = [*asked, {"role": "user", "content": QUESTION}]
    with trace.span("AiService.chat", oi("AGENT", given, ANSWER)):
        for name, told in calls:
            trace.leaf(name, told)
    return trace


@shape(_FROM_PROMPT)
def openinference_service_with_a_retriever() -> Trace:
    """OpenInference: the retriever has no span; the model's prompt holds what it found."""
    return _listened(("LLM", oi_model([("system", _RULES), ("user", _injected())], ANSWER)))


@shape(Turn())
def openinference_service_with_a_tool() -> Trace:
    """OpenInference: a tool that searches between two model calls."""
    came = compact(list(PASSAGES))
    sent = [("user", QUESTION), ("assistant", ""), ("tool", came)]
    return _listened(
        ("LLM", oi_model([("user", QUESTION)], "")),
        ("AiService.tool", oi_tool("searchManual", came)),
        ("LLM", oi_model(sent, ANSWER)),
        system=False,
    )


@shape(_FROM_PROMPT)
def openinference_with_both_listeners() -> Trace:
    """The model's own listener beside the service's: each call is told twice, once without the service."""
    told = oi_model([("system", _RULES), ("user", _injected())], ANSWER)
    service = _listened(("LLM", told))
    alone = Trace("com.arize.instrumentation.langchain4j")
    alone.leaf("generate", told)
    service.spans.extend(alone.spans)
    return service


SHAPES: tuple[Shape, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Shape))
