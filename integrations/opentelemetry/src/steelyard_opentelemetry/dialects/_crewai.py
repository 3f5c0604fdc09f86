"""CrewAI's crews under OpenInference and OpenLLMetry: a kickoff, its tasks, and the agents that do them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from steelyard_opentelemetry.spans._parsed import Kind, ParsedSpan
from steelyard_opentelemetry.spans._payload import decode, question_in
from steelyard_opentelemetry.spans._span import Span

_NAME = "crewai"
SCOPES = ("openinference.instrumentation.crewai", "opentelemetry.instrumentation.crewai")
_ASKED = re.compile(
    r"(?:\w{1,20}_)?(?:question|query|input|request|message|prompt|problem|issue)|q", re.IGNORECASE
)
_PLACE = re.compile(r"\{[A-Za-z_]\w{0,60}\}")
_NOTHING: tuple[object, ...] = ({},)
"""For `passing`: crews and tasks hand on prompts and replies, in which no document stands by itself."""


def read(span: Span) -> ParsedSpan | None:
    """A crew, a task or an agent; None for flows, tools and everything else."""
    if not span.scope.startswith(SCOPES):
        return None
    attributes = span.attributes
    tasks = attributes.get("crew_tasks") or attributes.get("crewai.crew.tasks")
    output = decode(attributes.get("output.value"))
    task = output if isinstance(output, Mapping) and "raw" in output and "agent" in output else {}
    if tasks is not None:
        # OpenInference writes the inputs as the span's input, OpenLLMetry in an attribute of its own.
        inputs = decode(attributes.get("input.value") or attributes.get("crew_inputs"))
        question = _asked(inputs) or _described(decode(tasks), inputs)
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
    return ParsedSpan(dialect=_NAME, kind=kind, question=question.strip(), answer=answer, passing=_NOTHING)


def _asked(inputs: object) -> str:
    """The question among the inputs; the others (a topic, a reader, a year) only fill places of the tasks."""
    given = inputs.items() if isinstance(inputs, Mapping) else ()
    return question_in({name: value for name, value in given if _ASKED.fullmatch(str(name))})


def _described(tasks: object, inputs: object) -> str:
    """The description of the last task, with the inputs in their places; nothing where a place stays open."""
    last = tasks[-1] if isinstance(tasks, list) and tasks else None
    text = last.get("description") if isinstance(last, Mapping) else None
    if not isinstance(text, str):
        return ""
    given = inputs if isinstance(inputs, Mapping) else {}
    for name, value in given.items():
        text = text.replace(f"{{{name}}}", str(value))
    # A place that stays open shows that the inputs are not on the span, and the question is not known.
    return "" if _PLACE.search(text) else text
