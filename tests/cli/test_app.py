"""`steelyard` itself: help, version, and how fast it starts."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version

import pytest

from cli.running import Steelyard


def test_version(steelyard: Steelyard) -> None:
    outcome = steelyard("--version")
    assert (outcome.status, outcome.out) == (0, f"steelyard {version('steelyard')}\n")


def test_help_lists_the_commands(steelyard: Steelyard) -> None:
    outcome = steelyard("--help")
    assert outcome.status == 0
    headings = ("Score and test", "Record and score applications", "Look at results")
    places = [outcome.out.index(heading) for heading in headings]
    assert places == sorted(places)
    below = [outcome.out[start:end].split() for start, end in zip(places, [*places[1:], None], strict=True)]
    assert "demo" in below[0] and "worker" in below[1] and "report" in below[2]


def test_every_command_on_the_page_explains_itself(steelyard: Steelyard) -> None:
    names = re.findall(r"^│ ([a-z]+) ", steelyard("--help").out, re.MULTILINE)
    assert len(names) == 24
    for name in names:
        outcome = steelyard(name, "--help")
        assert outcome.status == 0
        assert f"Usage: steelyard {name}" in outcome.out


@pytest.mark.parametrize("name", ["demo", "score", "report"])
def test_commands_show_examples(steelyard: Steelyard, name: str) -> None:
    assert "Examples" in steelyard(name, "--help").out


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
