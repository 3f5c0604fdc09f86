"""What a tool returns is no context because it is a list, and odd results do no harm."""

from __future__ import annotations

import json

import pytest

from apps.otel.attributes import oi, oi_model, oi_tool
from apps.otel.shapes import ANSWER, PASSAGES, QUESTION, Trace
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
