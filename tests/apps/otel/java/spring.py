"""Spring AI: Micrometer observations as spans; what they tell has changed with every line of releases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from apps.otel.shapes import ANSWER, PASSAGES, QUERY, QUESTION, Gap, Shape, Trace, Turn, compact, event, shape

_SCOPE = "org.springframework.boot"
_RULE = "---------------------"
_BETWEEN = "\n"


def _asked(question: str = QUESTION, passages: Sequence[str] = PASSAGES) -> str:
    """What the advisor makes of a question: that first, then the passages between rules, then what to do."""
    block = f"Here is context between {_RULE}\n\n{_RULE}\n{_BETWEEN.join(passages)}\n{_RULE}"
    return f"{question}\n\n{block}\n\nReply from the context."


def _augmented(question: str = QUESTION, passages: Sequence[str] = PASSAGES) -> str:
    """What the augmenter of a whole RAG flow makes of it: the passages first."""
    block = f"Context is below.\n\n{_RULE}\n{_BETWEEN.join(passages)}\n{_RULE}"
    return f"{block}\n\nAnswer the query from the context.\n\nQuery: {question}\n\nAnswer:\n"


def _quoted(texts: Sequence[str]) -> str:
    """A list as the milestones of 1.0 write it: in quotes, and nothing is escaped."""
    return "[" + ", ".join(f'"{text}"' for text in texts) + "]"


@contextmanager
def _client(**more: Any) -> Iterator[Trace]:
    """The span of a ChatClient, and an advisor's below it."""
    trace = Trace(_SCOPE)
    framework = {"gen_ai.operation.name": "framework", "gen_ai.system": "spring_ai"}
    client = {**framework, "spring.ai.kind": "chat_client", "spring.ai.chat.client.stream": "false", **more}
    advisor = {**framework, "spring.ai.kind": "advisor", "spring.ai.advisor.name": "QuestionAnswerAdvisor"}
    request = trace.span("http post /ask", {"http.route": "/ask"})
    with request, trace.span("spring_ai chat_client", client), trace.span("question_answer", advisor):
        yield trace


def _search(trace: Trace, query: str = QUESTION, **more: Any) -> None:
    told = {"spring.ai.kind": "vector_store", "db.operation.name": "query", "db.system": "pg_vector"}
    trace.leaf(
        "pg_vector query", {**told, "db.vector.query.content": query, "db.vector.query.top_k": "3"}, **more
    )


def _found(trace: Trace, passages: Sequence[str] = PASSAGES, query: str = QUESTION) -> None:
    """A search of a milestone, which tells what it found."""
    told = {"spring.ai.kind": "vector_store", "db.operation.name": "query", "db.system": "pg_vector"}
    documents = {"db.vector.query.response.documents": _quoted(passages)}
    trace.leaf("pg_vector query", {**told, "db.vector.query.content": query, **documents})


def _chat(trace: Trace, told: dict[str, Any] | None = None, **more: Any) -> None:
    model = {
        "gen_ai.operation.name": "chat",
        "gen_ai.system": "openai",
        "gen_ai.request.model": "small-model",
    }
    trace.leaf("chat small-model", {**model, **(told or {})}, **more)


def _spoken(asked: str, answer: str = ANSWER) -> dict[str, str]:
    """A model call whose content the application adds in the names of today's conventions."""
    part = {"type": "text", "content": answer}
    return {
        "gen_ai.input.messages": compact([{"role": "user", "content": asked}]),
        "gen_ai.output.messages": compact([{"role": "assistant", "parts": [part], "finish_reason": "STOP"}]),
    }


_BLOCK = Turn(contexts=(_BETWEEN.join(PASSAGES),), note="contexts_guessed", without="cut at")


@shape(_BLOCK)
def spring_question_answer_advisor() -> Trace:
    """Content added by a filter; passages are lines of the prompt, so they stay one block."""
    with _client() as trace:
        _search(trace)
        _chat(trace, _spoken(_asked()))
    return trace


