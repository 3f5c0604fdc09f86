"""`steelyard` itself: help, version, and how fast it starts."""

from __future__ import annotations

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
