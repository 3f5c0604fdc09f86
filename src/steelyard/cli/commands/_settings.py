"""`steelyard init` and `config`: three questions, a file of settings, a first score; and what is in force."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer
from typer import Option

from steelyard._internal.lazy import is_installed
from steelyard._internal.text import instead_of, printable, redacted_url, shorten
from steelyard._internal.threads import run_anywhere
from steelyard.cli._judges import JudgeChoice
from steelyard.cli._options import listed
from steelyard.cli._say import amount, say
from steelyard.cli._summary import worst_verdict
from steelyard.engine import aevaluate
from steelyard.errors import ConfigurationError, SteelyardError
from steelyard.online import Monitor, load_settings, settings_file
from steelyard.record import Context, Record
from steelyard.report import explain_verdict
from steelyard.scores import Evaluation
from steelyard.sinks import sink_from

_LINES: Mapping[str, tuple[str, ...]] = {
    "langchain": ("from steelyard_langchain import attach", "attach()"),
    "llamaindex": ("from steelyard_llamaindex import instrument", "instrument()"),
    "opentelemetry": (
        "from steelyard_opentelemetry import EvaluationSpanProcessor",
        "provider.add_span_processor(EvaluationSpanProcessor())  # your TracerProvider",
    ),
    "python": (
        "from steelyard import Context, Monitor, Record",
        "monitor = Monitor()",
        "monitor.submit(Record(question=..., contexts=(Context(text=...),), answer=...))  # each turn",
    ),
}
"""By framework, the lines that record an application; they come before its first question."""
_MODULES: Mapping[str, str] = {
    "langchain": "langchain_core",
    "llamaindex": "llama_index.core",
    "opentelemetry": "opentelemetry.sdk",
}
"""By framework, what has to be installed."""
_SAMPLE = Record(
    id="sample",
    question="When was the lighthouse built, and by whom?",
    contexts=(Context(text="The lighthouse was built by Robert Stevenson. It was finished in 1811."),),
    answer="The lighthouse was built by Robert Stevenson. It was finished in 1911.",
)
"""A turn whose second claim is wrong."""
_WIDTH = 90


def score_sample() -> Evaluation:
    """Have the sample judged as settings ask for here. Nothing is written, and no budget is touched."""
    return run_anywhere(_scored(Monitor(sinks=[])))


async def _scored(monitor: Monitor) -> Evaluation:
    options = monitor.options
    try:
        [evaluation] = await aevaluate(
            [_SAMPLE],
            metrics=options.metrics,
            judge=options.judge,
            embedder=options.embedder,
            fuse=options.fuse,
            deadline=options.deadline,
            progress=False,
        )
    finally:
        for made in (options.judge, options.embedder):
            if made is not None:
                await made.aclose()
    return evaluation


def _lines_of_scores(evaluation: Evaluation) -> Iterator[str]:
    for score in evaluation.scores:
        if score.value is None:
            yield f"  {score.metric:<20}    -  {shorten(score.explanation, _WIDTH)}"
            continue
        yield f"  {score.metric:<20} {amount(score.value)}  {shorten(score.explanation, _WIDTH)}"
        if (verdict := worst_verdict(score)) is not None:
            yield f'  {"":<20}       {explain_verdict(verdict)}: "{shorten(verdict.about, _WIDTH)}"'


_FILE = Path("steelyard.toml")


def init(
    framework: str = Option("", "--framework", "-f", metavar="NAME", help=f"{', '.join(_LINES)}."),
    judge: str = Option(
        "",
        "--judge",
        "-j",
        metavar="NAME",
        help="`local` needs no key; or `openai:MODEL`, `decisions:MODEL`.",
    ),
    base_url: str = Option("", metavar="URL", help="The judge's server, if it is one of your own."),
    results: str = Option(
        "",
        "--results",
        "-r",
        metavar="A,B",
        help="`auto` is steelyard.db and the trace; also `phoenix`, `langfuse`, `jsonl:FILE`, ...",
    ),
    force: bool = Option(False, "--force", help="Write over a steelyard.toml that is there."),
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
    installed = next((name for name, module in _MODULES.items() if is_installed(module)), "python")
    framework = _answer(framework, "Which framework", installed, _framework)
    named = "Which judge (local needs no key; openai:MODEL)"
    judge = _answer(judge, named, "local", lambda name: JudgeChoice.named(name).name)
    JudgeChoice.named(judge, base_url=base_url)
    results = _answer(results, "Where to put results (auto: steelyard.db and the trace)", "auto", _results)
    key = secrets.token_urlsafe()
    chosen: dict[str, Any] = {"judge": judge, "sample_key": key, "sinks": results.split(",")}
    _FILE.write_text(settings_file(chosen | ({"base_url": base_url} if base_url else {})), encoding="utf-8")
    say(f"wrote {_FILE}: every option with its meaning. It holds a key that keeps sampling unguessable;")
    say("where others can read the file, put that key into the variable STEELYARD_SAMPLE_KEY instead.")
    if framework in _MODULES and not is_installed(_MODULES[framework]):
        say(f"\nInstall:\n\n  pip install 'steelyard[{framework}]'")
    say("\nAdd to your application:\n")
    for line in _LINES[framework]:
        say(f"  {line}")
    say(f"\nA first score, of a made-up turn:\n\n  asked    {_SAMPLE.question}")
    say(f"  passage  {_SAMPLE.contexts[0].text}\n  answer   {_SAMPLE.answer}\n")
    try:
        evaluation = score_sample()
    except SteelyardError as error:
        say(printable(f"  not scored: {error}"))
        raise typer.Exit(1) from None
    for line in _lines_of_scores(evaluation):
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
    if name.lower() not in _LINES:
        raise ConfigurationError(f"no framework {name!r} is known; {instead_of(name, _LINES)}")
    return name.lower()


def _results(names: str) -> str:
    found = listed(names)
    for name in found:
        sink_from(name)
    return ",".join(found)


_SECRET = ("key", "token", "secret", "password")


def config(
    as_json: bool = Option(False, "--json", help="One JSON object instead of a table."),
) -> None:
    """Show the options of a Monitor as `STEELYARD_*` variables and `steelyard.toml` set them here.

    Code comes first: what a program passes to `Monitor(...)` is not seen by this command. `metrics` are those
    that run, even those of the judge's default suite. No secret is shown: keys are read by judges
    themselves, from their own variables, and are not options; those inside addresses are left out.

    **Examples**

    - `steelyard config`
    - `STEELYARD_SAMPLE_RATE=0.1 steelyard config --json`
    """
    loaded = load_settings()
    # Raises where entries are wrong in themselves or do not go together. Sinks are not made: some open files.
    monitor = Monitor(sinks=[])
    in_force = {**asdict(loaded.settings), "metrics": [metric.name for metric in monitor.options.metrics]}
    options = {name: _shown(name, value) for name, value in in_force.items()}
    sources = {name: loaded.sources.get(name, "default") for name in options}
    if as_json:
        say(json.dumps({"options": options, "sources": sources}, indent=2))
        return
    width = max(map(len, options))
    for name, value in options.items():
        say(f"{name:<{width}}  {json.dumps(value)}   ({sources[name]})")


def _shown(name: str, value: Any) -> Any:
    """A value without what may be a secret: entries with such a name, and parts of addresses."""
    if isinstance(value, dict):
        return {entry: _shown(str(entry), inner) for entry, inner in value.items()}
    if isinstance(value, list):
        return [_shown(name, inner) for inner in value]
    if not isinstance(value, str) or not value:
        return value
    if any(part in _SECRET for part in name.lower().split("_")):
        return "***"
    return redacted_url(value) if "://" in value else value