@shape(Turn(without="cut at"))
def spring_contents_as_attributes() -> Trace:
    """A milestone of 1.0: `gen_ai.prompt` and the documents as lists whose quotes are not escaped."""
    with _client(**{"spring.ai.chat.client.user.text": QUESTION}) as trace:
        _found(trace)
        _chat(trace, {"gen_ai.prompt": _quoted([_asked()]), "gen_ai.completion": _quoted([ANSWER])})
    return trace


@shape(Turn())
def spring_contents_as_events() -> Trace:
    """An early milestone of 1.0: prompt, completion and documents are events with lists of texts."""
    with _client() as trace:
        documents = {"db.vector.query.response.documents": list(PASSAGES)}
        _search(trace, events=[event("db.vector.content.query.response", documents)])
        said = event("gen_ai.content.completion", {"gen_ai.completion": [ANSWER]})
        _chat(trace, events=[event("gen_ai.content.prompt", {"gen_ai.prompt": [_asked()]}), said])
    return trace


@shape(Turn(contexts=(PASSAGES[0], 'The "dry" chain squeaks,\nthe oiled one does not.')))
def spring_passages_with_quotes() -> Trace:
    """A passage with quotes and line breaks in a list that escapes neither."""
    passages = (PASSAGES[0], 'The "dry" chain squeaks,\nthe oiled one does not.')
    with _client(**{"spring.ai.chat.client.user.text": QUESTION}) as trace:
        _found(trace, passages)
        asked = _asked(passages=passages)
        _chat(trace, {"gen_ai.prompt": _quoted([asked]), "gen_ai.completion": _quoted([ANSWER])})
    return trace


@shape(_BLOCK)
def spring_query_rewritten_first() -> Trace:
    """A query transformer asks the model first; the user's words are in the last prompt."""
    with _client() as trace:
        _chat(trace, _spoken(f"Rewrite this query for a search engine.\n\nOriginal: {QUESTION}", QUERY))
        _search(trace, QUERY)
        _chat(trace, _spoken(_augmented()))
    return trace


@shape(Turn())
def spring_tool_with_a_list() -> Trace:
    """A tool method returns a list of texts, and tool contents are switched on."""
    with _client() as trace:
        tool = {"spring.ai.kind": "tool_call", "spring.ai.tool.definition.name": "searchManual"}
        result = {"spring.ai.tool.call.result": compact(list(PASSAGES))}
        call = {
            "spring.ai.tool.call.arguments": compact({"query": QUERY}),
            "gen_ai.operation.name": "framework",
        }
        trace.leaf("tool_call searchManual", {**tool, **call, **result})
        _chat(trace, _spoken(QUESTION))
    return trace


@shape(Gap(cause="content_off", switch="an ObservationFilter bean"))
def spring_as_it_comes() -> Trace:
    """Nothing is switched on: the query of the search is all that is told."""
    with _client() as trace:
        _search(trace)
        _chat(trace)
    return trace


@shape(Gap(cause="content_off", switch="spring.ai.tools.observations.include-content"))
def spring_tool_as_it_comes() -> Trace:
    """A tool was called, and what it returned is not told."""
    with _client() as trace:
        tool = {"spring.ai.kind": "tool_call", "spring.ai.tool.definition.name": "searchManual"}
        trace.leaf("tool_call searchManual", {**tool, "gen_ai.operation.name": "framework"})
        _chat(trace, _spoken(QUESTION))
    return trace


@contextmanager
def _asked_through(*advisors: str, **more: Any) -> Iterator[Trace]:
    """A ChatClient of 2.0 whose advisors stand one in another, the call of the model in the last."""
    trace = Trace(_SCOPE)
    framework = {"gen_ai.operation.name": "framework", "gen_ai.system": "spring_ai"}
    client = {**framework, "spring.ai.kind": "chat_client", "spring.ai.chat.client.stream": "false", **more}
    with ExitStack() as open_spans:
        open_spans.enter_context(trace.span("http post /ask", {"http.route": "/ask"}))
        open_spans.enter_context(trace.span("spring_ai chat_client", client))
        for order, name in enumerate((*advisors, "call")):
            told = {"spring.ai.advisor.name": name, "spring.ai.advisor.order": str(order)}
            span = trace.span(name.lower(), {**framework, "spring.ai.kind": "advisor", **told})
            open_spans.enter_context(span)
        yield trace


