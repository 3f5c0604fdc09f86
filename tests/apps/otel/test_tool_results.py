"""What a tool returned is evidence whatever the tool is called; odd results do no harm."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from apps.otel.attributes import oi, oi_model, oi_tool
from apps.otel.shapes import ANSWER, PASSAGES, QUESTION, Trace, compact, joined
from steelyard_opentelemetry import Extraction, read_spans


def agent(tool: str, result: object) -> Extraction:
    """An agent that calls one tool and then answers."""
    trace = Trace("openinference.instrumentation.langchain")
    with trace.span("LangGraph", oi("CHAIN", {"messages": [["user", QUESTION]]}, {"answer": ANSWER})):
        trace.leaf("ChatModel", oi_model([("user", QUESTION)], ""))
        trace.leaf(tool, oi_tool(tool, result))
        trace.leaf("ChatModel", oi_model([("user", QUESTION)], ANSWER))
    return read_spans(trace.spans)


@pytest.mark.parametrize(
    ("result", "texts"),
    [
        ("200", ["200"]),
        ("The weather is fine today in all of Europe.", ["The weather is fine today in all of Europe."]),
        ({"kilometres": 200, "miles": 124}, ['{"kilometres": 200, "miles": 124}']),
        (["ok", "a passage of more than three words"], ['["ok", "a passage of more than three words"]']),
        ([], []),
        ({}, []),
    ],
    ids=str,
)
@pytest.mark.parametrize("tool", ["calculate", "send_email", "get_policy"])
def test_what_a_tool_returned_counts_whatever_the_tool_is_called(
    tool: str, result: object, texts: list[str]
) -> None:
    (record,) = agent(tool, result).records
    assert [context.text for context in record.contexts] == texts


@pytest.mark.parametrize(
    "result",
    [
        "[" * 30_000,
        "(" + "-" * 30_000 + "1)",
        "['a passage that does not end",
        '[{"text": "a passage that was cut',
        '{"content":' * 30_000,
        json.dumps([{"text": None}, {"text": ["deep"]}]),
        "\n" * 50_000,
        "===== Document 0 =====\n" * 2_000,
    ],
    ids=range(8),
)
def test_an_odd_result_does_no_harm(result: str) -> None:
    reading = agent("search_manual", result)
    assert len(reading.records) + len(reading.diagnoses) == 1


def test_ids_and_scores_come_with_the_passages() -> None:
    hits = [{"id": f"d{n}", "text": text, "score": 0.5} for n, text in enumerate(PASSAGES)]
    (record,) = agent("search_manual", hits).records
    assert [(c.id, c.score) for c in record.contexts] == [("d0", 0.5), ("d1", 0.5), ("d2", 0.5)]


def test_one_text_stays_whole() -> None:
    text = "\n\n".join(f"# Part {name}\n\n{text}" for name, text in zip("abc", PASSAGES, strict=True))
    (record,) = agent("search_manual", text).records
    assert [context.text for context in record.contexts] == [text]


def test_languages_without_spaces_have_passages_too() -> None:
    texts = [
        "自転車のチェーンは二百キロごとに油をさします。",
        "雨の日に走ったあとは乾かしてから油をさします。",
    ]
    (record,) = agent("search_manual", texts).records
    assert [context.text for context in record.contexts] == texts


@pytest.mark.parametrize("sign", [{"status": "error"}, {"isError": True}])
def test_what_a_tool_says_of_its_failure_is_not_a_passage(sign: dict[str, object]) -> None:
    result = {"content": "The index could not be reached: connection refused.", "type": "tool", **sign}
    (record,) = agent("search_manual", result).records
    assert record.contexts == ()


@pytest.mark.parametrize("state", ["error", "completed"])
def test_what_a_tool_returned_within_blocks_may_say_that_it_failed(state: str) -> None:
    returned = json.dumps({"status": state, "device": "pump", "said": "The north gate is closed."})
    message = {"content": [{"type": "text", "text": returned}], "type": "tool", "status": "success"}
    (record,) = agent("run_command", message).records
    assert [context.text for context in record.contexts] == ([returned] if state == "completed" else [])


@pytest.mark.parametrize(
    "result", ["Errors of shifting come from a bent hanger.", f"Error codes\n{joined()}"]
)
def test_passages_on_errors_are_passages(result: str) -> None:
    assert len(agent("search_manual", result).records) == 1


def by_openinference(tool: str, result: str) -> Trace:
    """A call that was shown what a tool returned, with no span of the tool."""
    trace = Trace("openinference.instrumentation.openai")
    sent = oi_model([("user", QUESTION), ("assistant", ""), ("tool", result)], ANSWER)
    called = "llm.input_messages.1.message.tool_calls.0.tool_call."
    names = {f"{called}id": "c1", f"{called}function.name": tool}
    trace.leaf("ChatCompletion", {**sent, **names, "llm.input_messages.2.message.tool_call_id": "c1"})
    return trace


def by_openllmetry(tool: str, result: str) -> Trace:
    """The same, with a flat attribute for each part of a message."""
    told = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small-model"}
    for number, (role, text) in enumerate((("user", QUESTION), ("assistant", ""), ("tool", result))):
        told |= {f"gen_ai.prompt.{number}.role": role, f"gen_ai.prompt.{number}.content": text}
    told |= {"gen_ai.prompt.1.tool_calls.0.id": "c1", "gen_ai.prompt.1.tool_calls.0.name": tool}
    told |= {"gen_ai.prompt.2.tool_call_id": "c1", "gen_ai.completion.0.content": ANSWER}
    trace = Trace("opentelemetry.instrumentation.openai.v1")
    trace.leaf("openai.chat", told)
    return trace


def by_conventions(tool: str, result: str) -> Trace:
    """The same, with typed parts."""
    call = {"type": "tool_call", "id": "c1", "name": tool, "arguments": {}}
    came = {"type": "tool_call_response", "id": "c1", "response": result}
    sent = [
        {"role": "user", "parts": [{"type": "text", "content": QUESTION}]},
        {"role": "assistant", "parts": [call]},
        {"role": "tool", "parts": [came]},
    ]
    said = [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}]
    told = {"gen_ai.input.messages": compact(sent), "gen_ai.output.messages": compact(said)}
    trace = Trace("opentelemetry.util.genai.handler")
    trace.leaf("chat", {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small-model", **told})
    return trace


WAYS = (by_openinference, by_openllmetry, by_conventions)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("tool", ["search_manual", "get_weather", "send_email"])
def test_messages_of_a_tool_are_evidence_whatever_the_tool_is_called(
    way: Callable[[str, str], Trace], tool: str
) -> None:
    (record,) = read_spans(way(tool, joined()).spans).records
    assert [context.text for context in record.contexts] == [joined()]
    assert record.contexts_source == "in_prompt"


@pytest.mark.parametrize(
    "result",
    [
        "No results found.",
        "[]",
        "No relevant documents were found in the manual for 'oil'.",
        ["No matching passages found"],
        "I couldn't find any information on that in the knowledge base.",
        "Keine Ergebnisse gefunden.",
        "没有找到相关结果",
    ],
    ids=str,
)
def test_a_search_that_says_it_found_nothing_brings_no_passage(result: object) -> None:
    (record,) = agent("search_manual", result).records
    assert (record.question, record.contexts, record.answer) == (QUESTION, (), ANSWER)


@pytest.mark.parametrize(
    "passage",
    [
        "No data is shared with third parties.",
        "No information is available for children under twelve.",
        "Nothing beats a chain that is oiled well.",
        "No results in the trial were significant.",
    ],
)
def test_a_passage_that_begins_like_a_search_without_results_is_one(passage: str) -> None:
    (record,) = agent("search_manual", passage).records
    assert [context.text for context in record.contexts] == [passage]
