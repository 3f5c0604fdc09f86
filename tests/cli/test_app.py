"""`steelyard` itself: help, version, how fast it starts, and how `init` sets up a folder."""

from __future__ import annotations

import io
import os
import re
import runpy
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from cli.running import Steelyard
from steelyard.cli._app import _COMMANDS, _loaded
from steelyard.online import load_settings

ALONE = ["steelyard.toml"]


def test_version(steelyard: Steelyard) -> None:
    outcome = steelyard("--version")
    assert (outcome.status, outcome.out) == (0, f"steelyard {version('steelyard')}\n")


def test_help_lists_the_commands(steelyard: Steelyard) -> None:
    outcome = steelyard("--help")
    assert outcome.status == 0
    headings = (
        "Begin here",
        "Record and score your application",
        "Look at the results",
        "Test before you ship",
    )
    places = [outcome.out.index(heading) for heading in headings]
    assert places == sorted(places)
    below = [outcome.out[start:end].split() for start, end in zip(places, [*places[1:], None], strict=True)]
    for name, words in zip(("init", "worker", "report", "score"), below, strict=True):
        assert name in words


COMMANDS = {
    f"{name} {one}".strip(): command
    for name in (name for group in _COMMANDS.values() for name in group)
    for one, command in (getattr(_loaded(name), "commands", None) or {"": _loaded(name)}).items()
}


def test_every_command_explains_itself(steelyard: Steelyard) -> None:
    names = re.findall(r"^│ ([a-z]+) ", steelyard("--help").out, re.MULTILINE)
    assert len(names) == 26
    for name in names:
        outcome = steelyard(name, "--help")
        assert outcome.status == 0
        assert f"Usage: steelyard {name}" in outcome.out


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_are_there_and_can_be_typed(name: str) -> None:
    command = COMMANDS[name]
    examples = re.findall(r"`([^`]*steelyard [^`]*)`", (command.help or "").partition("**Examples**")[2])
    assert examples
    for example in examples:
        typed = shlex.split(example.rpartition("| ")[2])
        typed = typed[typed.index("steelyard") + 1 :]
        if typed[: len(name.split())] == name.split():
            # Raises at an option that is not there.
            context = command.context_class(command, **command.context_settings)
            command.make_parser(context).parse_args(typed[len(name.split()) :])
        else:
            assert typed[0] in {one.split()[0] for one in COMMANDS}


def test_the_page_of_commands_says_what_their_help_says() -> None:
    """`python scripts/commands.py` was run."""
    root = Path(__file__).parents[2]
    written = runpy.run_path(str(root / "scripts" / "commands.py"))["page"]()
    assert (root / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8") == written


def test_without_arguments_it_shows_the_help(steelyard: Steelyard) -> None:
    outcome = steelyard()
    assert "Usage" in outcome.out + outcome.err


def test_an_unknown_command_is_wrong_usage(steelyard: Steelyard) -> None:
    outcome = steelyard("scroe")
    assert outcome.status == 2
    assert "score" in outcome.err


def test_an_error_of_the_system_names_its_file(steelyard: Steelyard, tmp_path: Path) -> None:
    outcome = steelyard("labels", "import", tmp_path / "gone.csv")
    assert outcome.status == 2
    assert outcome.err == f"steelyard: No such file or directory: {tmp_path / 'gone.csv'}\n"


def test_what_a_terminal_cannot_show_is_a_question_mark(tmp_path: Path) -> None:
    here = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    code = "import sys; from steelyard.cli import main; sys.argv[0] = 'steelyard'; main()"
    command = [sys.executable, "-c", code, "score", str(tmp_path / "漢.jsonl")]
    done = subprocess.run(command, capture_output=True, env=here, text=True)
    assert done.returncode == 2 and "?.jsonl" in done.stderr and "Traceback" not in done.stderr


def test_help_loads_nothing_heavy() -> None:
    check = (
        "import sys\nfrom steelyard.cli import main\nsys.argv = ['steelyard', '--help']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = {'numpy', 'openai', 'tokenizers', 'langchain_core', 'steelyard.engine'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or None)"
    )
    subprocess.run([sys.executable, "-c", check], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize(
    ("to", "test", "status"),
    [
        (["log"], [], 0),
        (["log"], ["--test"], 0),
        (["log", "webhook:http://127.0.0.1:9/"], ["--test"], 1),
        (["webhook:http://127.0.0.1:9/"], ["--test"], 1),
    ],
)
def test_the_command_of_alarms_fails_where_one_target_was_not_reached_and_not_while_one_learns(
    steelyard: Steelyard,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    to: list[str],
    test: list[str],
    status: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "steelyard.toml").write_text(
        f'[[alarm]]\nmetric = "faithfulness"\nfalls_by = 0.1\nto = {to}\n'
    )
    outcome = steelyard("alarms", *test)
    assert outcome.status == status
    assert outcome.out.count(": told\n") == (len(test) if "log" in to else 0)


@pytest.fixture
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
    steelyard: Steelyard, folder: Path, monkeypatch: pytest.MonkeyPatch
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
    assert [path.name for path in folder.iterdir()] == ALONE


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
