from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from steelyard.errors import ConfigurationError, MissingDependency
from steelyard.sinks import sink_from

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
