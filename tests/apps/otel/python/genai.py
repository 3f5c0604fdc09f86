"""The GenAI conventions, and frameworks that add attributes and switches of their own to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from apps.otel.shapes import (
    ANSWER,
    PASSAGES,
    QUERY,
    QUESTION,
    Gap,
    Shape,
    Trace,
    Turn,
    compact,
    event,
    joined,
    prompt,
    shape,
)


def _part(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "parts": [{"text": text}]}


def _adk(result: object, *, name: str = "search_manual") -> Trace:
    """An agent of Google's kit: the content stands in `gcp.vertex.agent.*`, as JSON of its own."""
    call = {"role": "model", "parts": [{"function_call": {"name": name, "args": {"query": QUERY}}}]}
    response = {
        "role": "user",
        "parts": [{"function_response": {"name": name, "response": {"result": result}}}],
    }
    trace = Trace("gcp.vertex.agent")
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "mechanic"}
    with trace.span("invocation"), trace.span("invoke_agent mechanic", agent):
        with _called(trace, [_part(QUESTION)], call):
            tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
            told = {"gcp.vertex.agent.tool_call_args": compact({"query": QUERY})}
            came = {"gcp.vertex.agent.tool_response": compact({"result": result})}
            trace.leaf(f"execute_tool {name}", {**tool, **told, **came})
        with _called(trace, [_part(QUESTION), call, response], _part(ANSWER, "model")):
            pass
    return trace


@shape(Turn(one_text=True))
def adk_agent_span_without_attributes() -> Trace:
    """Releases before the conventions' agent span: only calls and tools say anything of themselves."""
    call = {
        "role": "model",
        "parts": [{"function_call": {"name": "search_manual", "args": {"query": QUERY}}}],
    }
    returned = {"name": "search_manual", "response": {"result": joined()}}
    response = {"role": "user", "parts": [{"function_response": returned}]}
    trace = Trace("gcp.vertex.agent")
    with trace.span("invocation"), trace.span("agent_run [mechanic]"):
        with _called(trace, [_part(QUESTION)], call):
            tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search_manual"}
            came = {"gcp.vertex.agent.tool_response": compact({"result": joined()})}
            trace.leaf("execute_tool search_manual", {**tool, **came})
        with _called(trace, [_part(QUESTION), call, response], _part(ANSWER, "model")):
            pass
    return trace


@shape(Turn())
def adk_search_of_the_provider() -> Trace:
    """A managed corpus: no tool runs, and the reply tells what was found for it."""
    chunks = [{"retrieved_context": {"text": text, "title": "manual.pdf"}} for text in PASSAGES]
    found = {"grounding_metadata": {"grounding_chunks": chunks, "retrieval_queries": [QUERY]}}
    trace = Trace("gcp.vertex.agent")
    with (
        trace.span("invocation"),
        trace.span("invoke_agent mechanic", {"gen_ai.operation.name": "invoke_agent"}),
    ):
        request = compact({"model": "small-model", "contents": [_part(QUESTION)]})
        reply = compact({"content": _part(ANSWER, "model"), **found})
        told = {"gcp.vertex.agent.llm_request": request, "gcp.vertex.agent.llm_response": reply}
        trace.leaf("call_llm", {"gen_ai.request.model": "small-model", **told})
    return trace


@shape(Turn(note="contexts_guessed"))
def references_below_the_question() -> Trace:
    """Agno without a search tool: the question, then the references as JSON between tags."""
    listed = compact([{"id": f"d{n}", "content": text} for n, text in enumerate(PASSAGES)])
    sent = f"{QUESTION}\n\nUse these references if they help:\n<references>\n{listed}\n</references>"
    trace = Trace("agents")
    said = {
        "gen_ai.input.messages": compact([{"role": "user", "parts": [{"content": sent}]}]),
        "gen_ai.output.messages": compact([{"role": "assistant", "parts": [{"content": ANSWER}]}]),
    }
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.input.messages": compact([_part(QUESTION)])}
    with trace.span("invoke_agent helper", agent):
        trace.leaf("chat small", {"gen_ai.operation.name": "chat", **said})
    return trace