def _filtered(sent: Sequence[str], reply: str) -> dict[str, str]:
    """Prompt and completion as an application's own filter adds them, with Spring AI's helper for lists."""
    return {"gen_ai.prompt": _quoted(sent), "gen_ai.completion": _quoted([reply])}


@shape(_BLOCK)
def spring_queries_expanded_first() -> Trace:
    """A whole RAG flow with an expander: each query it wrote is searched for, and the user's own too."""
    queries = ("oil interval of a bicycle chain", "how to care for a chain", "when to oil after rain")
    with _asked_through("RetrievalAugmentationAdvisor") as trace:
        asked = (
            f"Write 3 versions of this query, one a line.\n\nOriginal query: {QUESTION}\n\nQuery variants:\n"
        )
        _chat(trace, _filtered([asked], "\n".join(queries)))
        for query in (QUESTION, *queries):
            _search(trace, query)
        _chat(trace, _filtered([_augmented()], ANSWER))
    return trace


@shape(_BLOCK)
def spring_advisor_with_a_system_text() -> Trace:
    """Memory and question advisors: earlier messages and the system text stand before the prompt."""
    earlier = ["You help cyclists.", "Hello, I have a new bicycle.", "That is good news."]
    session = {"spring.ai.chat.client.conversation.id": "ride-7"}
    with _asked_through("MessageChatMemoryAdvisor", "QuestionAnswerAdvisor", **session) as trace:
        _search(trace)
        _chat(trace, _filtered([*earlier, _asked()], ANSWER))
    return trace


@shape(Turn(contexts=()))
def spring_search_that_found_nothing() -> Trace:
    """A milestone's search that tells an empty list; the advisor has nothing to add."""
    with _client(**{"spring.ai.chat.client.user.text": QUESTION}) as trace:
        _found(trace, ())
        _chat(trace, {"gen_ai.prompt": _quoted([QUESTION]), "gen_ai.completion": _quoted([ANSWER])})
    return trace


@shape(Turn(one_text=True))
def spring_tool_that_returns_a_text() -> Trace:
    """A search method of 2.0 that returns one text, which Spring AI writes as a JSON string."""
    with _asked_through() as trace:
        kind = {"spring.ai.kind": "tool_call", "gen_ai.operation.name": "execute_tool"}
        tool = {"spring.ai.tool.definition.name": "searchManual", "spring.ai.tool.type": "function"}
        call = {"spring.ai.tool.call.id": "c1", "spring.ai.tool.call.arguments": compact({"query": QUERY})}
        result = {"spring.ai.tool.call.result": compact("\n\n".join(PASSAGES))}
        trace.leaf("execute_tool searchManual", {**kind, **tool, **call, **result})
        _chat(trace, _filtered([QUESTION], ANSWER))
    return trace


@shape(Turn())
def spring_tool_that_returns_documents() -> Trace:
    """A search method of 2.0 that returns Documents, as Jackson writes them."""
    found = [
        {"id": f"d{n}", "text": text, "media": None, "metadata": {"distance": 0.1 * n}, "score": 0.9}
        for n, text in enumerate(PASSAGES)
    ]
    with _asked_through() as trace:
        kind = {"spring.ai.kind": "tool_call", "gen_ai.operation.name": "execute_tool"}
        tool = {
            "spring.ai.tool.definition.name": "searchManual",
            "spring.ai.tool.call.result": compact(found),
        }
        trace.leaf("execute_tool searchManual", {**kind, **tool})
        _chat(trace, _filtered([QUESTION], ANSWER))
    return trace


@shape(_BLOCK)
def spring_contents_as_json() -> Trace:
    """A filter of the application's own that writes prompt and completion as JSON."""
    with _client() as trace:
        _search(trace)
        _chat(trace, {"gen_ai.prompt": compact([_asked()]), "gen_ai.completion": compact([ANSWER])})
    return trace


SHAPES: tuple[Shape, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Shape))
