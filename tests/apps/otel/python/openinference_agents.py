"""Agents under OpenInference, whose tools return anything."""

from __future__ import annotations

import json

from apps.otel.attributes import oi, oi_model, oi_retriever, oi_tool
from apps.otel.shapes import ANSWER, PASSAGES, QUERY, QUESTION, Shape, Trace, Turn, joined, shape

_SCOPE = "openinference.instrumentation."


_NUMBERED = "\nRetrieved documents:\n" + "".join(
    f"\n\n===== Document {n} =====\n{t}" for n, t in enumerate(PASSAGES)
)


def _smolagent(task: str, told: str, name: str) -> Trace:
    """Steps with a model call and a tool in each; `final_answer` is a tool as well."""
    trace = Trace(_SCOPE + "smolagents")
    sent = [("system", "You solve tasks with tools."), ("user", told)]
    given = {"task": task, "stream": False, "reset": True, "images": None, "additional_args": None}
    arguments = {"args": [], "sanitize_inputs_outputs": True, "kwargs": {"query": QUERY}}
    with trace.span(f"{name}.run", oi("AGENT", given, ANSWER)):
        with trace.span("Step 1", oi("CHAIN", {"memory_step": "ActionStep(step_number=1)"}, _NUMBERED)):
            trace.leaf("Model.generate", oi_model(sent, "Thought: I look it up."))
            trace.leaf("RetrieverTool", oi_tool("retriever", _NUMBERED, arguments))
        with trace.span("Step 2", oi("CHAIN", {"memory_step": "ActionStep(step_number=2)"}, ANSWER)):
            seen = [*sent, ("assistant", "Thought: I look it up."), ("user", f"Observation:\n{_NUMBERED}")]
            trace.leaf("Model.generate", oi_model(seen, f'final_answer("{ANSWER}")'))
            final = {"args": [], "sanitize_inputs_outputs": True, "kwargs": {"answer": ANSWER}}
            trace.leaf("FinalAnswerTool", oi_tool("final_answer", ANSWER, final))
    return trace


@shape(Turn(one_text=True))
def smolagents_numbered_documents() -> Trace:
    """The retriever tool prints a heading and a ruled line before each document; the question is `task`."""
    return _smolagent(QUESTION, f"New task:\n{QUESTION}", "ToolCallingAgent")


@shape(Turn(question=f"New task:\n{QUESTION}", one_text=True, note="question_guessed"))
def smolagents_without_a_task_on_the_root() -> Trace:
    """The root tells no task, so the question stands in the first message, behind `New task:`."""
    trace = Trace(_SCOPE + "smolagents")
    sent = [("system", "You solve tasks with tools."), ("user", f"New task:\n{QUESTION}")]
    with trace.span("CodeAgent.run", oi("AGENT", None, ANSWER)):
        trace.leaf("Model.generate", oi_model(sent, "Thought: I look it up."))
        trace.leaf("RetrieverTool", oi_tool("retriever", _NUMBERED))
        trace.leaf("Model.generate", oi_model([*sent, ("user", _NUMBERED)], ANSWER))
    return trace


def _react(name: str, came: object, *, seen: str = "", scope: str = "langchain") -> Trace:
    """A LangGraph agent: model, tool, model."""
    trace = Trace(_SCOPE + scope)
    sent = [("system", "Use your tools."), ("user", QUESTION)]
    given = {"messages": [["user", QUESTION]]}
    final = {"messages": [{"type": "human", "content": QUESTION}, {"type": "ai", "content": ANSWER}]}
    with trace.span("LangGraph", oi("CHAIN", given, final)):
        trace.leaf("ChatModel", oi_model(sent, ""))
        trace.leaf(name, oi_tool(name, came))
        text = seen or (came if isinstance(came, str) else json.dumps(came))
        trace.leaf("ChatModel", oi_model([*sent, ("assistant", ""), ("tool", text)], ANSWER))
    return trace


@shape(Turn())
def agent_tool_returning_texts() -> Trace:
    """A search tool returns a list of strings."""
    return _react("search_manual", list(PASSAGES))


@shape(Turn())
def agent_tool_returning_ids_and_texts() -> Trace:
    """A search tool returns objects with `id` and `text`."""
    return _react("search_manual", [{"id": f"d{n}", "text": text} for n, text in enumerate(PASSAGES)])


@shape(Turn())
def agent_tool_returning_search_results() -> Trace:
    """A web search returns results with title, address, content and score under one key."""
    hits = [{"title": "Chain", "url": "https://example.org", "content": t, "score": 0.9} for t in PASSAGES]
    return _react("web_search", {"query": QUERY, "results": hits, "response_time": 0.7})


@shape(Turn())
def agent_tool_message_with_json() -> Trace:
    """The tool's span holds a message whose content is JSON once more."""
    content = json.dumps([{"id": f"d{n}", "text": text} for n, text in enumerate(PASSAGES)])
    message = {"type": "tool", "data": {"content": content, "name": "search_manual", "status": "success"}}
    return _react("search_manual", message, seen=content)


