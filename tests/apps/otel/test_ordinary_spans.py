"""Spans of ordinary work, whose attributes share a word with a turn's, are not read as one."""

from __future__ import annotations

from typing import Any

import pytest

from apps.otel.general.conventions import chat, retrieval
from apps.otel.shapes import ANSWER, PASSAGES, QUESTION, Trace, prompt
from steelyard_opentelemetry import read_spans

ORDINARY: dict[str, dict[str, Any]] = {
    "database": {"db.system": "postgresql", "db.statement": "select 1", "query": "select 1", "result": "1"},
    "web server": {"http.request.method": "GET", "url.query": "q=oil", "input": "q=oil", "output": "<html>"},
    "only a query": {"query": QUESTION},
    "only an input": {"app.input": QUESTION, "app.kind": "cron"},
    "numbers": {"input": 3, "output": 4, "documents": 12, "question": 7},
    "GraphQL": {"graphql.query": "{ bicycles { chain } }", "graphql.response": '{"bicycles": []}'},
    "flags": {"documents": True, "sources": (), "context": "", "prompt": "", "response": ""},
}


@pytest.mark.parametrize("kind", ORDINARY)
def test_ordinary_work_is_not_a_turn(kind: str) -> None:
    trace = Trace("my.service")
    with trace.span("job"):
        trace.leaf("retrieve", ORDINARY[kind])
        trace.leaf("generate report", ORDINARY[kind])
    told = read_spans(trace.spans)
    assert told.records == []
    assert {diagnosis.cause for diagnosis in told.diagnoses} <= {"no_llm_spans", "no_retrieval"}


@pytest.mark.parametrize("kind", ORDINARY)
def test_ordinary_work_around_a_turn_changes_nothing_in_it(kind: str) -> None:
    trace = Trace("my.service")
    with trace.span("handle request", ORDINARY[kind]):
        trace.leaf("load", ORDINARY[kind])
        trace.leaf("retrieval manuals", retrieval())
        trace.leaf("chat small-model", chat(prompt(), ANSWER))
        trace.leaf("save", ORDINARY[kind])
    (record,) = read_spans(trace.spans).records
    assert (record.question, record.answer) == (QUESTION, ANSWER)
    assert [context.text for context in record.contexts] == list(PASSAGES)
    assert record.notes == ()
