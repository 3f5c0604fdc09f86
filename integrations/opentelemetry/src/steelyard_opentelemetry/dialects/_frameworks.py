"""Frameworks whose payloads need more than names: Haystack's own tracing, and CrewAI's crews."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from steelyard.recording.reading import Message, Role, messages_in
from steelyard_opentelemetry._documents import retrieved_in
from steelyard_opentelemetry._payload import decode, mappings_in, question_in
from steelyard_opentelemetry._span import Kind, ParsedSpan, Span

_NAME = "haystack"
_ASKED = ("question", "query", "user_query", "text", "prompt", "messages")
CREW_SCOPES = ("openinference.instrumentation.crewai", "opentelemetry.instrumentation.crewai")
_CREW_INPUT = re.compile(
    r"(?:\w{1,20}_)?(?:question|query|input|request|message|prompt|problem|issue)|q", re.IGNORECASE
)
_PLACE = re.compile(r"\{[A-Za-z_]\w{0,60}\}")
_NOTHING: tuple[object, ...] = ({},)
"""For `passing`: crews and tasks hand on prompts and replies, in which no document stands by itself."""


def component(span: Span) -> ParsedSpan | None:
    """A component of a pipeline: what it is stands in what went in and what came out."""
    return _component(span) if span.name == "haystack.component.run" else None


def _component(span: Span) -> ParsedSpan:
    kind = span.text("haystack.component.type")
    given, came = _read(span, "haystack.component.input"), _read(span, "haystack.component.output")
    hidden = "haystack.component.output" not in span.attributes
    # Without content only the component's type tells that it was a generator.
    if "replies" in came or (hidden and kind.endswith("Generator")):
        return _as_model(given, came)
    if "documents" in came and "Ranker" in kind:
        return ParsedSpan(dialect=_NAME, kind="rerank", documents=retrieved_in(came["documents"]))
    # Documents that went in as well were passed on, and not found here.
    if "documents" in came.keys() - given.keys() or (hidden and "Retriever" in kind):
        return ParsedSpan(
            dialect=_NAME,
            kind="retrieval",
            query=question_in(given.get("query") or given.get("text")),
            documents=retrieved_in(came.get("documents") or []),
            hidden=hidden,
        )
    if "tool_messages" in came:
        return ParsedSpan(dialect=_NAME, kind="tool", **_invoked(came["tool_messages"]))
    return ParsedSpan(dialect=_NAME, kind="chain")


def _as_model(given: Mapping[str, Any], came: Mapping[str, Any]) -> ParsedSpan:
    messages = sent(given)
    return ParsedSpan(
        dialect=_NAME, kind="llm", answer=said(came), messages=messages, hidden=not messages and not came
    )


def sent(given: object) -> tuple[Message, ...]:
    """What a model was sent: a prompt, or messages."""
    prompt = given.get("prompt") if isinstance(given, Mapping) else given
    # What Python shows of an agent's messages holds the passages; who said what is not read out of it.
    role: Role = "system" if isinstance(prompt, str) and prompt.startswith("{'messages'") else "user"
    if isinstance(prompt, str):
        return (Message(role, prompt),)
    return messages_in(given.get("messages")) if isinstance(given, Mapping) else ()


def _read(span: Span, key: str) -> Mapping[str, Any]:
    found = decode(span.attributes.get(key))
    return found if isinstance(found, Mapping) else {}


def _values(data: object) -> list[Mapping[str, Any]]:
    return mappings_in(list(data.values())) if isinstance(data, Mapping) else []


def asked(given: object) -> str:
    """What a step, or the parts of a pipeline, were given under a name that means a question."""
    parts = [*_values(given), given] if isinstance(given, Mapping) else []
    texts = (question_in(part[key]) for key in _ASKED for part in parts if key in part)
    return next((text for text in texts if text), "")


def said(came: object) -> str:
    """What a step came to: an answer builder's answer, a generator's reply, or an agent's last message."""
    if not isinstance(came, Mapping):
        return ""
    answers, replies = came.get("answers"), came.get("replies")
    if isinstance(answers, list) and answers and isinstance(answers[0], Mapping):
        return str(answers[0].get("data") or "").strip()
    if isinstance(replies, list) and replies and isinstance(replies[0], str):
        return replies[0].strip()
    messages = messages_in(replies[:1] if isinstance(replies, list) else came.get("messages"))
    return messages[-1].text if messages and messages[-1].role == "assistant" else ""


def last_said(came: object) -> str:
    """What the last of a pipeline's parts came to that said anything."""
    return next(filter(None, map(said, reversed(_values(came)))), "")


def _invoked(messages: object) -> dict[str, Any]:
    """The name of a tool and what it returned, out of the messages of a component that called it."""
    parts = [part for item in mappings_in(messages) for part in mappings_in(item.get("content"))]
    results = mappings_in([part.get("tool_call_result") for part in parts])
    origins = mappings_in([result.get("origin") for result in results])
    tool = next((str(origin["tool_name"]) for origin in origins if "tool_name" in origin), "")
    # A tool that was called once returned this; several results stay a list, so that each is a passage.
    returned = [result.get("result") for result in results]
    return {"tool": tool, "result": returned[0] if len(returned) == 1 else returned}


def crew(span: Span) -> ParsedSpan | None:
    """A crew, a task or an agent; None for flows, tools and everything else."""
    if not span.scope.startswith(CREW_SCOPES):
        return None
    attributes = span.attributes
    tasks = attributes.get("crew_tasks") or attributes.get("crewai.crew.tasks")
    output = decode(attributes.get("output.value"))
    task = output if isinstance(output, Mapping) and "raw" in output and "agent" in output else {}
    if tasks is not None:
        # OpenInference writes the inputs as the span's input, OpenLLMetry in an attribute of its own.
        inputs = decode(attributes.get("input.value") or attributes.get("crew_inputs"))
        question = _asked_of_crew(inputs) or _described(decode(tasks), inputs)
        return _as_step("chain", question, output, "crewai.crew.result", attributes)
    if task or "task_key" in attributes:
        described = task.get("description")
        question = described if isinstance(described, str) else ""
        return _as_step("agent", question, output, "output.value", attributes)
    described = attributes.get("crewai.task.description")
    if isinstance(described, str):
        return _as_step("agent", described, output, "traceloop.entity.output", attributes)
    return None


def _as_step(
    kind: Kind, question: str, output: object, key: str, attributes: Mapping[str, Any]
) -> ParsedSpan:
    raw = output.get("raw") if isinstance(output, Mapping) else attributes.get(key)
    answer = raw.strip() if isinstance(raw, str) else ""
    return ParsedSpan(dialect="crewai", kind=kind, question=question.strip(), answer=answer, passing=_NOTHING)


def _asked_of_crew(inputs: object) -> str:
    """The question among the inputs; the others (a topic, a reader, a year) only fill places of the tasks."""
    given = inputs.items() if isinstance(inputs, Mapping) else ()
    return question_in({name: value for name, value in given if _CREW_INPUT.fullmatch(str(name))})


def _described(tasks: object, inputs: object) -> str:
    """The last task that inputs are put into, else the first; nothing where a place stays open."""
    texts = [text for one in mappings_in(tasks) if isinstance(text := one.get("description"), str)]
    given = inputs if isinstance(inputs, Mapping) else {}
    filled = [text for text in texts if any(f"{{{name}}}" in text for name in given)]
    text = next(reversed(filled), "") or next(iter(texts), "")
    for name, value in given.items():
        text = text.replace(f"{{{name}}}", str(value))
    # A place that stays open shows that the inputs are not on the span, and the question is not known.
    return "" if _PLACE.search(text) else text
