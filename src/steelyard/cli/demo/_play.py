"""Playing the demo: chain -> callback -> Monitor -> judge -> sinks, and what the scores come to."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig
from rich.console import Console
from rich.text import Text

from steelyard._internal.text import shorten
from steelyard.cli._terminal import figures_table
from steelyard.cli._words import amount, counted, worst_verdict
from steelyard.cli.demo._chain import build_chain, inventing, openai_model, quoting_model
from steelyard.cli.demo._text import QUESTIONS, UNANSWERABLE, passages
from steelyard.errors import ConfigurationError
from steelyard.judge import LocalJudge
from steelyard.metrics import Hallucination, default_metrics
from steelyard.online import Monitor
from steelyard.report import explain_verdict, report
from steelyard.scores import Evaluation, Score
from steelyard.sinks import SQLiteSink
from steelyard.stats import Difference, paired_difference
from steelyard_langchain import CallbackHandler

_COLUMNS = ("faithfulness", "hallucination")
_VARIANTS = ("plain", "inventing")
# On a slow machine the local judge takes some seconds for the whole demo.
_PATIENCE = 20.0
_WIDEST = 150
_CELLS = 2 * len(_COLUMNS) * 6
_HEAD = """
A RAG chain on the balance
{questions} questions about weighing, {passages} passages, {answers}

  A  the chain as it is
  B  the same chain, with numbers, names and negations in its answers altered

