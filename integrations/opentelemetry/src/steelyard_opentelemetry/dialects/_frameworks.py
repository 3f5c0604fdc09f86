"""Frameworks whose payloads need more than names: Haystack's own tracing, and CrewAI's crews."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from steelyard_opentelemetry._documents import retrieved_in
from steelyard_opentelemetry._payload import answer_in, decode, mappings_in, question_in
from steelyard_opentelemetry._span import Kind, ParsedSpan, Span
from steelyard_opentelemetry.dialects._shapes import messages_of

_NAME = "haystack"
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
    # Documents that went in as well were passed on or ranked, and not found here.
    is_ranked = "documents" in came and "Ranker" in kind
    if not (is_ranked or "documents" in came.keys() - given.keys() or (hidden and "Retriever" in kind)):
        return ParsedSpan(dialect=_NAME, kind="chain")
    return ParsedSpan(
        dialect=_NAME,
        kind="rerank" if is_ranked else "retrieval",
        query=question_in(given.get("query") or given.get("text")),
        documents=retrieved_in(came.get("documents") or []),
        hidden=hidden,
    )


def _as_model(given: Mapping[str, Any], came: Mapping[str, Any]) -> ParsedSpan:
    messages, said = messages_of(given), answer_in((came.get("replies") or [])[:1])
    hides = not messages and not came
    return ParsedSpan(dialect=_NAME, kind="llm", answer=said, messages=messages, hidden=hides)


def _read(span: Span, key: str) -> Mapping[str, Any]:
    found = decode(span.attributes.get(key))
    return found if isinstance(found, Mapping) else {}


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
    """The last task that inputs are put into, else the last; nothing where a place stays open."""
    texts = [text for one in mappings_in(tasks) if isinstance(text := one.get("description"), str)]
    given = inputs if isinstance(inputs, Mapping) else {}
    filled = [text for text in texts if any(f"{{{name}}}" in text for name in given)]
    text = next(reversed(filled or texts), "")
    for name, value in given.items():
        text = text.replace(f"{{{name}}}", str(value))
    # A place that stays open shows that the inputs are not on the span, and the question is not known.
    return "" if _PLACE.search(text) else text
