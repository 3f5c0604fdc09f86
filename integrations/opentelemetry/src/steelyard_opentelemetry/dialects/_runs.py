"""What steps, calls and look-ups were given and returned, in the ways of the shared conventions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steelyard.record import Context
from steelyard.recording.building import is_telling
from steelyard.recording.provenance import names_passages
from steelyard.recording.reading import ASKED_NAMES, Message, messages_in, read_shown, spoken
from steelyard_opentelemetry._documents import documents_in, noted_in, retrieved_in
from steelyard_opentelemetry._payload import MOST, Words, answer_in, decode, question_in
from steelyard_opentelemetry._span import Span
from steelyard_opentelemetry.dialects._shapes import messages_of


def last_reply(came: object) -> str:
    """The last of a model's replies; one that was flattened may hold its parts as JSON."""
    last = came[-1] if isinstance(came, list) and came else None
    return answer_in(last["content"]) if isinstance(last, Mapping) and "content" in last else answer_in(came)


def asked_by_user(given: object) -> str:
    """The user's last words in what a step was given."""
    return next(reversed(spoken(messages_of(given))), "")


def asked_in_state(given: object) -> str:
    """What a graph's state asks, which stands as JSON in a message of the user's."""
    return question_in(asked_by_user(given))


def out_of_message(given: Any, came: Any) -> tuple[Any, Any]:
    """What a tool returned, out of the last of the messages that tell it."""
    messages = decode(came)
    last = messages[-1] if isinstance(messages, list) and messages else None
    if not (isinstance(last, Mapping) and "role" in last):
        return given, came
    parts = last.get("parts")
    part = parts[-1] if isinstance(parts, list) and parts else None
    return given, part.get("response", part.get("content")) if isinstance(part, Mapping) else last.get(
        "content"
    )


def out_of_output(given: Any, came: Any) -> tuple[Any, Any]:
    """An output without the object that may be put around it."""
    return given, came["output"] if isinstance(came, Mapping) and set(came) == {"output"} else came


def out_of_run(given: Any, came: Any) -> tuple[Any, Any]:
    """What a run was given and returned, without what stands beside it; of a stream its output tells both."""
    inputs, outputs = given, came
    if isinstance(came, Mapping):
        outputs = came.get("outputs", came.get("output", came))
    if isinstance(given, Mapping):
        inputs = given.get("inputs", _without_templates(given))
        late = came.get("kwargs") if isinstance(came, Mapping) else None
        # LangChain gives this to a run's tracer at its start if the input is a stream.
        if inputs == {"input": ""} and isinstance(late, Mapping):
            inputs = late.get("inputs", inputs)
    # A text may look like JSON, and is what was said.
    is_inner = (
        isinstance(inputs, str) and inputs is not given,
        isinstance(outputs, str) and outputs is not came,
    )
    return Words(inputs) if is_inner[0] else inputs, Words(outputs) if is_inner[1] else outputs


def _without_templates(given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments without LlamaIndex's templates; what these hold was bound before anything was found."""
    return {
        name: _without_templates(value) if isinstance(value, Mapping) else value
        for name, value in given.items()
        if not (isinstance(value, Mapping) and "template_vars" in value)
    }


def is_reranking(given: object, came: object) -> bool:
    """Whether nodes went in and came out."""
    return isinstance(given, Mapping) and "nodes" in given and _is_found(came)


def is_look_up(given: object, came: object) -> bool:
    """Whether a query went in and documents came out."""
    queries = ("query", "qb", "str_or_query_bundle", "query_bundle")
    return isinstance(given, Mapping) and not given.keys().isdisjoint(queries) and _is_found(came)


def _is_found(came: object) -> bool:
    return isinstance(came, list) and (not came or bool(documents_in(came)))


def is_model_call(given: object, came: object) -> bool:
    """Whether messages went in or a model's reply came out; LangChain gives a step its messages as inputs."""
    replied = isinstance(came, Mapping) and "raw" in came and not came.keys().isdisjoint(("message", "text"))
    fields = given if isinstance(given, Mapping) else {}
    messages = fields.get("messages")
    return replied or ("inputs" not in fields and isinstance(messages, list) and bool(messages_in(messages)))


def sent_to_model(given: object) -> tuple[Message, ...]:
    """What a model's method was called with: messages, or a prompt."""
    if not isinstance(given, Mapping) or "messages" in given:
        return messages_in(given.get("messages")) if isinstance(given, Mapping) else ()
    args = given.get("args")
    text = given.get("prompt") or (args[0] if isinstance(args, list) and args else None)
    return messages_of(text) if isinstance(text, str) else ()


def documents_returned(given: object, came: object) -> tuple[Context, ...]:
    """Documents, or whatever a retriever by hand returned: texts, or objects with a text."""
    return documents_in(came) or (retrieved_in(came) if isinstance(came, (list, tuple, Mapping)) else ())


def noted_on(span: Span, came: object) -> tuple[str, ...]:
    """What an application noted by hand about a retrieval; whether it counts is a matter of the prompt."""
    if span.scope.startswith("openinference.instrumentation.langchain"):
        return ()
    told = [span.attributes.get("retrieval.documents"), span.attributes.get("retrieval.context")]
    return tuple(one for value in told if value for one in noted_in(value) if is_telling(one))


def noted_of_look_up(span: Span, came: object) -> tuple[str, ...]:
    """What an application noted by hand on a retrieval, in its output or its events too."""
    if span.scope.startswith("openinference.instrumentation.langchain"):
        return ()
    told = [came, *(value for event in span.events for value in event.attributes.values())]
    found = tuple(one for value in told if value for one in noted_in(value) if is_telling(one))
    return (*found, *noted_on(span, came))


def filled_in(variables: Mapping[str, str], given: object) -> Mapping[str, str]:
    """The variables that a run of a template was given: the instrumentor adds those that the template had."""
    if isinstance(given, Mapping):
        return {name: value for name, value in variables.items() if name in given}
    return {name: value for name, value in variables.items() if value == given} or variables


def unbound(variables: Mapping[str, str], given: object) -> Mapping[str, str]:
    """The variables without those that LlamaIndex's template had before anything was found for it."""
    prompt = given.get("prompt") if isinstance(given, Mapping) else None
    shown = read_shown(prompt[:MOST]) if isinstance(prompt, str) and "template_vars=" in prompt else None
    bound = shown.get("kwargs") if isinstance(shown, Mapping) else None
    if not isinstance(bound, Mapping):
        return variables
    keeps = (name for name in variables if name not in bound or name in ASKED_NAMES or names_passages(name))
    return {name: variables[name] for name in keeps}
