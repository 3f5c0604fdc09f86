"""Judges by name."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from judge_server import JudgeServer
from steelyard.errors import ConfigurationError
from steelyard.judge import judge_from
from steelyard.judge.chat._adapter import model_name
from steelyard.metrics import Faithfulness
from steelyard.online import Monitor
from steelyard.record import Context, Record
from steelyard.testing import ScriptedJudge

URL = "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("spec", "options", "name"),
    [
        ("local", {}, "local-lexical"),
        ("openai:gpt-4o-mini", {"base_url": URL}, "chat:gpt-4o-mini"),
        ("openai", {"base_url": URL, "model": "m"}, "chat:m"),
        ("chat:llama3:8b", {"base_url": URL}, "chat:llama3:8b"),
        ("openai:m", {"base_url": URL, "timeout": 5, "reasons": False}, "chat:m"),
        ("decisions", {"base_url": URL}, "decisions:gpt-6-luna"),
        ("decisions:gpt-7", {"api_key": "sk-x"}, "decisions:gpt-7"),
    ],
)
def test_a_name_stands_for_a_judge(spec: str, options: dict[str, Any], name: str) -> None:
    assert judge_from(spec, **options).name == name


def test_a_judge_stands_for_itself() -> None:
    judge = ScriptedJudge(lambda question, request: None)
    assert judge_from(judge) is judge


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        ("", {}),
        ("gpt-4o-mini", {}),
        ("openai", {"base_url": URL}),
        ("openai:m", {"base_url": URL, "patience": 3}),
        ("local:m", {}),
        ("local", {"base_url": URL}),
        (42, {}),
        (ScriptedJudge(lambda question, request: None), {"base_url": URL}),
    ],
)
def test_what_is_no_judge_is_named(spec: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        judge_from(spec, **options)


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        ({"model_name": "a", "model": "b", "model_id": "c", "deployment_name": "d"}, "a"),
        ({"model_name": object(), "model": "b", "model_id": "c"}, "b"),
        ({"model_name": "", "model": None, "model_id": "c", "deployment_name": "d"}, "c"),
        ({"deployment_name": "d"}, "d"),
        ({}, "SimpleNamespace"),
    ],
)
def test_a_frameworks_model_is_called_by_its_own_name(attributes: dict[str, Any], name: str) -> None:
    assert model_name(SimpleNamespace(**attributes)) == name


def test_importing_costs_nothing() -> None:
    code = "import sys, steelyard.judge; print({'openai', 'aiohttp', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("by_code", [False, True])
def test_an_address_in_settings_is_that_of_the_judge_in_settings_alone(
    by_code: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with JudgeServer() as named, JudgeServer() as other:
        settings = {"STEELYARD_JUDGE": "openai:m", "STEELYARD_BASE_URL": named.url}
        for variable, value in {**settings, "OPENAI_BASE_URL": other.url, "OPENAI_API_KEY": "k"}.items():
            monkeypatch.setenv(variable, value)
        given: dict[str, Any] = {"judge": "openai:n"} if by_code else {}
        monitor = Monitor(metrics=[Faithfulness(claims="whole")], sinks=[], **given)
        passages = (Context(text="It lies in Rome."),)
        monitor.submit(Record(question="Where?", answer="In Rome.", contexts=passages))
        assert monitor.flush(60) == 0
        monitor.close()
    asked = [{request.body["model"] for request in server.received} for server in (named, other)]
    assert asked == ([set(), {"n"}] if by_code else [{"m"}, set()])
