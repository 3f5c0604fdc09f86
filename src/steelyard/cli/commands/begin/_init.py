"""`steelyard init`: three questions, a file of settings, the lines to add, and a first score."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from steelyard._internal.lazy import is_installed
from steelyard._internal.text import instead_of, printable
from steelyard.cli._judges import JudgeChoice
from steelyard.cli._options import listed
from steelyard.cli._say import say
from steelyard.cli._setup import LINES, MODULES, SAMPLE, installed_framework, lines_of_scores, score_sample
from steelyard.errors import ConfigurationError, SteelyardError

_FILE = Path("steelyard.toml")


def init(
    framework: Annotated[
        str, typer.Option("--framework", "-f", metavar="NAME", help=f"{', '.join(LINES)}.")
    ] = "",
    judge: Annotated[
        str,
        typer.Option(
            "--judge",
            "-j",
            metavar="NAME",
            help="`local` needs no key; or `openai:MODEL`, `decisions:MODEL`.",
        ),
    ] = "",
    base_url: Annotated[
        str, typer.Option(metavar="URL", help="The judge's server, if it is one of your own.")
    ] = "",
    results: Annotated[
        str,
        typer.Option(
            "--results",
            "-r",
            metavar="A,B",
            help="`auto` is steelyard.db and the trace; also `phoenix`, `langfuse`, `jsonl:FILE`, ...",
        ),
    ] = "",
    force: Annotated[
        bool, typer.Option("--force", help="Write over a steelyard.toml that is there.")
    ] = False,
) -> None:
    """Set up Steelyard in this folder: write steelyard.toml, and see a first score.

    It asks three questions: your framework, the judge, and where results go. In a script, give the answers as
    options; what you leave out has its default. Then it prints the lines to add to your application, and
    scores a made-up turn with the judge that you chose. That turn is not stored.

    **Examples**

    - `steelyard init`
    - `steelyard init --framework langchain --judge local --results auto`
    - `steelyard init --judge openai:llama3.1 --base-url http://127.0.0.1:11434/v1`
    """
    if _FILE.exists() and not force:
        raise ConfigurationError(f"{_FILE} is there already; edit it, or write over it with --force")
    framework = _answer(framework, "Which framework", installed_framework(), _framework)
    judge = _answer(judge, "Which judge (local needs no key; openai:MODEL)", "local", _judge)
    JudgeChoice.named(judge, base_url=base_url)
    results = _answer(results, "Where to put results (auto: steelyard.db and the trace)", "auto", _results)
    _write(judge, base_url, results)
    say(f"wrote {_FILE}: every option with its meaning. It holds a key that keeps sampling unguessable;")
    say("where others can read the file, put that key into the variable STEELYARD_SAMPLE_KEY instead.")
    if framework in MODULES and not is_installed(MODULES[framework]):
        say(f"\nInstall:\n\n  pip install 'steelyard[{framework}]'")
    say("\nAdd to your application:\n")
    for line in LINES[framework]:
        say(f"  {line}")
    say(f"\nA first score, of a made-up turn:\n\n  asked    {SAMPLE.question}")
    say(f"  passage  {SAMPLE.contexts[0].text}\n  answer   {SAMPLE.answer}\n")
    try:
        evaluation = score_sample()
    except SteelyardError as error:
        say(printable(f"  not scored: {error}"))
        raise typer.Exit(1) from None
    for line in lines_of_scores(evaluation):
        say(printable(line, lines=True))
    say("\nThen: `steelyard doctor` checks the set-up, `steelyard report` shows the scores of your turns.")
    raise typer.Exit(0 if all(score.status == "scored" for score in evaluation.scores) else 1)


def _answer(given: str, question: str, default: str, check: Callable[[str], str]) -> str:
    """What an option says, else what a person at a terminal says, else the default."""
    if given or not sys.stdin.isatty():
        return check(given or default)
    while True:
        try:
            return check(str(typer.prompt(question, default=default)).strip())
        except ConfigurationError as error:
            say(printable(f"  {error}"))


def _framework(name: str) -> str:
    if name.lower() not in LINES:
        raise ConfigurationError(f"no framework {name!r} is known; {instead_of(name, LINES)}")
    return name.lower()


def _judge(name: str) -> str:
    return JudgeChoice.named(name).name


def _results(names: str) -> str:
    from steelyard.sinks import sink_from

    found = listed(names)
    for name in found:
        sink_from(name)
    return ",".join(found)


def _write(judge: str, base_url: str, results: str) -> None:
    from steelyard.online import settings_file

    chosen: dict[str, Any] = {
        "judge": judge,
        "sample_key": secrets.token_urlsafe(),
        "sinks": results.split(","),
    }
    if base_url:
        chosen["base_url"] = base_url
    _FILE.write_text(settings_file(chosen), encoding="utf-8")
