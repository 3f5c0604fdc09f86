"""Crews under OpenInference and OpenLLMetry: tasks, agents, and what the last of them came to."""

from __future__ import annotations

import json
from typing import Any

from apps.otel.attributes import oi, oi_model, oi_tool
from apps.otel.shapes import ANSWER, QUESTION, Shape, Trace, Turn, joined, shape

_SCOPE = "openinference.instrumentation.crewai"
_TRACELOOP = "opentelemetry.instrumentation.crewai.instrumentation"
_MODEL = "openinference.instrumentation.openai"
_ROLE = "You are Mechanic. You have mended bicycles for years.\nYour personal goal is: help cyclists"
_FACTS = "Oil every 200 km. Dry and oil after rain."
_NOTE = ""


def _task(description: str) -> str:
    """What an agent is told to do, in the framework's words."""
    expected = (
        "\n\nThis is the expected criteria for your final answer: one sentence\nyou MUST return all of it."
    )
    return f"\nCurrent Task: {description}{expected}"


def _done(description: str, raw: str, **more: Any) -> dict[str, Any]:
    """What a task came to; its messages hold prompts and what tools returned."""
    messages = [
        {"role": "system", "content": _ROLE},
        {"role": "user", "content": _task(description)},
        {"role": "tool", "content": joined()},
    ]
    return {"description": description, "raw": raw, "agent": "Mechanic", "messages": messages, **more}


def _crew(description: str) -> str:
    return json.dumps([{"description": description, "expected_output": "one sentence"}])


def _look_up(trace: Trace, description: str, raw: str, *, has_models: bool = True) -> None:
    """A task whose agent asks the model, calls a tool, and asks again."""
    sent = [("system", _ROLE), ("user", _task(description))]
    with trace.span(
        "Mechanic._execute_core", {**oi("AGENT", None, _done(description, raw)), "task_key": "k"}
    ):
        if has_models:
            trace.leaf("ChatCompletion", oi_model(sent, ""), scope=_MODEL)
        trace.leaf("search_manual.run", oi_tool("search_manual", joined()))
        if has_models:
            trace.leaf("ChatCompletion", oi_model([*sent, ("tool", joined())], raw), scope=_MODEL)


@shape(Turn(one_text=True, note=_NOTE))
def crew_with_a_question_among_its_inputs() -> Trace:
    """A crew of one agent; the task is a template, and the inputs hold the question."""
    trace = Trace(_SCOPE)
    filled = f"Find the answer to this: {QUESTION}"
    came = {"raw": ANSWER, "agent": "Mechanic", "tasks_output": [_done(filled, ANSWER)]}
    told = {"crew_tasks": _crew("Find the answer to this: {question}")}
    with trace.span("Crew_1.kickoff", {**oi("CHAIN", {"question": QUESTION}, came), **told}):
        _look_up(trace, filled, ANSWER)
    return trace


@shape(Turn(one_text=True, note="no_prompt_seen"))
def crew_without_inputs_or_spans_of_models() -> Trace:
    """The task itself is the question, and only the crew is instrumented."""
    trace = Trace(_SCOPE)
    came = {"raw": ANSWER, "agent": "Mechanic", "tasks_output": [_done(QUESTION, ANSWER)]}
    with trace.span("Crew_1.kickoff", {**oi("CHAIN", None, came), "crew_tasks": _crew(QUESTION)}):
        _look_up(trace, QUESTION, ANSWER, has_models=False)
    return trace


@shape(Turn(one_text=True, question=f"Answer for a beginner: {QUESTION}", note=_NOTE))
def crew_whose_inputs_name_no_question() -> Trace:
    """The inputs are put into the task's template, which is what was asked."""
    trace = Trace(_SCOPE)
    asked = f"Answer for a beginner: {QUESTION}"
    came = {"raw": ANSWER, "agent": "Mechanic", "tasks_output": [_done(asked, ANSWER)]}
    told = {"crew_tasks": _crew("Answer for a {reader}: " + QUESTION)}
    with trace.span("Crew_1.kickoff", {**oi("CHAIN", {"reader": "beginner"}, came), **told}):
        _look_up(trace, asked, ANSWER)
    return trace


