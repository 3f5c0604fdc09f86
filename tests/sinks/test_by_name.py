"""Sinks by their names, and results as lines of JSON."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import logging
import sys
import threading
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from sinks.making import make_evaluation, make_score
from sinks.vendor_server import VendorServer
from sinks.vendors.makers import MAKERS
from steelyard.errors import ConfigurationError, MissingDependency
from steelyard.scores import evaluation_to_json
from steelyard.sinks import JSONLSink, read_jsonl, sink_from
from writing import check

VARIABLES = {
    "phoenix": {},
    "langfuse": {"LANGFUSE_PUBLIC_KEY": "pk", "LANGFUSE_SECRET_KEY": "sk"},
    "mlflow": {"MLFLOW_TRACKING_URI": "http://127.0.0.1:5000"},
    "langsmith": {"LANGSMITH_API_KEY": "key"},
    "datadog": {"DD_API_KEY": "key", "DD_LLMOBS_ML_APP": "app"},
}


def test_sinks_have_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["sqlite", "sqlite:other.db", "jsonl:results.jsonl", "opentelemetry"]
    kinds = [[type(sink).__name__ for sink in sink_from(name)] for name in names]
    assert kinds == [["SQLiteSink"], ["SQLiteSink"], ["JSONLSink"], ["OpenTelemetrySink"]]
    assert [type(sink).__name__ for sink in sink_from("auto")] == ["SQLiteSink", "OpenTelemetrySink"]


_ADDRESSES = (
    *("PHOENIX_COLLECTOR_ENDPOINT", "PHOENIX_BASE_URL", "LANGFUSE_BASE_URL", "LANGFUSE_HOST"),
    *("MLFLOW_TRACKING_URI", "LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT"),
)
_KEYS = (
    *("PHOENIX_API_KEY", "LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY", "MLFLOW_TRACKING_TOKEN"),
    *("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY", "DD_API_KEY"),
)


@pytest.mark.parametrize("name", VARIABLES)
def test_vendors_take_address_and_key_from_their_own_variables(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in VARIABLES[name].items():
        monkeypatch.setenv(variable, value)
    assert [sink.name for sink in sink_from(name)] == [name]


@pytest.mark.parametrize("name", [name for name in VARIABLES if VARIABLES[name]])
def test_a_vendor_without_its_variables_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES[name]:
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ConfigurationError, match="set "):
        sink_from(name)


@pytest.mark.parametrize("name", MAKERS)
def test_address_and_key_that_are_given_come_before_those_of_the_environment(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with VendorServer() as theirs, VendorServer() as ours:
        for variable in (*_ADDRESSES, *_KEYS):
            monkeypatch.setenv(variable, theirs.url if variable in _ADDRESSES else "planted")
        check(MAKERS[name](ours.url))
    assert theirs.requests == []
    [request] = ours.requests
    told = str(request.headers.values())
    sent = told + str(
        base64.b64decode(request.headers.get("authorization", "").removeprefix("Basic ") + "==")
    )
    assert "secret" in sent and "planted" not in sent


@pytest.mark.parametrize("name", ["kafka", "", "SQLite", "file.db"])
def test_an_unknown_name_lists_what_there_is(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"sqlite\[:FILE\], jsonl:FILE, opentelemetry, phoenix"):
        sink_from(name)


def test_a_key_after_the_name_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigurationError, match="takes nothing after its name") as caught:
        sink_from("langsmith:lsv2_secret")
    assert "secret" not in str(caught.value)


def test_jsonl_needs_a_file() -> None:
    with pytest.raises(ConfigurationError, match=r"jsonl:results\.jsonl"):
        sink_from("jsonl")


def test_where_nothing_can_be_written_results_stay_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "steelyard.db").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.access", lambda *_: False)
    assert [sink.name for sink in sink_from("auto")][0] == "sqlite::memory:"
    assert "results are kept in memory" in caplog.text


def test_the_protocol_of_opentelemetry_without_its_interface_is_no_sink(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = ModuleType("opentelemetry")
    shared.__path__ = []
    shared.__spec__ = ModuleSpec("opentelemetry", None, is_package=True)
    for name in [name for name in sys.modules if name.startswith(("opentelemetry", "steelyard.sinks.opent"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", shared)
    monkeypatch.chdir(tmp_path)
    assert [sink.name for sink in sink_from("auto")] == ["sqlite:steelyard.db"]
    with pytest.raises(MissingDependency, match=r"steelyard\[opentelemetry\]"):
        sink_from("opentelemetry")


def test_the_last_line_of_a_record_counts(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    sink = JSONLSink(path)
    asyncio.run(sink.write([make_evaluation("a", make_score(value=0.1)), make_evaluation("b")]))
    asyncio.run(sink.write([make_evaluation("a", make_score(value=0.9))]))
    assert [one.record_id for one in read_jsonl(path)] == ["b", "a"]
    assert [one["faithfulness"].value for one in read_jsonl(path)] == [0.75, 0.9]


def test_a_half_written_line_spoils_only_itself(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text('{"record_id": "torn", "sco')
    asyncio.run(JSONLSink(path).write([make_evaluation("a")]))
    with caplog.at_level(logging.WARNING, "steelyard"):
        assert [one.record_id for one in read_jsonl(path)] == ["a"]
    assert "1 lines hold no evaluation" in caplog.text


def test_a_line_that_another_process_is_writing_is_waited_for(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    path, line = tmp_path / "out.jsonl", evaluation_to_json(make_evaluation("theirs"))
    with path.open("a") as theirs:
        fcntl.flock(theirs, fcntl.LOCK_SH)
        theirs.write(line[:50])
        theirs.flush()
        ours = threading.Thread(target=lambda: asyncio.run(JSONLSink(path).write([make_evaluation("ours")])))
        ours.start()
        ours.join(0.2)
        theirs.write(f"{line[50:]}\n")
    ours.join(60)
    assert [one.record_id for one in read_jsonl(path)] == ["theirs", "ours"]


def test_a_write_of_which_the_disk_takes_a_part_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Narrow(io.FileIO):
        def write(self, data: Any, /) -> int:
            return super().write(data[:100])

    def narrow(path: Path, mode: str, *, buffering: int, opener: Any) -> io.FileIO:
        return Narrow(path, mode.replace("b", ""), opener=opener)

    with monkeypatch.context() as patched:
        patched.setattr("steelyard.sinks.jsonl.open", narrow, raising=False)
        asyncio.run(JSONLSink(tmp_path / "out.jsonl").write([make_evaluation(name) for name in "ab"]))
    assert [one.record_id for one in read_jsonl(tmp_path / "out.jsonl")] == ["a", "b"]


def test_what_cannot_be_written_is_said_once_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sink = JSONLSink(tmp_path / "out.jsonl")
    odd: Any = None
    with caplog.at_level(logging.WARNING, "steelyard"):
        asyncio.run(sink.write([make_evaluation(name).replace(usage=odd) for name in "ab"]))
        asyncio.run(sink.write([make_evaluation("c").replace(usage=odd), make_evaluation("d")]))
    assert (sink.counts.refused, len(caplog.records)) == ({"unstorable": 6}, 1)
    assert [one.record_id for one in read_jsonl(tmp_path / "out.jsonl")] == ["d"]


def test_a_stream_is_flushed_and_stays_open() -> None:
    stream = io.StringIO()
    sink = JSONLSink(stream)
    asyncio.run(sink.write([make_evaluation("a")]))
    asyncio.run(sink.aclose())
    assert json.loads(stream.getvalue())["scores"][0]["metric"] == "faithfulness"


def test_wrong_targets_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="42"):
        JSONLSink(42)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"gone/x\.jsonl"):
        asyncio.run(JSONLSink(tmp_path / "gone" / "x.jsonl").write([make_evaluation("a")]))
    with pytest.raises(ConfigurationError, match="cannot be read"):
        next(read_jsonl(tmp_path / "missing.jsonl"))


@pytest.mark.parametrize(("name", "warns"), [("auto", False), ("opentelemetry", True)])
def test_only_whoever_names_opentelemetry_hears_that_nobody_set_it_up(
    name: str, warns: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    for signal in ("trace._TRACER", "_logs._internal._LOGGER", "metrics._internal._METER"):
        monkeypatch.setattr(f"opentelemetry.{signal}_PROVIDER", None)
    with caplog.at_level(logging.WARNING, "steelyard"):
        for sink in sink_from(name):
            asyncio.run(sink.write([make_evaluation(f"{number}") for number in range(30)]))
            asyncio.run(sink.aclose())
    assert ("no_provider" in caplog.text) == warns


def test_what_was_written_to_a_stream_is_out_of_the_process(tmp_path: Path) -> None:
    with (tmp_path / "out.jsonl").open("w", buffering=1 << 20, encoding="utf-8") as stream:
        asyncio.run(JSONLSink(stream).write([make_evaluation("a")]))
        assert [one.record_id for one in read_jsonl(tmp_path / "out.jsonl")] == ["a"]


@pytest.mark.parametrize("name", ["postgresql://h/d?password=hidden", "postgresql://ann:hidden@h/d"])
def test_a_name_of_a_sink_takes_no_password_wherever_it_stands(name: str) -> None:
    with pytest.raises(ConfigurationError, match="PGPASSWORD") as caught:
        sink_from(name)
    assert "hidden" not in str(caught.value)