@shape(Turn(one_text=True, note="contexts_guessed"))
def function_made_of_a_prompt() -> Trace:
    """Semantic Kernel: a prompt runs as a tool whose result is the model's reply, which is not a passage."""
    trace = Trace("semantic_kernel.functions.kernel_function")
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "cbBWnLrqlQIuXwBK"}
    with trace.span("execute_tool", {**tool, "gen_ai.tool.call.result": compact([ANSWER])}):
        said = {
            "gen_ai.input.messages": compact([{"role": "user", "parts": [{"content": prompt()}]}]),
            "gen_ai.output.messages": compact([{"role": "assistant", "parts": [{"content": ANSWER}]}]),
        }
        trace.leaf("chat small", {"gen_ai.operation.name": "chat", **said})
    return trace


@shape(Turn(one_text=True, note="contexts_guessed"))
def adk_passages_in_the_instructions() -> Trace:
    """An instruction of the kit is filled in with passages, and nothing tells who found them."""
    trace = Trace("gcp.vertex.agent")
    told = f"Answer from these.\n\n<context>\n{joined()}\n</context>"
    with trace.span("invocation"), _called(trace, [_part(QUESTION)], _part(ANSWER, "model"), told):
        pass
    return trace


def _called(trace: Trace, sent: Sequence[object], reply: object, told_first: str = "Be brief.") -> Any:
    model = {"gen_ai.system": "gcp.vertex.agent", "gen_ai.request.model": "small-model"}
    request = {"model": "small-model", "config": {"system_instruction": told_first}, "contents": sent}
    told = {"gcp.vertex.agent.llm_request": compact(request)}
    return trace.span(
        "call_llm", {**model, **told, "gcp.vertex.agent.llm_response": compact({"content": reply})}
    )


@shape(Turn())
def adk_tool_returning_texts() -> Trace:
    """A tool returns a list of texts, which the kit wraps as `result`."""
    return _adk(list(PASSAGES))


@shape(Turn())
def adk_tool_returning_chunks() -> Trace:
    """A retrieval tool returns chunks with a text and a distance."""
    return _adk([{"text": text, "distance": 0.2, "source": "manual.pdf"} for text in PASSAGES])


@shape(Gap(cause="content_off", switch="ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS"))
def adk_content_off() -> Trace:
    """The kit's switch is off: empty objects where content would stand."""
    trace = Trace("gcp.vertex.agent")
    empty = {"gcp.vertex.agent.llm_request": "{}", "gcp.vertex.agent.llm_response": "{}"}
    model = {"gen_ai.system": "gcp.vertex.agent", "gen_ai.request.model": "small-model", **empty}
    with trace.span("invocation"), trace.span("invoke_agent m", {"gen_ai.operation.name": "invoke_agent"}):
        with trace.span("call_llm", model):
            tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search_manual"}
            trace.leaf("execute_tool search_manual", {**tool, "gcp.vertex.agent.tool_response": "{}"})
        trace.leaf("call_llm", model)
    return trace


def _kernel(trace: Trace, sent: str, reply: str) -> None:
    """Semantic Kernel: content is in span events, where it is on at all."""
    model = {"gen_ai.operation.name": "chat.completions", "gen_ai.system": "openai"}
    asked = event("gen_ai.content.prompt", {"gen_ai.prompt": compact([{"role": "user", "content": sent}])})
    said = compact(
        [{"message": {"role": "assistant", "content": reply}, "finish_reason": "stop", "index": 0}]
    )
    events = [asked, event("gen_ai.content.completion", {"gen_ai.completion": said})]
    told = {**model, "gen_ai.request.model": "small-model"}
    trace.leaf("chat.completions small-model", told, events=events)


@shape(Turn(one_text=True))
def semantic_kernel_prompt_with_passages() -> Trace:
    """A prompt function with the passages rendered into it; .NET writes contents as events."""
    trace = Trace("Microsoft.SemanticKernel.Diagnostics")
    kernel = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "Answer"}
    with trace.span("execute_tool Answer", kernel):
        _kernel(trace, prompt(), ANSWER)
    return trace