chain > CallbackHandler > Monitor > {judge} > {database}
faithful: claims that the contexts carry; contradicted: claims that they deny
"""
_OWN = """
In a chain of your own
  from steelyard import Monitor
  from steelyard_langchain import CallbackHandler
  chain.invoke(question, config={"callbacks": [CallbackHandler(Monitor())]})"""

_Pair = Sequence[Evaluation]


def play(console: Console, *, database: str, model: str | None, base_url: str | None) -> int:
    """Ask, record, score, compare; returns the exit status: 1 if a turn was not scored in time.

    Args:
        console: Where to print.
        database: The SQLite file for the results.
        model: A real model's name; None for the one that quotes.
        base_url: The model's server.

    Raises:
        ConfigurationError: If the database cannot be written or the model does not answer.
    """
    chain = build_chain(_chat_model(model, base_url))
    sink = SQLiteSink(database)
    sink.open()
    judge = LocalJudge()
    monitor = Monitor(judge=judge, metrics=[*default_metrics(judge), Hallucination()], sinks=[sink])
    questions = (*QUESTIONS, *UNANSWERABLE)
    answers = f"answers by {model}" if model else "answers by quotation, without a model"
    head = {"questions": len(questions), "passages": len(passages()), "answers": answers}
    _say(console, _HEAD.format(**head, judge=judge.name, database=database))
    started = time.monotonic()
    with console.status("Asking and scoring ..."):
        pairs = _ask(
            monitor, dict(zip(_VARIANTS, (chain, inventing(chain)), strict=True)), questions, console
        )
        pending = monitor.flush(_PATIENCE)
    stats = monitor.stats()
    monitor.close()
    _conclude(console, pairs)
    _say(console, f"{judge.name} compares words; it does not understand, and is not calibrated.", style="dim")
    counts = f"{counted(stats.seen, 'turn')} seen, {stats.evaluated} evaluated, {pending} pending, "
    counts += f"{sum(stats.dead.values())} lost, in {time.monotonic() - started:.1f} s"
    _say(console, counts, style="dim")
    _say(console, _next(database, model), style="cyan")
    _write_page(console, database)
    _say(console, _OWN, style="cyan")
    return 1 if pending or len(pairs) < len(questions) else 0


def _say(console: Console, text: str, *, style: str = "") -> None:
    console.print(Text(text, style=style))


def _ask(
    monitor: Monitor, chains: Mapping[str, Runnable[str, str]], questions: Sequence[str], console: Console
) -> list[_Pair]:
    """Put every question to every chain, and print a row as soon as both answers are scored."""
    arrived: queue.SimpleQueue[Evaluation] = queue.SimpleQueue()
    monitor.on_evaluation(arrived.put)
    handler = CallbackHandler(monitor)
    room = max(min(console.width, _WIDEST) - _CELLS - 2, 40)
    width = room * 45 // 100
    _say(console, f"{'':<{width}}  {'faithful':^10}  {'contradicted':^12}")
    _say(
        console, f"{'Question':<{width}}{'     A     B' * len(_COLUMNS)}  What speaks against B", style="bold"
    )
    pairs: list[_Pair] = []
    for question in questions:
        found = {}
        for variant, chain in chains.items():
            metadata = {"variant": variant}
            chain.invoke(
                question, RunnableConfig(callbacks=[handler], tags=["demo", variant], metadata=metadata)
            )
        for _ in chains:
            try:
                evaluation = arrived.get(timeout=_PATIENCE)
            except queue.Empty:
                return pairs
            assert evaluation.record is not None
            found[evaluation.record.metadata["variant"]] = evaluation
        pairs.append([found[variant] for variant in chains])
        console.print(_row(question, pairs[-1], width, room - width), no_wrap=True, crop=True)
    return pairs


def _row(question: str, pair: _Pair, width: int, rest: int) -> Text:
    line = Text(f"{shorten(question, width):<{width}}")
    for metric in _COLUMNS:
        for evaluation in pair:
            line.append("  ").append(_cell(evaluation[metric]))
    return line.append("  ").append(shorten(_against(pair[1]), rest))


def _cell(score: Score) -> Text:
    if score.value is None:
        return Text(f"{'n/a' if score.status == 'not_applicable' else 'fail':>4}", style="dim")
    return Text(f"{amount(score.value):>4}", style="green" if score.passed else "red")


def _against(evaluation: Evaluation) -> str:
    """The worst verdict in words, or why there is none."""
    scores = [evaluation[metric] for metric in _COLUMNS]
    verdict = next((found for score in scores if (found := worst_verdict(score))), None)
    if verdict is not None:
        return f'{explain_verdict(verdict)}: "{verdict.about}"'
    return next((score.explanation for score in scores if score.value is None), "nothing")


def _conclude(console: Console, pairs: Sequence[_Pair]) -> None:
    """Compare the chains, and say which is worse."""
    found = _differences(pairs)
    table = figures_table("Mean over questions", "A", "B", "B - A", "95 % interval", "Questions")
    for metric, one in found.items():
        interval = f"{one.low:+.2f} to {one.high:+.2f}"
        cells = (amount(one.first), amount(one.second), f"{one.value:+.2f}", interval, str(one.n))
        style = "bold" if one.clear else "dim"
        table.add_row(metric, *(Text(cell, style=style) for cell in cells))
    console.print("", table, "")
    _say(console, _finding(found.get("faithfulness")), style="bold")
    altered = [pair for pair in pairs if len({e.record.answer for e in pair if e.record}) > 1]
    noticed = sum(any(_is_worse(one[m], two[m]) for m in _COLUMNS) for one, two in altered)
    _say(console, f"Of {counted(len(altered), 'altered answer')} the judge noticed {noticed}.\n")


def _differences(pairs: Sequence[_Pair]) -> dict[str, Difference]:
    """How B differs from A by metric, over the questions that both have a value for."""
    values: dict[str, list[tuple[float, float]]] = {}
    for plain, invented in pairs:
        for score in plain.scores:
            one, other = score.value, invented[score.metric].value
            if one is not None and other is not None:
                values.setdefault(score.metric, []).append((one, other))
    found = {
        name: paired_difference([one for one, _ in both], [two for _, two in both])
        for name, both in values.items()
    }
    return {name: difference for name, difference in found.items() if difference is not None}


def _finding(found: Difference | None) -> str:
    """What the judge makes of the chains, in a sentence."""
    if found is None or not found.clear:
        return "The two chains cannot be told apart on these questions."
    worse, value, other = (
        ("B", found.second, found.first) if found.value < 0 else ("A", found.first, found.second)
    )
    low, high = sorted((abs(found.low), abs(found.high)))
    return (
        f"Chain {worse} is worse: faithfulness {value:.2f} against {other:.2f}, {abs(found.value):.2f} apart "
        f"(95 % interval {low:.2f} to {high:.2f}, {found.n} questions)."
    )


def _is_worse(one: Score, other: Score) -> bool:
    if one.value is None or other.value is None:
        return False
    return other.value < one.value if one.direction == "higher" else other.value > one.value


def _write_page(console: Console, database: str) -> None:
    """Write the report beside the database, unless Jinja2 is not installed or the folder is read-only."""
    page = str(Path(database).with_suffix(".html"))
    try:
        report(database, by="variant").write_html(page)
    except ConfigurationError:
        return
    _say(console, f"The report is in {page}: open it in a browser.", style="bold")


def _chat_model(model: str | None, base_url: str | None) -> BaseChatModel:
    if model is None:
        if base_url:
            raise ConfigurationError("--base-url needs --model")
        return quoting_model()
    key = "none" if base_url else os.environ.get("OPENAI_API_KEY")
    if not key:
        raise ConfigurationError(
            "--model needs a key: export OPENAI_API_KEY=..., or name a server that needs none with --base-url"
        )
    return openai_model(model, base_url=base_url, api_key=key)


def _next(database: str, model: str | None) -> str:
    file = "" if database == "steelyard.db" else f" --db {database}"
    key = "; its key is set, and not used unasked" if os.environ.get("OPENAI_API_KEY") else ""
    lines = [
        "\nNext",
        f"  {f'steelyard report --tag inventing{file}':<36}   the scores of chain B again",
        "  steelyard judge check                  how far to trust the judge",
        "  steelyard score FILE.jsonl             answers of your own",
    ]
    if model is None:
        lines.append(f"  steelyard demo --model gpt-4o-mini     answers by a real model{key}")
    return "\n".join(lines)
