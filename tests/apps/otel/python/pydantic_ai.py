"""pydantic-ai: GenAI conventions with names of its own, in formats 1 to 5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apps.otel.shapes import ANSWER, PASSAGES, QUERY, QUESTION, Gap, Shape, Trace, Turn, compact, shape

_SCOPE = "pydantic-ai"
_CALL = {"type": "tool_call", "id": "c1", "name": "retrieve", "arguments": {"search_query": QUERY}}


def _said(role: str, *parts: object) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "content": text}


def _agent(
    result: object, *, version: int = 5, last: object = None, final: str = ANSWER, name: str = "retrieve"
) -> Trace:
    """An agent that calls its tool once; the result comes back in a user's message."""
    asked = [_said("system", _text("Be brief.")), _said("user", _text(QUESTION))]
    called = _said("assistant", {**_CALL, "name": name})
    returned = _said("user", {"type": "tool_call_response", "id": "c1", "name": name, "result": result})
    replied = _said("assistant", last or _text(ANSWER))
    root = {
        "agent_name": "mechanic",
        "gen_ai.operation.name": "invoke_agent",
        "pydantic_ai.all_messages": compact([*asked, called, returned, replied]),
        "final_result": final,
    }
    trace = Trace(_SCOPE)
    with trace.span("agent run" if version == 2 else "invoke_agent mechanic", root):
        _chat(trace, asked, called)
        shown = compact(result) if not isinstance(result, str) else result
        key = "tool_response" if version == 2 else "gen_ai.tool.call.result"
        tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, key: shown}
        trace.leaf("running tool" if version == 2 else f"execute_tool {name}", tool)
        _chat(trace, [*asked, called, returned], replied)
    return trace


def _chat(trace: Trace, sent: Sequence[object], reply: object) -> None:
    told = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small-model"}
    content = {"gen_ai.input.messages": compact(sent), "gen_ai.output.messages": compact([reply])}
    trace.leaf("chat small-model", {**told, **content})


@shape(Turn())
def pydantic_ai_tool_returning_texts() -> Trace:
    """The current format: a tool returns a list of strings."""
    return _agent(list(PASSAGES))


@shape(Turn())
def pydantic_ai_tool_returning_ids_and_texts() -> Trace:
    """A tool returns models with `id` and `text`."""
    return _agent([{"id": f"d{n}", "text": text} for n, text in enumerate(PASSAGES)])


@shape(Turn())
def pydantic_ai_tool_returning_a_wrapped_list() -> Trace:
    """A tool returns one model that holds the hits in a field."""
    hits = [{"chunk": text, "distance": 0.2} for text in PASSAGES]
    return _agent({"query": QUERY, "results": hits, "total": 3})


@shape(
    Turn(
        one_text=True,
        contexts=tuple(f"# Part {n}\nURL:https://example.org/{n}\n\n{t}" for n, t in enumerate(PASSAGES)),
    )
)
def pydantic_ai_tool_returning_sections() -> Trace:
    """A tool joins sections that each have a heading, an address and a text."""
    return _agent(
        "\n\n".join(f"# Part {n}\nURL:https://example.org/{n}\n\n{t}\n" for n, t in enumerate(PASSAGES))
    )


@shape(Turn())
def pydantic_ai_format_2() -> Trace:
    """Format 2: `running tool` with `tool_response`, the root named `agent run`."""
    return _agent(list(PASSAGES), version=2)


@shape(Turn())
def pydantic_ai_structured_answer() -> Trace:
    """The answer is the argument of the output tool; `final_result` holds the object."""
    output = {"type": "tool_call", "id": "c2", "name": "final_result", "arguments": {"answer": ANSWER}}
    return _agent(list(PASSAGES), last=output, final=compact({"answer": ANSWER}))


@shape(Turn())
def pydantic_ai_tool_of_any_name() -> Trace:
    """A tool whose name does not sound like a search returns passages all the same."""
    return _agent([{"title": "Chains", "content": text} for text in PASSAGES], name="bicycle_manual")