@shape(Gap(cause="content_off", switch="SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE"))
def semantic_kernel_content_off() -> Trace:
    """Only the plain diagnostics switch is on."""
    trace = Trace("semantic_kernel.connectors.ai.chat_completion_client_base")
    told = {"gen_ai.operation.name": "chat", "gen_ai.system": "openai"}
    trace.leaf("chat small-model", {**told, "gen_ai.request.model": "small-model"})
    return trace


@shape(Gap(cause="no_question", switch="export logs"))
def semantic_kernel_agent_in_python() -> Trace:
    """An agent of the kernel for Python: spans have the tool's result and the answer, not the question."""
    kernel = "semantic_kernel.connectors.ai.chat_completion_client_base"
    told = {"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "small-model"}
    replied = {"gen_ai.output.messages": compact([{"role": "assistant", "content": ANSWER}])}
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.input.messages": "[]", **replied}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "Manual-search_manual"}
    trace = Trace("semantic_kernel.utils.telemetry.agent_diagnostics.decorators")
    with trace.span("invoke_agent Mechanic", agent), trace.span("AutoFunctionInvocationLoop", scope=kernel):
        trace.leaf("chat small-model", told)
        found = {**tool, "gen_ai.tool.call.result": "\n\n".join(PASSAGES)}
        trace.leaf(
            "execute_tool Manual-search_manual", found, scope="semantic_kernel.functions.kernel_function"
        )
        trace.leaf("chat small-model", told)
    return trace


def _messages(*said: tuple[str, str]) -> str:
    return compact([{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in said])


@shape(Turn())
def genai_tool_result_in_blocks() -> Trace:
    """The conventions with content: an agent's tool gives content blocks."""
    trace = Trace("opentelemetry.instrumentation.genai.openai_agents")
    blocks = compact({"content": [{"type": "text", "text": text} for text in PASSAGES]})
    asked = {"gen_ai.input.messages": _messages(("user", QUESTION))}
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small-model", **asked}
    said = {"gen_ai.output.messages": _messages(("assistant", ANSWER))}
    with trace.span("invoke_agent m", {"gen_ai.operation.name": "invoke_agent", **asked, **said}):
        trace.leaf("chat small-model", chat)
        tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search_manual"}
        trace.leaf("execute_tool search_manual", {**tool, "gen_ai.tool.call.result": blocks})
        trace.leaf("chat small-model", {**chat, **said})
    return trace


@shape(Gap(cause="content_off", switch="OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"))
def genai_content_off() -> Trace:
    """The official conventions as they come."""
    trace = Trace("opentelemetry.instrumentation.genai.openai")
    trace.leaf("chat small-model", {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small-model"})
    return trace


@contextmanager
def _autogen() -> Iterator[Trace]:
    """An agent of AutoGen with a tool, as its own spans tell them."""
    trace = Trace("autogen-core")
    own = {"gen_ai.system": "autogen", "gen_ai.agent.name": "mechanic"}
    runtime = trace.span("autogen process mechanic", scope="autogen SingleThreadedAgentRuntime")
    agent = trace.span("invoke_agent mechanic", {**own, "gen_ai.operation.name": "invoke_agent"})
    with runtime, agent:
        yield trace


def _autogen_tool(trace: Trace) -> None:
    told = {"gen_ai.tool.name": "search_manual", "gen_ai.tool.call.id": "c1", "gen_ai.system": "autogen"}
    trace.leaf("execute_tool search_manual", {**told, "gen_ai.operation.name": "execute_tool"})


@shape(Gap(cause="content_off", switch="openinference-instrumentation-autogen-agentchat"))
def autogen_as_it_comes() -> Trace:
    """AutoGen's own spans: an agent and its tool, and no word of what they said."""
    with _autogen() as trace:
        _autogen_tool(trace)
    return trace


@shape(Turn())
def autogen_with_an_instrumented_client() -> Trace:
    """The same with an instrumentor of the model client: its prompts hold what the tool returned."""
    call = {"type": "tool_call", "id": "c1", "name": "search_manual", "arguments": {"query": QUERY}}
    asked = {"role": "user", "parts": [{"type": "text", "content": QUESTION}]}
    came = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": list(PASSAGES)}]}
    said = {"role": "assistant", "parts": [call]}
    client = "opentelemetry.instrumentation.genai.openai"
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small-model"}
    with _autogen() as trace:
        first = {"gen_ai.input.messages": compact([asked]), "gen_ai.output.messages": compact([said])}
        trace.leaf("chat small-model", {**chat, **first}, scope=client)
        _autogen_tool(trace)
        last = {"gen_ai.output.messages": _messages(("assistant", ANSWER))}
        sent = {"gen_ai.input.messages": compact([asked, said, came])}
        trace.leaf("chat small-model", {**chat, **sent, **last}, scope=client)
    return trace


@shape(Turn(one_text=True, note="contexts_guessed"))
def litellm_without_waiting() -> Trace:
    """LiteLLM names an operation after its function, `acompletion`, which the conventions do not know."""
    told = {
        "gen_ai.operation.name": "acompletion",
        "gen_ai.request.model": "small-model",
        "gen_ai.input.messages": _messages(("user", prompt())),
        "gen_ai.output.messages": _messages(("assistant", ANSWER)),
    }
    trace = Trace("litellm")
    with trace.span("litellm_request", told):
        trace.leaf("raw_gen_ai_request", {"llm.openai.model": "small-model", "llm.openai.stream": True})
    return trace


@shape(Gap(cause="no_retrieval", switch="instrument the retriever"))
def google_client_whose_function_failed() -> Trace:
    """Automatic function calling: the function raised, so that there is nothing which a switch could show."""
    trace = Trace("opentelemetry.instrumentation.google_genai")
    told = {"gen_ai.operation.name": "generate_content", "gen_ai.request.model": "small-model"}
    sent = compact([{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}])
    came = compact([{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}])
    content = {"gen_ai.input.messages": sent, "gen_ai.output.messages": came}
    with trace.span("generate_content small-model", {**told, **content}):
        tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search_manual"}
        trace.leaf("execute_tool search_manual", {**tool, "error.type": "TypeError"})
    return trace


@shape(Gap(cause="content_off", switch="OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"))
def google_client_content_off() -> Trace:
    """The official instrumentor of Google's client obeys the official switch, not Traceloop's."""
    trace = Trace("opentelemetry.instrumentation.google_genai")
    told = {"gen_ai.operation.name": "generate_content", "gen_ai.request.model": "small-model"}
    trace.leaf("generate_content small-model", told)
    return trace


@shape(Turn(one_text=True, note="no_prompt_seen"))
def team_member_whose_model_is_not_seen() -> Trace:
    """An agent that is another one's tool: what it replied is a model's, what its own tool found is not."""

    def told(operation: str, asked: str, reply: str) -> dict[str, str]:
        sent = compact([{"role": "user", "parts": [{"type": "text", "content": asked}]}])
        came = compact([{"role": "assistant", "parts": [{"type": "text", "content": reply}]}])
        return {
            "gen_ai.operation.name": operation,
            "gen_ai.input.messages": sent,
            "gen_ai.output.messages": came,
        }

    def tool(name: str, result: str) -> dict[str, str]:
        return {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.result": result,
        }

    said = "The chain needs oil rather often, says the manual."
    trace = Trace("opentelemetry.instrumentation.genai.langchain")
    with (
        trace.span("invoke_agent lead", told("invoke_agent", QUESTION, ANSWER)),
        trace.span("execute_tool colleague", tool("colleague", said)),
        trace.span("invoke_agent colleague", told("invoke_agent", QUERY, said)),
    ):
        trace.leaf("execute_tool search", tool("search", joined()))
    return trace


SHAPES: tuple[Shape, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Shape))
