"""`steelyard records` and `steelyard doctor`, on files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from otel_parts import ANSWER, QUESTION, documents, is_right, oi
from typer.testing import CliRunner, Result

from steelyard.cli._app import build
from steelyard.record import record_from_json
from steelyard_opentelemetry import check_environment, other_tracers

TRACE = "0af7651916cd43dd8448eb211c80319c"


def call(*words: str) -> Result:
    return CliRunner().invoke(build(), list(words))


def line(*spans: tuple[str, str, str | None, dict[str, Any]], trace: str = TRACE) -> str:
    """An export of spans given by name, id, parent and attributes."""
    found = [
        {
            "traceId": trace,
            "spanId": span_id,
            "parentSpanId": parent,
            "name": name,
            "startTimeUnixNano": "1700000000000000000",
            "endTimeUnixNano": "1700000001000000000",
            "attributes": [
                {"key": key, "value": {"doubleValue" if isinstance(item, float) else "stringValue": item}}
                for key, item in attributes.items()
            ],
        }
        for name, span_id, parent, attributes in spans
    ]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": found}]}]}) + "\n"


ROOT = ("chain", "00000000000000a1", None, oi("CHAIN", input__value=QUESTION, output__value=ANSWER))
FOUND = ("find", "00000000000000a2", ROOT[1], oi("RETRIEVER", input__value=QUESTION, **documents()))
BARE = ("chat", "00000000000000b1", None, {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    path = tmp_path / "traces.jsonl"
    path.write_text(line(FOUND, ROOT) + line(BARE, trace="b" * 32))
    return path


def test_records_prints_one_record_a_line(traces: Path) -> None:
    done = call("records", str(traces))
    assert done.exit_code == 0
    (printed,) = done.stdout.splitlines()
    assert is_right(record_from_json(printed))
    assert "1 record in 2 traces" in done.stderr
    assert "steelyard doctor" in done.stderr


def test_an_export_that_was_indented_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "pretty.json"
    path.write_text(json.dumps(json.loads(line(FOUND, ROOT)), indent=2))
    done = call("records", str(path))
    assert done.exit_code == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1
    path.write_text(path.read_text()[:-20] + "\n}")
    done = call("records", str(path))
    assert done.exit_code == 1
    assert done.stderr.count("not JSON") == 1


@pytest.mark.parametrize("text", ["", '{"resourceLogs": []}\n', '{"resourceSpans": 5}\n'])
@pytest.mark.parametrize("command", ["records", "doctor"])
def test_a_file_without_spans_says_so(tmp_path: Path, command: str, text: str) -> None:
    path = tmp_path / "nothing.jsonl"
    path.write_text(text)
    done = call(command, str(path))
    assert done.exit_code == 1
    assert "nothing.jsonl: no spans in it" in done.output


def test_a_trace_may_go_on_in_the_next_file(tmp_path: Path) -> None:
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    first.write_text(line(FOUND))
    second.write_text(line(ROOT))
    done = call("records", str(first), str(second))
    assert len(done.stdout.splitlines()) == 1


def test_records_reads_standard_input() -> None:
    done = CliRunner().invoke(build(), ["records", "-"], input=line(FOUND, ROOT))
    assert len(done.stdout.splitlines()) == 1


def test_bad_lines_are_told_and_do_not_stop_the_rest(traces: Path) -> None:
    traces.write_text("{\n" + traces.read_text())
    done = call("records", str(traces))
    assert done.exit_code == 1
    assert len(done.stdout.splitlines()) == 1
    assert "line 1: not JSON" in done.stderr


def test_doctor_names_the_trace_the_cause_and_the_switch(traces: Path) -> None:
    done = call("doctor", str(traces))
    assert done.exit_code == 0
    told = {words.split()[0]: words for words in done.stdout.splitlines()}
    assert "ok: 1 record" in told[TRACE]
    assert "content_off" in told["b" * 32]
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in told["b" * 32]
    assert QUESTION not in done.stdout


def test_doctor_tells_dropped_attributes_even_where_there_is_a_record(tmp_path: Path) -> None:
    data = json.loads(line(FOUND, ROOT))
    data["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["droppedAttributesCount"] = 7
    path = tmp_path / "cut.jsonl"
    path.write_text(json.dumps(data))
    assert "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT" in call("doctor", str(path)).stdout


def test_doctor_tells_what_is_wrong_beside_a_record(tmp_path: Path) -> None:
    path = tmp_path / "leak.jsonl"
    lone = (
        "find",
        "00000000000000c1",
        "00000000000000ff",
        oi("RETRIEVER", input__value="Who?", **documents()),
    )
    alone = ("chain", "00000000000000d1", None, ROOT[3])
    path.write_text(
        line(FOUND, ROOT)
        + line(lone).replace("17000000", "17000009")
        + line(alone, trace="d" * 32)
        + line(alone).replace("17000000", "17000012")
    )
    told = call("doctor", str(path)).stdout
    assert "ok: 1 record" in told
    assert "unlinked" in told
    # That a trace retrieves nothing is told where it gave no record, and beside one harms nobody.
    assert re.findall(r"(\w{32})  no_retrieval", told) == ["d" * 32]


def test_doctor_misses_turns_in_an_empty_folder_and_wants_files_or_live(
    traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("doctor")
    assert done.exit_code == 1 and "no turn has arrived" in done.stdout
    assert call("doctor", "--live", str(traces)).exit_code != 0


def test_a_missing_file_is_said() -> None:
    done = call("records", "nowhere.jsonl")
    assert "nowhere.jsonl" in str(done.exception)


def test_doctor_live_looks_at_this_environment() -> None:
    done = call("doctor", "--live")
    assert done.exit_code == 0
    assert "openinference-instrumentation-langchain" in done.stdout


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "NO_CONTENT"),
        ("TRACELOOP_TRACE_CONTENT", "false"),
        ("OPENINFERENCE_HIDE_INPUTS", "true"),
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "64"),
        ("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "1000"),
        ("OTEL_SDK_DISABLED", "true"),
        ("OTEL_TRACES_SAMPLER", "always_off"),
        ("OTEL_TRACES_SAMPLER", "always_on"),
        ("LANGSMITH_API_KEY", "lsv2_x"),
    ],
)
def test_every_switch_that_hides_turns_is_found(name: str, value: str) -> None:
    good = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY", "STEELYARD_INSTRUMENT": "all"}
    assert all(check.ok for check in check_environment(good))
    assert any(check.what.startswith("STEELYARD_INSTRUMENT is set") for check in check_environment(good))
    bad = [check.what for check in check_environment({**good, name: value}) if not check.ok]
    assert len(bad) == 1
    assert name in bad[0]


@pytest.mark.parametrize(
    ("distribution", "name", "value"),
    [
        ("haystack-ai", "HAYSTACK_CONTENT_TRACING_ENABLED", "false"),
        ("google-adk", "ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS", "false"),
        ("semantic-kernel", "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE", ""),
    ],
)
def test_a_framework_that_writes_its_own_spans_is_told_its_own_switch(
    distribution: str, name: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / f"{distribution.replace('-', '_')}-9.9.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 9.9\n")
    monkeypatch.syspath_prepend(tmp_path)
    others = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY"}
    found = check_environment({**others, name: value})
    assert any(check.ok and check.what.startswith(f"{distribution} 9.9") for check in found)
    assert [check.what.partition(" ")[0].partition("=")[0] for check in found if not check.ok] == [name]
    assert all(check.ok for check in check_environment({**others, name: "true"}))


def test_tracing_of_vendors_beside_ours_is_named_with_its_sink(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sinks = {"mlflow": "mlflow", "langfuse": "langfuse", "ddtrace": "DatadogSink", "langsmith": "langsmith"}
    for name in sinks:
        folder = tmp_path / f"{name}-9.9.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.9\n")
    monkeypatch.syspath_prepend(tmp_path)
    # LangChain brings langsmith along; it is named if it is switched on.
    assert not [1 for check in other_tracers({}) if check.what.startswith("langsmith")]
    told = [check.what for check in other_tracers({"LANGSMITH_TRACING": "true"})]
    named = {what.split()[0]: what for what in told}
    assert {*sinks, "openinference-instrumentation-langchain"} <= set(named)
    for name, sink in sinks.items():
        assert sink in named[name].partition(":")[2]
    left = [check.what.split()[0] for check in other_tracers({}, sinks=["mlflow"])]
    assert "langfuse" in left and "mlflow" not in left
    key = {"LANGSMITH_API_KEY": "lsv2_secret"}
    assert "lsv2_secret" not in str(check_environment(key))
    assert [check.ok for check in check_environment(key) if "no runs" in check.what] == [False]
    assert not [
        1 for check in check_environment(key | {"LANGSMITH_TRACING": "true"}) if "no runs" in check.what
    ]