@shape(Turn())
def pydantic_ai_format_1() -> Trace:
    """Format 1: events as one JSON list on each span, `all_messages_events` on the root."""
    asked = [
        {"event.name": "gen_ai.system.message", "role": "system", "content": "Be brief."},
        {"event.name": "gen_ai.user.message", "role": "user", "content": QUESTION},
    ]
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "retrieve", "arguments": {"search_query": QUERY}},
    }
    called = {"role": "assistant", "tool_calls": [call]}
    returned = {"role": "tool", "id": "c1", "name": "retrieve", "content": list(PASSAGES)}
    steps = [*asked, {"event.name": "gen_ai.assistant.message", **called}]
    steps.append({"event.name": "gen_ai.tool.message", **returned})
    replied = {"role": "assistant", "content": ANSWER}
    final = {"event.name": "gen_ai.assistant.message", **replied}
    root = {"agent_name": "mechanic", "model_name": "small-model", "final_result": ANSWER}
    model = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small-model"}
    trace = Trace(_SCOPE)
    with trace.span("agent run", {**root, "all_messages_events": compact([*steps, final])}):
        chosen = {"event.name": "gen_ai.choice", "index": 0}
        trace.leaf("chat small-model", {**model, "events": compact([*asked, {**chosen, "message": called}])})
        tool = {"gen_ai.tool.name": "retrieve", "tool_response": compact(list(PASSAGES))}
        trace.leaf("running tool", {**tool, "gen_ai.tool.call.id": "c1"})
        trace.leaf("chat small-model", {**model, "events": compact([*steps, {**chosen, "message": replied}])})
    return trace


@shape(Gap(cause="content_off", switch="include_content"))
def pydantic_ai_content_off() -> Trace:
    """include_content is false: messages keep their parts, without a word in them."""
    empty = {"type": "text"}
    asked = [_said("system", empty), _said("user", empty)]
    called = _said("assistant", {"type": "tool_call", "id": "c1", "name": "retrieve"})
    returned = _said("user", {"type": "tool_call_response", "id": "c1", "name": "retrieve"})
    root = {"agent_name": "mechanic", "gen_ai.operation.name": "invoke_agent"}
    steps = [*asked, called, returned]
    trace = Trace(_SCOPE)
    with trace.span("invoke_agent mechanic", {**root, "pydantic_ai.all_messages": compact(steps)}):
        _chat(trace, asked, called)
        tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "retrieve"}
        trace.leaf("execute_tool retrieve", tool)
        _chat(trace, steps, _said("assistant", empty))
    return trace


_CORRECTION = "Validation feedback:\nPlain text is not permitted.\n\nFix the errors and try again."


def _corrected(asked: str) -> Trace:
    """An agent whose first answer was not of the form asked for, so that it was told to try again."""
    steps = [_said("user", _text(asked))]
    found = {"type": "tool_call_response", "id": "1", "name": "search_manual", "result": list(PASSAGES)}
    steps += [_said("user", found), _said("assistant", _text("It is about 200 km."))]
    steps += [_said("user", _text(_CORRECTION))]
    final = _said("assistant", _text(ANSWER))
    trace = Trace("pydantic-ai")
    root = {"agent_name": "mechanic", "final_result": compact({"response": ANSWER})}
    with trace.span("agent run", {**root, "pydantic_ai.all_messages": compact([*steps, final])}):
        tool = {"gen_ai.tool.name": "search_manual", "tool_response": compact(list(PASSAGES))}
        trace.leaf("running tool", tool)
        _chat(trace, steps, final)
    return trace


@shape(Turn())
def pydantic_ai_told_to_try_again() -> Trace:
    """A reply fails its validation: what the framework says of it stands in the user's place."""
    return _corrected(QUESTION)


@shape(Turn())
def marvin_task_told_to_try_again() -> Trace:
    """The same in Marvin, which puts a task around what the user asked."""
    task = f"<task>\n  <id>1</id>\n  <instructions>\n    {QUESTION}\n  </instructions>\n</task>"
    return _corrected(task)


SHAPES: tuple[Shape, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Shape))
