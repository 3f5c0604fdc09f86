"""How tracers write what a step was given and what it returned, and what a model was sent and replied."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Told = dict[str, Any]
Messages = Sequence[tuple[str, str]]
Kind = str
"""`root`, `search`, `tool` or `step`."""


class Call(str):
    """What a model calls a tool with, in place of words."""

    __slots__ = ()


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _text(value: object) -> str:
    return value if isinstance(value, str) else _json(value)


def _called(given: object) -> Told:
    """The arguments of a function."""
    return {"args": [], "kwargs": given} if isinstance(given, dict) else {"args": [given], "kwargs": {}}


def _openinference(kind: Kind, given: object, came: object) -> Told:
    told: Told = {"openinference.span.kind": {"search": "RETRIEVER", "tool": "TOOL"}.get(kind, "CHAIN")}
    for name, value in (("input.value", given), ("output.value", came)):
        told |= {name: _text(value)} if value is not None else {}
    if kind == "search" and isinstance(came, list) and all(isinstance(one, dict) for one in came):
        del told["output.value"]
        for at, one in enumerate(came):
            told[f"retrieval.documents.{at}.document.content"] = one.get("payload", one)["text"]
    return told


def _traceloop(kind: Kind, given: object, came: object) -> Told:
    told: Told = {"traceloop.span.kind": {"root": "workflow", "tool": "tool"}.get(kind, "task")}
    if given is not None:
        told["traceloop.entity.input"] = _json(_called(given))
    return told | ({"traceloop.entity.output": _json(came)} if came is not None else {})


def _langfuse(kind: Kind, given: object, came: object) -> Told:
    told: Told = {"langfuse.observation.type": {"search": "retriever", "tool": "tool"}.get(kind, "span")}
    if given is not None:
        told["langfuse.observation.input"] = _json(_called(given))
    return told | ({"langfuse.observation.output": _json(came)} if came is not None else {})


def _mlflow(kind: Kind, given: object, came: object) -> Told:
    told: Told = {
        "mlflow.spanType": _json(
            {"root": "CHAIN", "search": "RETRIEVER", "tool": "TOOL"}.get(kind, "UNKNOWN")
        ),
        "mlflow.traceRequestId": '"tr-1"',
    }
    if given is not None:
        told["mlflow.spanInputs"] = _json(given if isinstance(given, dict) else {"query": given})
    return told | ({"mlflow.spanOutputs": _json(came)} if came is not None else {})


def _logfire(kind: Kind, given: object, came: object) -> Told:
    told: Told = {"code.function": kind, "logfire.msg": f"Calling {kind}"}
    if given is not None:
        told |= given if isinstance(given, dict) else {"query": given}
    return told | ({"return": _text(came)} if came is not None else {})


def _own(kind: Kind, given: object, came: object) -> Told:
    told: Told = {"app.kind": kind}
    if given is not None:
        told["app.question" if isinstance(given, str) else "app.request"] = _text(given)
    name = {"search": "app.documents", "root": "app.answer"}.get(kind, "app.result")
    return told | ({name: _text(came)} if came is not None else {})


def _odd(kind: Kind, given: object, came: object) -> Told:
    """Under names that say nothing."""
    told = {"svc.a": _text(given)} if given is not None else {}
    return told | ({"svc.b": _text(came)} if came is not None else {})


def _genai(kind: Kind, given: object, came: object) -> Told:
    if kind == "step":
        return _own(kind, given, came)
    if kind != "root":
        told = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look_up"}
        told |= {"gen_ai.tool.call.arguments": _json({"query": given})} if given is not None else {}
        return told | ({"gen_ai.tool.call.result": _text(came)} if came is not None else {})
    told = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}
    for name, role, value in (("input", "user", given), ("output", "assistant", came)):
        if value is not None:
            told[f"gen_ai.{name}.messages"] = _parts([(role, _text(value))])
    return told


def _conventional(kind: Kind, given: object, came: object) -> Told:
    """A look-up in the conventions, whose content stands under names of the application's own."""
    if kind != "search":
        return _own(kind, given, came)
    told = {"gen_ai.operation.name": "retrieval"}
    told |= {"app.input": f"user: {_text(given)}"} if given is not None else {}
    return told | ({"app.output": _text(came)} if came is not None else {})


STEPS: Mapping[str, Callable[[Kind, object, object], Told]] = {
    "openinference": _openinference,
    "traceloop": _traceloop,
    "langfuse": _langfuse,
    "mlflow": _mlflow,
    "logfire": _logfire,
    "own": _own,
    "odd": _odd,
    "genai": _genai,
    "conventional": _conventional,
}
"""Who writes the steps of an application."""


def _part(role: str, text: str) -> Told:
    if isinstance(text, Call):
        return {"type": "tool_call", "id": "c1", "name": "look_up", "arguments": {"query": text}}
    if role == "tool":
        return {"type": "tool_call_response", "id": "c1", "response": text}
    return {"type": "text", "content": text}


def _parts(messages: Messages) -> str:
    return _json([{"role": role, "parts": [_part(role, text)]} for role, text in messages])


def _message(role: str, text: str) -> Told:
    if isinstance(text, Call):
        function = {"name": "look_up", "arguments": _json({"query": text})}
        called = {"id": "c1", "type": "function", "function": function}
        return {"role": role, "content": None, "tool_calls": [called]}
    return {"role": role, "content": text, **({"tool_call_id": "c1"} if role == "tool" else {})}


