"""What the real instrumentors write of real LangChain and LlamaIndex applications gives the right records."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from otel_apps import chain
from otel_parts import ANSWER, INSTRUMENTORS, QUESTION, TEXTS

import programs
from steelyard import Monitor
from steelyard_langchain import CallbackHandler
from steelyard_opentelemetry import EvaluationSpanProcessor

PARTS = Path(__file__).parent / "parts"
IMPORTS = (PARTS / "otel_live.py").read_text() + (PARTS / "otel_apps.py").read_text()
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
WHOLE = {
    "openinference": {
        *("langchain", "langchain_model", "langchain_async", "langchain_stream", "langchain_agent"),
        *("behind_http", "llamaindex", "llamaindex_async"),
    },
    "openllmetry": {
        *("langchain", "langchain_model", "langchain_async", "langchain_stream", "langchain_agent"),
        *("behind_http", "llamaindex", "llamaindex_async"),
    },
    # A model that has no instrumentor of its own leaves a retrieval without any text.
    "genai": {"langchain", "langchain_async", "langchain_stream", "langchain_agent", "behind_http"},
}

Told = dict[str, dict[str, Any]]


RUNS = {
    **{dialect: (dialect, "SPAN_ONLY") for dialect in INSTRUMENTORS},
    "off": ("genai", "NO_CONTENT"),
    "hook": ("genai", ""),
    "both": ("openinference+openllmetry", ""),
}


ONLY = {
    "off": ("langchain",),
    "hook": ("langchain", "plain_python", "judged"),
    "both": ("langchain_model", "langchain_agent", "langchain_batch", "llamaindex", "behind_http"),
}


@pytest.fixture(scope="module")
def runs() -> Iterator[dict[str, programs.Program]]:
    """A process for each dialect, all at once: they spend their time waiting."""
    started = {}
    for name, (dialect, capture) in RUNS.items():
        only = ONLY.get(name, ())
        command = [str(PARTS / "otel_live.py"), dialect, *only]
        env = {**os.environ, CAPTURE: capture, "PYTHONWARNINGS": "ignore"}
        env |= {"OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK": "steelyard"} if name == "hook" else {}
        started[name] = programs.start(command, source=IMPORTS, ours=True, env=env)
    yield started
    for process in started.values():
        process.kill()


results: dict[str, Told] = {}


def result(runs: dict[str, programs.Program], name: str) -> Told:
    if name not in results:
        out, errors = runs[name].communicate(timeout=150)
        assert runs[name].returncode == 0, errors[-3000:]
        lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        results[name] = {line["app"]: line for line in lines}
    return results[name]


@pytest.fixture(params=sorted(INSTRUMENTORS))
def told(request: pytest.FixtureRequest, runs: dict[str, programs.Program]) -> tuple[str, Told]:
    return request.param, result(runs, request.param)


def right(record: dict[str, Any]) -> bool:
    """Whether a record is true; passages that only a prompt tells are guessed as one text."""
    texts = tuple(context["text"] for context in record["contexts"])
    if record.get("contexts_source") in ("guessed", "tool", "in_prompt") and len(texts) == 1:
        texts = tuple(part.strip() for text in texts for part in text.split("\n\n"))
    return (record["question"], texts, record["answer"]) == (QUESTION, TEXTS, ANSWER)


def test_every_application_gives_one_right_record(told: tuple[str, Told]) -> None:
    dialect, apps = told
    given = {app: [right(record) for record in apps[app]["records"]] for app in WHOLE[dialect]}
    assert given == dict.fromkeys(WHOLE[dialect], [True])


def test_documents_keep_ids_and_scores(told: tuple[str, Told]) -> None:
    dialect, apps = told
    contexts = apps["langchain"]["records"][0]["contexts"]
    if dialect == "genai":  # which of the ids a part of the prompt has, nothing tells
        assert [c.get("id") for c in contexts] == [None]
        return
    assert [(c.get("id"), c.get("score")) for c in contexts] == [("d1", 0.91), ("d2", 0.55), ("d3", 0.31)]


def test_what_reached_the_prompt_is_known(told: tuple[str, Told]) -> None:
    """Or a note says that it is not: a model client may start a trace of its own, which nothing links."""
    dialect, apps = told
    for app in ("langchain", "langchain_async", "behind_http"):
        record = apps[app]["records"][0]
        if dialect == "genai":
            assert record.get("contexts_source") == "guessed", app
            continue
        unseen = any(note.startswith("no_prompt_seen") for note in record.get("notes", ()))
        assert (record.get("contexts_source") == "in_prompt") != unseen, app


def test_a_batch_is_as_many_turns(told: tuple[str, Told]) -> None:
    _, apps = told
    assert [right(record) for record in apps["langchain_batch"]["records"]] == [True, True]


def test_a_failed_turn_is_recorded_as_failed(told: tuple[str, Told]) -> None:
    _, apps = told
    (record,) = apps["langchain_error"]["records"]
    assert (record["status"], record.get("answer", ""), record["question"]) == ("error", "", QUESTION)
    assert record["error"] == "ValueError: broken" or "broken" in record["error"]


def test_a_prompt_alone_gives_its_passages(told: tuple[str, Told]) -> None:
    _, apps = told
    (record,) = apps["plain_python"]["records"]
    assert right(record)
    assert record["contexts_source"] == "guessed"


def test_a_model_call_without_passages_is_no_turn(told: tuple[str, Told]) -> None:
    _, apps = told
    assert (apps["no_retrieval"]["records"], apps["no_retrieval"]["causes"]) == ([], ["no_retrieval"])


def test_turns_in_a_leaked_trace_do_not_mix(told: tuple[str, Told]) -> None:
    dialect, apps = told
    if dialect == "genai":
        assert set(apps["llamaindex_leak"]["causes"]) == {"documents_without_text"}
        return
    records = apps["llamaindex_leak"]["records"]
    asked = ["Which city is the capital of France?", QUESTION, "Where is the government of France?"]
    assert sorted(record["question"] for record in records) == sorted(asked)
    assert all(len(record["contexts"]) == 3 and record["answer"] == ANSWER for record in records)


def test_the_judges_own_calls_are_invisible(told: tuple[str, Told]) -> None:
    _, apps = told
    judged = apps["judged"]
    assert (judged["spans"], judged["records"], judged["causes"]) == (0, [], [])
    assert apps["langchain"]["spans"] > 0


def test_nothing_went_wrong_inside(told: tuple[str, Told]) -> None:
    assert told[1]["all"]["errors"] == 0


def test_two_instrumentors_at_once_give_each_turn_once(runs: dict[str, programs.Program]) -> None:
    apps = result(runs, "both")
    given = {app: [right(record) for record in apps[app]["records"]] for app in ONLY["both"]}
    assert given == {app: [True] * (2 if app == "langchain_batch" else 1) for app in ONLY["both"]}


def test_content_off_names_its_switch(runs: dict[str, programs.Program]) -> None:
    apps = result(runs, "off")
    assert apps["langchain"]["records"] == []
    assert set(apps["langchain"]["causes"]) == {"content_off"}


def test_a_completion_hook_gives_content_without_exporting_it(runs: dict[str, programs.Program]) -> None:
    apps = result(runs, "hook")
    assert [right(record) for record in apps["langchain"]["records"]] == [True]
    assert [right(record) for record in apps["plain_python"]["records"]] == [True]
    assert (apps["judged"]["spans"], apps["judged"]["records"]) == (0, [])
    assert not any(app.get("content") for app in apps.values())
    assert result(runs, "genai")["langchain"]["content"]


def test_turns_that_two_recorders_tell_are_said_once(caplog: pytest.LogCaptureFixture) -> None:
    monitor, provider = Monitor(metrics=[], sinks=[]), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(EvaluationSpanProcessor(monitor))
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=provider, skip_dep_check=True)
    handler = CallbackHandler(monitor)
    try:
        for _ in range(2):
            chain(lambda _: "Paris.").invoke(QUESTION, {"callbacks": [handler]})
    finally:
        instrumentor.uninstrument()
    provider.shutdown()
    assert monitor.close(10) == 0
    assert monitor.stats().evaluated == 4
    assert caplog.text.count("the recorder for langchain") == 1


def test_the_same_turn_again_by_the_same_recorder_is_nothing_odd(caplog: pytest.LogCaptureFixture) -> None:
    monitor = Monitor(metrics=[], sinks=[])
    handler = CallbackHandler(monitor)
    for _ in range(2):
        chain(lambda _: "Paris.").invoke(QUESTION, {"callbacks": [handler]})
    assert monitor.close(10) == 0
    assert monitor.stats().evaluated == 2
    assert not caplog.text
