"""Haystack's own tracing: `haystack.pipeline.run`, a span for each component's run, agents step by step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from apps.otel.shapes import (
    ANSWER,
    PASSAGES,
    QUERY,
    QUESTION,
    SCORES,
    Gap,
    Shape,
    Trace,
    Turn,
    joined,
    prompt,
    shape,
)

_SCOPE = "my.service"


def _documents(passages: Sequence[str] = PASSAGES) -> list[dict[str, Any]]:
    rest = {"blob": None, "embedding": None, "sparse_embedding": None}
    scored = zip(passages, SCORES, strict=False)
    return [
        {"id": f"d{n}", "content": text, "score": score, **rest} for n, (text, score) in enumerate(scored, 1)
    ]


def _message(role: str, *content: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": role, "meta": {}, "name": None, "content": list(content)}


@contextmanager
def _pipeline(given: Mapping[str, Any], came: Mapping[str, Any]) -> Iterator[Trace]:
    trace = Trace(_SCOPE)
    told = {
        "haystack.pipeline.input_data": json.dumps(given),
        "haystack.pipeline.output_data": json.dumps(came),
    }
    with trace.span("haystack.pipeline.run", {**told, "haystack.pipeline.execution_mode": "sync"}):
        yield trace


def _run(trace: Trace, name: str, kind: str, given: object = None, came: object = None) -> None:
    """One component's run; without content where none is given."""
    told = {"haystack.component.name": name, "haystack.component.type": kind, "haystack.component.visits": 1}
    if given is not None:
        told |= {"haystack.component.input": json.dumps(given), "haystack.component.output": json.dumps(came)}
    trace.leaf("haystack.component.run", told)


def _retriever(
    trace: Trace, passages: Sequence[str] = PASSAGES, query: str = QUESTION, name: str = "retriever"
) -> None:
    given = {"query": query, "filters": None, "top_k": None}
    _run(trace, name, "InMemoryBM25Retriever", given, {"documents": _documents(passages)})


def _generator(trace: Trace, sent: str, reply: str = ANSWER, name: str = "llm") -> None:
    _run(trace, name, "OpenAIGenerator", {"prompt": sent}, {"replies": [reply], "meta": [{"model": "small"}]})


def _builder(trace: Trace, sent: str, passages: Sequence[str] = PASSAGES) -> None:
    given = {"question": QUESTION, "documents": _documents(passages), "template": None}
    _run(trace, "prompt_builder", "PromptBuilder", given, {"prompt": sent})


_ASKED = {"retriever": {"query": QUESTION}, "prompt_builder": {"question": QUESTION}}
_REPLIED = {"llm": {"replies": [ANSWER], "meta": [{"model": "small"}]}}


@shape(Turn())
def haystack_retriever_and_generator() -> Trace:
    """The usual pipeline: retriever, prompt builder, generator."""
    with _pipeline(_ASKED, _REPLIED) as trace:
        _retriever(trace)
        _builder(trace, prompt())
        _generator(trace, prompt())
    return trace


@shape(Turn())
def haystack_chat_generator_and_answer_builder() -> Trace:
    """Chat messages as content parts, and an answer builder that repeats the documents."""
    reply = _message("assistant", {"text": ANSWER})
    answer = {"data": ANSWER, "query": QUESTION, "documents": _documents(), "meta": {"all_messages": [reply]}}
    with _pipeline(_ASKED, {"answer_builder": {"answers": [answer]}}) as trace:
        _retriever(trace)
        sent = [_message("system", {"text": "Be brief."}), _message("user", {"text": prompt()})]
        _run(trace, "llm", "OpenAIChatGenerator", {"messages": sent, "tools": None}, {"replies": [reply]})
        given = {"query": QUESTION, "replies": [reply], "documents": _documents()}
        _run(trace, "answer_builder", "AnswerBuilder", given, {"answers": [answer]})
    return trace


@shape(Turn(contexts=(PASSAGES[1], PASSAGES[0])))
def haystack_ranker() -> Trace:
    """A ranker keeps two of three documents, in another order."""
    kept = (PASSAGES[1], PASSAGES[0])
    with _pipeline(_ASKED, _REPLIED) as trace:
        _retriever(trace)
        given = {"query": QUESTION, "documents": _documents()}
        _run(trace, "ranker", "TransformersSimilarityRanker", given, {"documents": _documents(kept)})
        _builder(trace, prompt(passages=kept), kept)
        _generator(trace, prompt(passages=kept))
    return trace


@shape(Turn())
def haystack_hybrid_retrieval() -> Trace:
    """Two retrievers with an overlap, joined before the prompt."""
    with _pipeline(_ASKED, _REPLIED) as trace:
        _retriever(trace, PASSAGES[:2], name="bm25")
        _run(
            trace,
            "embedding",
            "InMemoryEmbeddingRetriever",
            {"query_embedding": [0.1, 0.2]},
            {"documents": _documents(PASSAGES[1:])},
        )
        both = [_documents(PASSAGES[:2]), _documents(PASSAGES[1:])]
        _run(trace, "joiner", "DocumentJoiner", {"documents": both}, {"documents": _documents()})
        _builder(trace, prompt())
        _generator(trace, prompt())
    return trace


