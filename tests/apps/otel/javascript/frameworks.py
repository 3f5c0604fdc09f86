"""Frameworks of JavaScript, as their tracers write spans: LangChain.js, AI SDK 7, Genkit, Mastra."""

from __future__ import annotations

from typing import Any

from apps.otel.attributes import oi, oi_model
from apps.otel.shapes import (
    ANSWER,
    PASSAGES,
    QUERY,
    QUESTION,
    Shape,
    Trace,
    Turn,
    compact,
    joined,
    prompt,
    shape,
)


def _message(kind: str, content: str, **more: object) -> dict[str, Any]:
    """A message as LangChain.js serialises it: only its class says who speaks."""
    path = ["langchain_core", "messages", f"{kind}Message"]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": {"content": content, **more}}


def _langchain_agent(**returned: object) -> Trace:
    """`createAgent` with one tool, under OpenInference."""
    asked = {"messages": [_message("Human", QUESTION)]}
    calls = [{"name": "search_manual", "args": {"query": QUERY}}]
    came = _message("Tool", joined(), tool_call_id="call-1", **returned)
    steps = [*asked["messages"], _message("AI", "", tool_calls=calls), came, _message("AI", ANSWER)]
    trace = Trace("@arizeai/openinference-instrumentation-langchain")
    with trace.span("LangGraph", oi("CHAIN", asked, {"messages": steps})):
        trace.leaf("ChatOpenAI", oi_model([("user", QUESTION)], ""))
        with trace.span("tools", oi("CHAIN", asked, {"messages": [came]})):
            trace.leaf("search_manual", oi("TOOL", QUERY, {"output": came}, tool__name="search_manual"))
        trace.leaf("ChatOpenAI", oi_model([("user", QUESTION), ("tool", joined())], ANSWER))
    return trace


@shape(Turn(one_text=True))
def langchain_js_agent_with_a_text_tool() -> Trace:
    """LangChain.js: a tool's text comes in a serialised ToolMessage without a type."""
    return _langchain_agent()


@shape(Turn())
def langchain_js_agent_with_an_artifact() -> Trace:
    """LangChain.js: the tool's documents come as an artifact, with their text as `pageContent`."""
    return _langchain_agent(artifact=[{"pageContent": text, "metadata": {}, "id": text} for text in PASSAGES])


