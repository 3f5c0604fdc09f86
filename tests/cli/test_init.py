"""`steelyard init`: questions, the file, the lines to add, and a first score."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from cli.running import Steelyard
from steelyard.online import load_settings

ALONE = ["steelyard.toml"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_script_gives_its_answers_as_options(steelyard: Steelyard, folder: Path) -> None:
    outcome = steelyard("init", "--framework", "llamaindex", "--results", "sqlite:a.db, jsonl:b.jsonl")
    assert outcome.status == 0, outcome.err
    settings = load_settings().settings
    assert (settings.judge, settings.sinks) == ("local", ["sqlite:a.db", "jsonl:b.jsonl"])
    assert len(settings.sample_key) >= 32
    assert "\n  from steelyard_llamaindex import instrument\n  instrument()\n" in outcome.out
    # Of the made-up turn, the wrong claim is found; nothing of it is stored.
    assert '1911 is in no context: "It was finished in 1911."' in outcome.out
    assert [path.name for path in folder.iterdir()] == ALONE


def test_a_file_that_is_there_stays_unless_told(steelyard: Steelyard, folder: Path) -> None:
    file = folder / "steelyard.toml"
    file.write_text("sample_rate = 0.5\n")
    refused = steelyard("init")
    assert (refused.status, file.read_text()) == (2, "sample_rate = 0.5\n")
    assert "--force" in refused.err
    assert steelyard("init", "--force").status == 0
    assert load_settings().settings.sample_rate == 1.0


def test_a_person_is_asked_again_until_the_answer_means_something(
    steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Typed(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Typed("langchian\npython\nlocal\n\n"))
    outcome = steelyard("init")
    assert outcome.status == 0, outcome.err
    assert "did you mean 'langchain'?" in outcome.out
    assert "  monitor = Monitor()\n" in outcome.out
    assert load_settings().settings.sinks == ["auto"]


def test_a_judge_without_its_key_is_written_down_and_said(steelyard: Steelyard, folder: Path) -> None:
    outcome = steelyard("init", "--judge", "openai:gpt-4o-mini")
    assert outcome.status == 1
    assert "not scored: no key for the judge: set OPENAI_API_KEY" in outcome.out
    assert [path.name for path in folder.iterdir()] == ALONE


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--framework", "haystack"), "there are langchain"),
        (("--judge", "claude"), "there are 'local'"),
        (("--results", "sqlight"), "there is no sink"),
        (("--base-url", "http://127.0.0.1:1/v1"), "need --judge openai"),
    ],
)
def test_wrong_answers_write_nothing(
    steelyard: Steelyard, folder: Path, option: tuple[str, str], said: str
) -> None:
    outcome = steelyard("init", *option)
    assert outcome.status == 2 and said in outcome.err
    assert not list(folder.iterdir())