def _listed(messages: Messages) -> list[Told]:
    return [_message(role, text) for role, text in messages]


def _of_openinference(sent: Messages, reply: str) -> Told:
    told: Told = {"openinference.span.kind": "LLM", "llm.model_name": "m"}
    places = [*((f"input_messages.{at}", *one) for at, one in enumerate(sent))]
    for place, role, text in (*places, ("output_messages.0", "assistant", reply)):
        told[f"llm.{place}.message.role"] = role
        if isinstance(text, Call):
            function = f"llm.{place}.message.tool_calls.0.tool_call.function"
            told |= {f"{function}.name": "look_up", f"{function}.arguments": _json({"query": text})}
        else:
            told[f"llm.{place}.message.content"] = text
    came = _json(_message("assistant", reply)) if isinstance(reply, Call) else reply
    return {**told, "input.value": _json({"messages": _listed(sent)}), "output.value": came}


def _of_openllmetry(sent: Messages, reply: str) -> Told:
    told: Told = {"gen_ai.system": "openai", "llm.request.type": "chat", "gen_ai.request.model": "m"}
    places = [*((f"prompt.{at}", *one) for at, one in enumerate(sent))]
    for place, role, text in (*places, ("completion.0", "assistant", reply)):
        told[f"gen_ai.{place}.role"] = role
        if isinstance(text, Call):
            told |= {f"gen_ai.{place}.tool_calls.0.name": "look_up"}
            told |= {f"gen_ai.{place}.tool_calls.0.arguments": _json({"query": text})}
        else:
            told[f"gen_ai.{place}.content"] = text
    return told


_CHAT = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "m"}


def _of_genai(sent: Messages, reply: str) -> Told:
    system = [{"type": "text", "content": text} for role, text in sent if role == "system"]
    told: Told = {**_CHAT, "gen_ai.input.messages": _parts([one for one in sent if one[0] != "system"])}
    told |= {"gen_ai.system_instructions": _json(system)} if system else {}
    return {**told, "gen_ai.output.messages": _parts([("assistant", reply)])}


def _of_langfuse(sent: Messages, reply: str) -> Told:
    return {
        "langfuse.observation.type": "generation",
        "langfuse.observation.input": _json(_listed(sent)),
        "langfuse.observation.output": _json(_message("assistant", reply)),
        "langfuse.observation.model.name": "m",
    }


def _of_mlflow(sent: Messages, reply: str) -> Told:
    choice = {"message": _message("assistant", reply), "index": 0, "finish_reason": "stop"}
    return {
        "mlflow.spanType": '"CHAT_MODEL"',
        "mlflow.spanInputs": _json({"model": "m", "messages": _listed(sent)}),
        "mlflow.spanOutputs": _json({"id": "x", "object": "chat.completion", "choices": [choice]}),
    }


def _of_logfire(sent: Messages, reply: str) -> Told:
    return {
        "request_data": _json({"messages": _listed(sent), "model": "m"}),
        "response_data": _json({"message": _message("assistant", reply), "usage": None}),
        **{"gen_ai.system": "openai", "gen_ai.operation.name": "chat", "gen_ai.request.model": "m"},
    }


def _of_own(sent: Messages, reply: str) -> Told:
    return {"llm.model": "m", "llm.prompt": "\n\n".join(text for _, text in sent), "llm.response": reply}


def _of_request(sent: Messages, reply: str) -> Told:
    """What was sent and said as JSON in one attribute each, under the GenAI names of before."""
    came = _json([_message("assistant", reply)]) if isinstance(reply, Call) else reply
    return {**_CHAT, "gen_ai.prompt": _json(_listed(sent)), "gen_ai.completion": came}


def _of_endpoint(sent: Messages, reply: str) -> Told:
    """A client that was called with the whole request as one argument."""
    told = _of_mlflow(sent, reply)
    return {**told, "mlflow.spanInputs": _json({"endpoint": "m", "inputs": {"messages": _listed(sent)}})}


def _of_transcript(sent: Messages, reply: str) -> Told:
    """All that was sent as one text, each message behind its role."""
    lines = (f"[{role}]: {text}" for role, text in sent)
    return {"llm.model": "m", "llm.prompt": "\n".join(lines), "llm.response": reply}


CLIENTS: Mapping[str, tuple[str, str, Callable[[Messages, str], Told]]] = {
    "openinference": ("openinference.instrumentation.openai", "ChatCompletion", _of_openinference),
    "openllmetry": ("opentelemetry.instrumentation.openai.v1", "openai.chat", _of_openllmetry),
    "genai": ("opentelemetry.instrumentation.openai_v2", "chat m", _of_genai),
    "langfuse": ("langfuse-sdk", "OpenAI-generation", _of_langfuse),
    "mlflow": ("mlflow", "Completions", _of_mlflow),
    "logfire": ("logfire.openai", "Chat Completion with {request_data[model]!r}", _of_logfire),
    "own": ("app", "llm.call", _of_own),
    "request": ("app", "llm.chat", _of_request),
    "endpoint": ("mlflow", "completions", _of_endpoint),
    "transcript": ("app", "llm.helper", _of_transcript),
}
"""Who writes a model's call: its scope, its span's name, its attributes."""
TEXTUAL = ("own", "transcript")
"""Those that have no form for a call of a tool."""