def _said(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def _words(text: str) -> dict[str, Any]:
    return {"type": "text", "content": text}


def _operation(name: str, sent: object = None, reply: object = None) -> dict[str, Any]:
    told = {"gen_ai.operation.name": name, "gen_ai.provider.name": "openai"}
    for key, value in (("gen_ai.input.messages", sent), ("gen_ai.output.messages", reply)):
        if value is not None:
            told[key] = compact(value)
    return told


def _sdk7_agent(result: object) -> Trace:
    """A call of AI SDK 7 with a tool: an agent whose last message repeats what the tool returned."""
    call = {"type": "tool_call", "id": "c1", "name": "getInformation", "arguments": {"question": QUERY}}
    response = {"type": "tool_call_response", "id": "c1", "response": result}
    asked = _said("user", _words(QUESTION))
    sent = [asked, _said("assistant", call), _said("tool", response)]
    trace = Trace("gen_ai")
    with trace.span(
        "invoke_agent small",
        _operation("invoke_agent", [asked], [_said("assistant", _words(ANSWER), call, response)]),
    ):
        with trace.span("step 1", _operation("agent_step")):
            trace.leaf("chat small", _operation("chat", [asked], [_said("assistant", call)]))
            tool = {"gen_ai.tool.name": "getInformation", "gen_ai.tool.call.result": compact(result)}
            trace.leaf("execute_tool getInformation", {**_operation("execute_tool"), **tool})
        with trace.span("step 2", _operation("agent_step")):
            trace.leaf("chat small", _operation("chat", sent, [_said("assistant", _words(ANSWER))]))
    return trace


@shape(Turn(one_text=True, without="contexts_not_in_prompt"))
def sdk7_tool_returning_rows() -> Trace:
    """AI SDK 7: rows of a table stand as objects in the prompt, not as a text."""
    return _sdk7_agent([{"name": text, "similarity": 0.9} for text in PASSAGES])


@shape(Turn(one_text=True))
def sdk7_tool_returning_one_text() -> Trace:
    """AI SDK 7: what the tool returned stands beside the answer, and is not a part of it."""
    return _sdk7_agent(joined())


@shape(Turn(one_text=True, note="contexts_guessed"))
def sdk7_object_from_a_prompt() -> Trace:
    """AI SDK 7: an object is asked for with one prompt; the reply is JSON, the answer a field of it."""
    sent = [_said("user", _words(prompt()))]
    reply = [_said("assistant", _words(compact({"answer": ANSWER, "confidence": 0.9})))]
    trace = Trace("gen_ai")
    with trace.span("invoke_agent small", _operation("invoke_agent", sent, reply)):
        trace.leaf("chat small", _operation("chat", sent, reply))
    return trace


_LISTED = "\n".join(f"- {text}" for text in PASSAGES)


@shape(Turn(one_text=True, note="contexts_guessed"))
def sdk_sources_as_a_list_below_information() -> Trace:
    """The passages stand as a list below "Use only this information:"; a schema of the answer follows."""
    system = f"Use only this information:\n{_LISTED}\n\nJSON schema:\n" + compact({"type": "object"})
    sent = [_said("system", _words(system)), _said("user", _words(QUESTION))]
    trace = Trace("gen_ai")
    trace.leaf("chat small", _operation("chat", sent, [_said("assistant", _words(ANSWER))]))
    return trace


def _genkit(kind: str, given: object, came: object) -> dict[str, str]:
    """An action of Genkit; everything is JSON, texts too."""
    told = {"genkit:type": "action", "genkit:metadata:subtype": kind, "genkit:name": kind}
    return {**told, "genkit:input": compact(given), "genkit:output": compact(came)}


def _text(role: str, *texts: str) -> dict[str, Any]:
    return {"role": role, "content": [{"text": text} for text in texts]}


@shape(Turn())
def genkit_generate_with_docs() -> Trace:
    """Genkit: documents are given to `generate`, which writes them below the question."""
    block = "\n\nUse the following information to complete your task:\n\n"
    block += "\n".join(f"- [{n}]: {text}" for n, text in enumerate(PASSAGES))
    docs = [{"content": [{"text": text}], "metadata": {}} for text in PASSAGES]
    given = {"messages": [_text("user", QUESTION, block)], "docs": docs}
    trace = Trace("genkit-tracer")
    util = {"genkit:type": "util", "genkit:name": "generate"}
    came = {"message": _text("model", ANSWER), "finishReason": "stop"}
    with trace.span("generate", {**util, "genkit:input": compact(given), "genkit:output": compact(came)}):
        trace.leaf("small-model", _genkit("model", given, came))
    return trace


@shape(Turn(without="contexts_not_in_prompt"))
def genkit_tool_in_a_flow() -> Trace:
    """Genkit: what a tool returned stands in the prompt as a part of its own, a list of texts."""
    call = {"toolRequest": {"name": "searchManual", "ref": "c1", "input": {"query": QUERY}}}
    back = {"toolResponse": {"name": "searchManual", "ref": "c1", "output": list(PASSAGES)}}
    asked = {"messages": [_text("user", QUESTION)]}
    called = {"role": "model", "content": [call]}
    sent = {"messages": [*asked["messages"], called, {"role": "tool", "content": [back]}]}
    trace = Trace("genkit-tracer")
    with trace.span("agent", _genkit("flow", QUESTION, ANSWER)):
        trace.leaf("small-model", _genkit("model", asked, {"message": called}))
        trace.leaf("searchManual", _genkit("tool", {"query": QUERY}, list(PASSAGES)))
        trace.leaf("small-model", _genkit("model", sent, {"message": _text("model", ANSWER)}))
    return trace


def _mastra(kind: str, operation: str, given: object = None, came: object = None) -> dict[str, str]:
    """A span of Mastra's exporter: the conventions' operation, and content under names of its own."""
    told = {"gen_ai.operation.name": operation, "mastra.span.type": kind}
    for key, value in (("input", given), ("output", came)):
        if value is not None:
            told[f"mastra.{kind}.{key}"] = value if isinstance(value, str) else compact(value)
    return told


def _mastra_model(trace: Trace, asked: str) -> None:
    """A generation; the innermost span tells the reply again, and no prompt."""
    sent = {"messages": [{"role": "user", "content": [{"type": "text", "text": asked}]}]}
    generation = _mastra("model_generation", "model_generation", sent, {"files": [], "text": ANSWER})
    reply = {"gen_ai.output.messages": compact([_said("assistant", _words(ANSWER))])}
    with trace.span("model_generation small", generation):
        trace.leaf("chat small", {**_mastra("model_inference", "chat"), **reply})


@shape(Turn(one_text=True, note="contexts_guessed", without="no_prompt_seen"))
def mastra_agent_with_a_prompt() -> Trace:
    """Mastra: the agent's span has the conventions' operation without its content."""
    trace = Trace("@mastra/otel-exporter")
    run = _mastra("agent_run", "invoke_agent", [{"role": "user", "content": prompt()}], {"text": ANSWER})
    with trace.span("invoke_agent Helper", run):
        _mastra_model(trace, prompt())
    return trace


@shape(Turn(without="no_prompt_seen"))
def mastra_workflow() -> Trace:
    """Mastra: a workflow whose steps retrieve and generate; the question is the workflow's."""
    found = [{"id": f"d{n}", "text": text} for n, text in enumerate(PASSAGES)]
    trace = Trace("@mastra/otel-exporter")
    run = _mastra("workflow_run", "invoke_workflow", {"question": QUESTION}, {"answer": ANSWER})
    with trace.span("invoke_workflow rag", run):
        step = _mastra("workflow_step", "workflow_step", {"question": QUESTION}, {"documents": found})
        trace.leaf("workflow_step retrieve", step)
        with trace.span(
            "invoke_agent Helper", _mastra("agent_run", "invoke_agent", prompt(), {"text": ANSWER})
        ):
            _mastra_model(trace, prompt())
    return trace


@shape(Turn(one_text=True, note="contexts_guessed"))
def traceloop_js_runs_in_traces_of_their_own() -> Trace:
    """Traceloop's LangChain.js instrumentor outside of `withWorkflow`: each run begins a trace."""
    scope = "@traceloop/instrumentation-langchain"
    run = {"gen_ai.operation.name": "workflow", "traceloop.span.kind": "workflow"}
    ends = {"input": compact({"input": QUESTION}), "output": compact({"output": ANSWER})}
    chain, model = Trace(scope), Trace(scope)
    with chain.span(
        "workflow RunnableSequence",
        {**run, **{f"traceloop.entity.{key}": value for key, value in ends.items()}},
    ):
        sent = [_said("user", _words(prompt()))]
        model.leaf("chat small", _operation("chat", sent, [_said("assistant", _words(ANSWER))]))
    chain.spans.extend(model.spans)
    return chain


SHAPES: tuple[Shape, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Shape))