@shape(Turn(one_text=True, note=_NOTE))
def crew_of_a_researcher_and_a_writer() -> Trace:
    """The second agent is shown what the first one wrote, not what its tool returned."""
    trace = Trace(_SCOPE)
    first, last = f"Collect facts about: {QUESTION}", f"Answer from the facts: {QUESTION}"
    came = {"raw": ANSWER, "agent": "Writer", "tasks_output": [_done(first, _FACTS), _done(last, ANSWER)]}
    told = {"crew_tasks": _crew("Answer from the facts: {question}")}
    with trace.span("Crew_1.kickoff", {**oi("CHAIN", {"question": QUESTION}, came), **told}):
        _look_up(trace, first, _FACTS)
        with trace.span("Writer._execute_core", {**oi("AGENT", None, _done(last, ANSWER)), "task_key": "k"}):
            facts = f"{_task(last)}\n\nThis is the context you're working with:\n{_FACTS}"
            trace.leaf("ChatCompletion", oi_model([("user", facts)], ANSWER), scope=_MODEL)
    return trace


@shape(Turn(one_text=True, question=f"Answer this: {QUESTION}"))
def crew_under_openllmetry() -> Trace:
    """The crew's span has its result, a task's its description; tools are seen in the model's prompt only."""
    trace = Trace(_TRACELOOP)
    kind = {"gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "crewai"}
    asked = f"Answer this: {QUESTION}"
    crew = {"crewai.crew.tasks": _crew("Answer this: {question}"), "crewai.crew.result": ANSWER}
    task = {
        "traceloop.span.kind": "task",
        "crewai.task.description": asked,
        "traceloop.entity.output": ANSWER,
    }
    sent = [("system", _ROLE), ("user", _task(asked)), ("tool", joined())]
    with trace.span("crewai.workflow", {**kind, **crew}), trace.span(f"{asked}.task", {**kind, **task}):
        trace.leaf("ChatCompletion", oi_model(sent, ANSWER), scope=_MODEL)
    return trace


@shape(Turn(question=_task(QUESTION).strip(), one_text=True, note="question_guessed"))
def crew_of_which_only_the_client_is_seen() -> Trace:
    """No span of the crew: the task stands in the prompt, between the framework's own words."""
    trace = Trace(_MODEL)
    sent = [("system", _ROLE), ("user", _task(QUESTION)), ("assistant", ""), ("tool", joined())]
    trace.leaf("ChatCompletion", oi_model(sent, ANSWER))
    return trace


@shape(Turn(question="Collect facts about chains.", one_text=True))
def crew_whose_first_task_alone_takes_an_input() -> Trace:
    """The last task says what to do with the first one's result, not what was asked."""
    trace = Trace(_SCOPE)
    first, last = "Collect facts about chains.", "Write one sentence from the facts."
    tasks = [{"description": "Collect facts about {topic}."}, {"description": last}]
    came = {"raw": ANSWER, "agent": "Writer", "tasks_output": [_done(first, _FACTS), _done(last, ANSWER)]}
    told = {"crew_tasks": json.dumps(tasks)}
    with trace.span("Crew_1.kickoff", {**oi("CHAIN", {"topic": "chains"}, came), **told}):
        _look_up(trace, first, _FACTS)
        with trace.span("Writer._execute_core", {**oi("AGENT", None, _done(last, ANSWER)), "task_key": "k"}):
            facts = f"{_task(last)}\n\nThis is the context you're working with:\n{_FACTS}"
            trace.leaf("ChatCompletion", oi_model([("user", facts)], ANSWER), scope=_MODEL)
    return trace


@shape(Turn(question=f"Collect facts about this: {QUESTION}", one_text=True))
def crew_of_two_tasks_without_inputs() -> Trace:
    """Code wrote the question into the first task; the last one says what to make of its result."""
    trace = Trace(_TRACELOOP)
    first, last = f"Collect facts about this: {QUESTION}", "Write one sentence from the facts."
    tasks = json.dumps([{"description": first}, {"description": last}])
    with trace.span("crewai.workflow", {"crewai.crew.tasks": tasks, "crewai.crew.result": ANSWER}):
        with trace.span("first", {"crewai.task.description": first, "traceloop.entity.output": _FACTS}):
            sent = [("system", _ROLE), ("user", _task(first)), ("tool", joined())]
            trace.leaf("ChatCompletion", oi_model(sent, _FACTS), scope=_MODEL)
        with trace.span("last", {"crewai.task.description": last, "traceloop.entity.output": ANSWER}):
            facts = f"{_task(last)}\n\nThis is the context you're working with:\n{_FACTS}"
            trace.leaf("ChatCompletion", oi_model([("user", facts)], ANSWER), scope=_MODEL)
    return trace


SHAPES = [found for found in globals().values() if isinstance(found, Shape)]