@shape(Turn())
def agent_tool_of_an_mcp_server() -> Trace:
    """A tool of an MCP server returns content blocks."""
    return _react(
        "manual", {"content": [{"type": "text", "text": text} for text in PASSAGES], "isError": False}
    )


@shape(Turn())
def agent_tool_message_with_blocks() -> Trace:
    """The tool's message has a list of text blocks for its content."""
    blocks = [{"type": "text", "text": text} for text in PASSAGES]
    message = {"type": "tool", "data": {"content": blocks, "name": "search_manual", "status": "success"}}
    return _react("search_manual", message, seen=joined())


@shape(Turn(contexts=("2024-05-01T10:00:00Z", *PASSAGES)))
def agent_with_several_tools() -> Trace:
    """A calculator and a clock beside the search: what stands in the prompt counts, whoever returned it."""
    trace = Trace(_SCOPE + "langchain")
    sent = [("user", QUESTION)]
    with trace.span("LangGraph", oi("CHAIN", {"messages": [["user", QUESTION]]}, {"answer": ANSWER})):
        trace.leaf("ChatModel", oi_model(sent, ""))
        trace.leaf("get_time", oi_tool("get_time", "2024-05-01T10:00:00Z", {}))
        trace.leaf("search_manual", oi_tool("search_manual", list(PASSAGES)))
        trace.leaf("calculate", oi_tool("calculate", "200", {"expression": "100 * 2"}))
        seen = [("tool", "2024-05-01T10:00:00Z"), ("tool", json.dumps(list(PASSAGES))), ("tool", "200")]
        trace.leaf("ChatModel", oi_model([*sent, *seen], ANSWER))
    return trace


@shape(Turn(question="What is 2 x 100?", contexts=("200",), answer="200", note="contexts_undecided"))
def agent_without_a_search() -> Trace:
    """A calculator alone: the answer rests on what it returned, which is too short to be told."""
    trace = Trace(_SCOPE + "langchain")
    with trace.span(
        "LangGraph", oi("CHAIN", {"messages": [["user", "What is 2 x 100?"]]}, {"answer": "200"})
    ):
        trace.leaf("ChatModel", oi_model([("user", "What is 2 x 100?")], ""))
        trace.leaf("calculate", oi_tool("calculate", "200", {"expression": "100 * 2"}))
        trace.leaf("ChatModel", oi_model([("user", "What is 2 x 100?"), ("tool", "200")], "200"))
    return trace


@shape(Turn())
def llamaindex_function_tool_returning_texts() -> Trace:
    """A FunctionTool returns a list: the span shows blocks with Python's view of it, and the raw list."""
    trace = Trace(_SCOPE + "llama_index")
    came = {
        "blocks": [{"block_type": "text", "text": repr(list(PASSAGES))}],
        "tool_name": "search_manual",
        "raw_input": {"kwargs": {"query": QUERY}},
        "raw_output": list(PASSAGES),
        "is_error": False,
    }
    with trace.span("FunctionAgent.run", oi("AGENT", {"user_msg": QUESTION}, ANSWER)):
        trace.leaf("LLM.achat", oi_model([("user", QUESTION)], ""))
        trace.leaf("FunctionTool.acall", oi_tool("search_manual", came, {"kwargs": {"query": QUERY}}))
        trace.leaf("LLM.achat", oi_model([("user", QUESTION), ("tool", repr(list(PASSAGES)))], ANSWER))
    return trace


@shape(Turn())
def openai_agents_function_tool() -> Trace:
    """The root says nothing; question and answer stand in the model's calls, the tool gives a list."""
    trace = Trace(_SCOPE + "openai_agents")
    with (
        trace.span("Agent workflow", oi("AGENT")),
        trace.span("Mechanic", oi("AGENT", agent__name="Mechanic")),
    ):
        with trace.span("turn", oi("CHAIN")):
            trace.leaf("response", oi_model([("system", "Use your tools."), ("user", QUESTION)], ""))
            trace.leaf("search_manual", oi_tool("search_manual", list(PASSAGES)))
        with trace.span("turn", oi("CHAIN")):
            sent = [("system", "Use your tools."), ("user", QUESTION), ("tool", repr(list(PASSAGES)))]
            reply = {
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.contents.0.message_content.type": "text",
                "llm.output_messages.0.message.contents.0.message_content.text": ANSWER,
            }
            trace.leaf("response", {**oi_model(sent, ""), **reply})
    return trace