@shape(Turn(contexts=(PASSAGES[1],)))
def haystack_falls_back_to_the_web() -> Trace:
    """The first generator finds no answer in its documents; a web search feeds the second."""
    with _pipeline(_ASKED, {"web_llm": {"replies": [ANSWER]}}) as trace:
        _retriever(trace, PASSAGES[2:])
        _generator(trace, prompt(passages=PASSAGES[2:]), "no_answer")
        _run(trace, "router", "ConditionalRouter", {"replies": ["no_answer"]}, {"go_to_web": QUESTION})
        found = {"documents": _documents(PASSAGES[1:2]), "links": ["https://example.org"]}
        _run(trace, "web", "SerperDevWebSearch", {"query": QUESTION}, found)
        _generator(trace, prompt(passages=PASSAGES[1:2]), name="web_llm")
    return trace


@shape(Turn())
def haystack_invented_passage() -> Trace:
    """HyDE: a first generator invents a passage, which is embedded and looked up."""
    invented = "A chain is oiled once a year by a specialist."
    with _pipeline(
        {"hyde": {"question": QUESTION}, "prompt_builder": {"question": QUESTION}}, _REPLIED
    ) as trace:
        _generator(trace, f"Write a passage that answers: {QUESTION}", invented, name="hyde")
        given = {"text": invented}
        _run(trace, "embedder", "SentenceTransformersTextEmbedder", given, {"embedding": [0.1]})
        _run(
            trace,
            "retriever",
            "InMemoryEmbeddingRetriever",
            {"query_embedding": [0.1]},
            {"documents": _documents()},
        )
        _builder(trace, prompt())
        _generator(trace, prompt())
    return trace


@shape(Turn(one_text=True))
def haystack_agent() -> Trace:
    """An agent of its own: steps with model and tool, the question in its messages."""
    call = {"tool_call": {"tool_name": "search", "arguments": {"query": QUERY}, "id": "c1", "extra": None}}
    result = {"tool_call_result": {"result": joined(), "origin": call["tool_call"], "error": False}}
    asked = _message("user", {"text": QUESTION})
    steps = [asked, _message("assistant", call), _message("tool", result)]
    last = _message("assistant", {"text": ANSWER})
    trace = Trace(_SCOPE)
    told = {
        "haystack.agent.input": json.dumps({"messages": [asked], "streaming_callback": None}),
        "haystack.agent.output": json.dumps({"messages": [*steps, last]}),
    }
    with trace.span("haystack.agent.run", told):
        with trace.span("haystack.agent.step", {"haystack.agent.step": 0}):
            _agent_llm(trace, [asked], steps[1])
            tool = {
                "haystack.tool.name": "search",
                "haystack.agent.step.tool.input": json.dumps({"query": QUERY}),
            }
            trace.leaf("haystack.agent.step.tool", {**tool, "haystack.agent.step.tool.output": joined()})
        with trace.span("haystack.agent.step", {"haystack.agent.step": 1}):
            _agent_llm(trace, steps, last)
    return trace


def _agent_llm(trace: Trace, sent: Sequence[object], reply: object) -> None:
    told = {
        "haystack.agent.step.llm.input": json.dumps({"messages": sent, "tools": []}),
        "haystack.agent.step.llm.output": json.dumps({"replies": [reply]}),
    }
    trace.leaf("haystack.agent.step.llm", told)


@shape(Gap(cause="content_off", switch="HAYSTACK_CONTENT_TRACING_ENABLED"))
def haystack_content_off() -> Trace:
    """As it comes: what the pipeline was given is told, what components did is not."""
    trace = Trace(_SCOPE)
    with trace.span("haystack.pipeline.run", {"haystack.pipeline.input_data": json.dumps(_ASKED)}):
        _run(trace, "retriever", "InMemoryBM25Retriever")
        _run(trace, "prompt_builder", "PromptBuilder")
        _run(trace, "llm", "OpenAIGenerator")
    return trace


@shape(Turn(one_text=True, without="no_prompt_seen"))
def haystack_agent_with_shown_messages() -> Trace:
    """The agent's own spans: what a step's model was sent is written as Python shows it."""
    role = "role=<ChatRole.USER: 'user'>"
    asked = f"ChatMessage(_{role}, _content=[TextContent(text={QUESTION!r})], _name=None, _meta={{}})"
    found = f"ToolCallResult(result={joined()!r}, origin=ToolCall(tool_name='search_manual'), error=False)"
    step = "haystack.agent.step"
    root = {"haystack.agent.input": json.dumps({"messages": [_message("user", {"text": QUESTION})]})}
    replied = json.dumps({"replies": [_message("assistant", {"text": ANSWER})]})
    trace = Trace(_SCOPE)
    with trace.span("haystack.agent.run", root):
        with trace.span(step):
            trace.leaf(f"{step}.llm", {f"{step}.llm.input": f"{{'messages': [{asked}], 'tools': []}}"})
            tool = {"haystack.tool.name": "search_manual", f"{step}.tool.output": joined()}
            trace.leaf(f"{step}.tool", tool)
        with trace.span(step):
            sent = f"{{'messages': [{asked}, ChatMessage(_content=[{found}])], 'tools': []}}"
            trace.leaf(f"{step}.llm", {f"{step}.llm.input": sent, f"{step}.llm.output": replied})
    return trace


SHAPES: tuple[Shape, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Shape))
