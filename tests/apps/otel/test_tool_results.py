"""What a tool returns is no context because it is a list, and odd results do no harm."""

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
    "result",
    [
        "200",
        "The weather is fine today in all of Europe.",
        {"kilometres": 200, "miles": 124},
        {"status": "sent", "id": "m-17"},
        [],
        {},
        [1, 2, 3],
        ["ok"],
        ["ok", "a passage of more than three words"],
        [{"id": 1, "done": True}, {"id": 2, "done": False}],
        [{"title": "Chains", "url": "https://example.org"}],
        [{"type": "image", "data": "aGVsbG8gd29ybGQ="}],
    ],
    ids=str,
)
def test_what_holds_no_passages_is_not_retrieval(result: object) -> None:
    assert agent("calculate", result).records == []


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


def test_a_heading_with_words_stays_with_its_passage() -> None:
    sections = [f"# Part {name}\n\n{text}" for name, text in zip("abc", PASSAGES, strict=True)]
    (record,) = agent("search_manual", "\n\n".join(sections)).records
    assert [context.text for context in record.contexts] == sections


def test_languages_without_spaces_have_passages_too() -> None:
    texts = [
        "自転車のチェーンは二百キロごとに油をさします。",
        "雨の日に走ったあとは乾かしてから油をさします。",
    ]
    (record,) = agent("search_manual", texts).records
    assert [context.text for context in record.contexts] == texts


_FAILURES = (
    "Error: the index could not be reached (connection refused)",
    'Traceback (most recent call last):\n  File "search.py", line 3, in search\nTimeoutError: timed out',
    "An error occurred while running the tool. Please try again. Error: timed out",
    "httpx.ConnectError: all attempts to connect failed",
)


@pytest.mark.parametrize("result", _FAILURES)
def test_the_error_of_a_search_is_not_a_passage(result: str) -> None:
    assert agent("search_manual", result).records == []


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
@pytest.mark.parametrize(
    ("tool", "result"),
    [
        ("send_email", "The email was sent to the workshop at noon."),
        ("create_document", "The document was written and stored."),
        ("search_manual", _FAILURES[0]),
    ],
)
def test_messages_of_a_tool_that_acts_or_failed_are_not_passages(
    way: Callable[[str, str], Trace], tool: str, result: str
) -> None:
    assert read_spans(way(tool, result).spans).records == []


@pytest.mark.parametrize("way", WAYS)
def test_messages_of_a_tool_that_searches_are_passages(way: Callable[[str, str], Trace]) -> None:
    (record,) = read_spans(way("search_manual", joined()).spans).records
    assert tuple(context.text for context in record.contexts) == PASSAGES
    assert "whether they search" not in " ".join(record.notes)


@pytest.mark.parametrize("way", WAYS)
def test_a_note_names_the_tool_of_which_it_is_not_known_whether_it_searches(
    way: Callable[[str, str], Trace],
) -> None:
    (record,) = read_spans(way("get_weather", "It rains in Bern today, with 12 degrees.").spans).records
    assert "whether they search is not known of 'get_weather'" in " ".join(record.notes)


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