@shape(Turn(one_text=True, contexts=tuple(f"Content: {text}\nScore: 0.8" for text in PASSAGES)))
def crewai_knowledge_search() -> Trace:
    """A crew with a search tool: the question is an input of kickoff, the task's text is a template."""
    trace = Trace(_SCOPE + "crewai")
    inputs = {"question": QUESTION}
    with trace.span("Crew_1.kickoff", oi("CHAIN", inputs, ANSWER, crew_inputs=json.dumps(inputs))):
        task = {"agent": "Mechanic", "context": "", "tools": [{"name": "Search the manual"}]}
        described = f"Answer the question of a customer: {QUESTION}"
        with trace.span("Mechanic._execute_core", oi("AGENT", task, ANSWER, formatted_description=described)):
            trace.leaf("LLM.call", oi_model([("user", f"Current Task: {described}")], ""))
            came = "\n\n".join(f"Content: {text}\nScore: 0.8" for text in PASSAGES)
            trace.leaf("Search_the_manual.run", oi_tool("Search the manual", came))
            trace.leaf("LLM.call", oi_model([("user", f"Current Task: {described}"), ("tool", came)], ANSWER))
    return trace


@shape(Turn(one_text=True, without="no_prompt_seen"))
def agent_whose_messages_have_roles_of_their_own() -> Trace:
    """A code agent: `tool-call` and `tool-response` are roles, and what a tool found stands in the latter."""
    wrote = f"Thought: I look it up.\n<code>print(manual(query={QUERY!r}))</code>"
    found = "Observation:\nExecution logs:\n" + joined()
    sent = [("system", "Solve tasks with code."), ("user", f"New task:\n{QUESTION}"), ("assistant", wrote)]
    sent += [("tool-call", "Calling tools: python_interpreter"), ("tool-response", found)]
    trace = Trace("openinference.instrumentation.smolagents")
    with trace.span("CodeAgent.run", oi("AGENT", {"task": QUESTION, "stream": False}, ANSWER)):
        with trace.span("Step 1", oi("CHAIN")):
            trace.leaf("OpenAIModel.generate", oi_model(sent[:2], wrote))
            trace.leaf("Manual", oi_tool("search_manual", joined()))
        with trace.span("Step 2", oi("CHAIN")):
            final = f"Thought: I know.\n<code>final_answer({ANSWER!r})</code>"
            trace.leaf("OpenAIModel.generate", oi_model(sent, final))
    return trace


@shape(Turn(one_text=True, without="contexts_not_in_prompt"))
def agent_whose_messages_are_shown_by_their_fields() -> Trace:
    """A chat agent: the root's messages are what Python shows, a tool's result stands in `function.0`."""
    shown = f"id='m1' source='user' models_usage=None metadata={{}} content={QUESTION!r} type='TextMessage'"
    returned = {"name": "search_manual", "content": joined(), "call_id": "c1", "is_error": False}
    last = oi_model([("user", QUESTION), ("assistant", ""), ("function", "")], ANSWER)
    del last["llm.input_messages.2.message.content"]
    last["llm.input_messages.2.message.function.0"] = json.dumps(returned)
    trace = Trace("openinference.instrumentation.autogen_agentchat")
    with trace.span("mechanic.on_messages_stream", oi("AGENT", {"messages": [shown]})):
        trace.leaf("ChatCompletionClient.create", oi_model([("user", QUESTION)], ""))
        trace.leaf("mechanic.search_manual", oi_tool("search_manual", joined()))
        trace.leaf("ChatCompletionClient.create", last)
    return trace


@shape(Turn(answer=PASSAGES[0]))
def middleware_whose_passage_is_the_answer_in_the_state() -> Trace:
    """Rows are looked up around the model's call; the state has the answer, one of them word for word."""
    trace = Trace(_SCOPE + "langchain")
    rows = [{"text": text, "link": f"#{at}"} for at, text in enumerate(PASSAGES)]
    shown = json.dumps([{"content": text} for text in PASSAGES])
    given = {"messages": [{"type": "human", "content": QUESTION}]}
    replied = {"type": "ai", "content": PASSAGES[0]}
    final = {"messages": [*given["messages"], replied]}
    update = [{"update": {"messages": [replied]}}]
    with trace.span("LangGraph", oi("CHAIN", given, final)), trace.span("model", oi("CHAIN", given, update)):
        trace.leaf("look", oi("CHAIN", QUESTION, rows))
        sent = [("system", f"Be brief.\n{shown}"), ("user", QUESTION)]
        trace.leaf("Model", oi_model(sent, PASSAGES[0]))
    return trace


@shape(Turn(contexts=(f"The web says: {ANSWER}",)))
def tool_that_answers_from_documents_of_its_own() -> Trace:
    """A search service answers, and the model is told that; a span within the tool tells its sources."""
    said = f"The web says: {ANSWER}"
    trace = Trace("engine")
    with trace.span("agent", oi("AGENT", {"messages": [{"role": "user", "content": QUESTION}]}, ANSWER)):
        trace.leaf("call", oi_model([("user", QUESTION)], ""))
        with trace.span("web_search", oi_tool("web_search", said)):
            trace.leaf("sources", oi_retriever("", PASSAGES[2:]))
        trace.leaf("call", oi_model([("user", QUESTION), ("tool", said)], ANSWER))
    return trace


SHAPES: tuple[Shape, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Shape))
