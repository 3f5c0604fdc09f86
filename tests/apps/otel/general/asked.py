"""What was asked and answered, where code puts words around what the user said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apps.otel.attributes import oi
from apps.otel.general.conventions import chat
from apps.otel.shapes import ANSWER, PASSAGES, QUERY, QUESTION, Shape, Trace, Turn, compact, joined, shape

_SYSTEM = "You help our customers. Use these sources."
_TYPED = f"I read this: chains last for years. {QUESTION}"
_FORM = compact({"finding": ANSWER, "confidence": "as good as certain after two tests", "topics": ["chain"]})
_CALL = {"type": "tool_call", "id": "c1", "name": "look_up", "arguments": {"query": QUERY}}
_RESULT = {"type": "tool_call_response", "id": "c1", "response": joined()}


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
