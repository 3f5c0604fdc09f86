"""Playing the demo: chain -> callback -> Monitor -> judge -> sinks, and the scores read back."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig
from rich.console import Console

from steelyard.cli._words import counted
from steelyard.cli.demo._board import COLUMNS, Board
from steelyard.cli.demo._chain import ExtractiveChatModel, build_chain, inventing
from steelyard.cli.demo._compare import compare
from steelyard.cli.demo._text import QUESTIONS, UNANSWERABLE, passages
from steelyard.errors import ConfigurationError
from steelyard.golden.gates import MetricComparison
from steelyard.judge import LocalJudge
from steelyard.metrics import Hallucination, default_metrics
from steelyard.online import Monitor
from steelyard.report import report
from steelyard.scores import Evaluation, Score
from steelyard.sinks import SQLiteSink
from steelyard_langchain import CallbackHandler

_VARIANTS = ("plain", "inventing")
# On a slow machine the local judge takes some seconds for the whole demo.
_PATIENCE = 20.0


def play(console: Console, *, database: str, model: str | None, base_url: str | None) -> int:
    """Ask, record, score, compare.

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
    board = Board(console)
    questions = (*QUESTIONS, *UNANSWERABLE)
    answers = f"answers by {model}" if model else "answers by quotation, without a model"
    board.head(
        about=f"{len(questions)} questions about weighing, {len(passages())} passages, {answers}",
        way=f"chain > CallbackHandler > Monitor > {judge.name} > {database}",
    )
    started = time.monotonic()
    scored = _Scored(board, questions)
    chains = dict(zip(_VARIANTS, (chain, inventing(chain)), strict=True))
    with console.status("Asking and scoring ..."):
        pending = _run(monitor, chains, scored)
    stats = monitor.stats()
    monitor.close()
    _conclude(board, *(scored.found[variant] for variant in _VARIANTS))
    board.say(f"{judge.name} compares words; it does not understand, and is not calibrated.", style="dim")
    board.say(
        f"{counted(stats.seen, 'turn')} seen, {stats.evaluated} evaluated, {pending} pending, "
        f"{sum(stats.dead.values())} lost, in {time.monotonic() - started:.1f} s",
        style="dim",
    )
    board.steps("Next", _next(database, model))
    if page := _page(database):
        board.say(f"The report is in {page}: open it in a browser.", style="bold")
    board.steps("In a chain of your own", _OWN)
    return 1 if pending else 0


_OWN = (
    ("from steelyard import Monitor", ""),
    ("from steelyard_langchain import CallbackHandler", ""),
    ('chain.invoke(question, config={"callbacks": [CallbackHandler(Monitor())]})', ""),
)


def _page(database: str) -> str | None:
    """Write the report beside the database; None where Jinja2 is not installed or the folder is read-only."""
    page = str(Path(database).with_suffix(".html"))
    try:
        report(database, by="variant").write_html(page)
    except ConfigurationError:
        return None
    return page


def _chat_model(model: str | None, base_url: str | None) -> BaseChatModel:
    if model is None:
        if base_url:
            raise ConfigurationError("--base-url needs --model")
        return ExtractiveChatModel()
    from steelyard.cli.demo._openai import OpenAIChatModel

    key = "none" if base_url else os.environ.get("OPENAI_API_KEY")
    if not key:
        raise ConfigurationError(
            "--model needs a key: export OPENAI_API_KEY=..., or name a server that needs none with --base-url"
        )
    return OpenAIChatModel(name=model, base_url=base_url, api_key=key)


def _run(monitor: Monitor, chains: Mapping[str, Runnable[str, str]], scored: _Scored) -> int:
    """Put every question to every chain, taking scores as they arrive; returns how many turns are pending."""
    arrived: queue.SimpleQueue[Evaluation] = queue.SimpleQueue()
    monitor.on_evaluation(arrived.put)
    handler = CallbackHandler(monitor)
    for question in scored.questions:
        for variant, chain in chains.items():
            config = RunnableConfig(
                callbacks=[handler], tags=["demo", variant], metadata={"variant": variant}
            )
            chain.invoke(question, config)
        while not arrived.empty():
            scored.take(arrived.get())
    # Callbacks and sinks as well: the report below is made of the file.
    pending = monitor.flush(_PATIENCE)
    # The callback runs in a thread of its own and may be a moment behind.
    deadline = time.monotonic() + 2
    while scored.count < len(chains) * len(scored.questions) and time.monotonic() < deadline:
        try:
            scored.take(arrived.get(timeout=0.1))
        except queue.Empty:
            continue
    return pending


class _Scored:
    """Evaluations as they arrive, and rows on the board in the order of the questions."""

    def __init__(self, board: Board, questions: Sequence[str]) -> None:
        self.questions = questions
        self.found: dict[str, dict[str, Evaluation]] = {variant: {} for variant in _VARIANTS}
        self._board = board
        self._shown = 0

    @property
    def count(self) -> int:
        return sum(map(len, self.found.values()))

    def take(self, evaluation: Evaluation) -> None:
        if evaluation.record is not None:
            variant = str(evaluation.record.metadata["variant"])
            self.found[variant][evaluation.record.question] = evaluation
        while self._shown < len(self.questions):
            question = self.questions[self._shown]
            both = [self.found[variant].get(question) for variant in _VARIANTS]
            if both[0] is None or both[1] is None:
                return
            self._board.row(question, both[0], both[1])
            self._shown += 1


def _conclude(board: Board, plain: Mapping[str, Evaluation], invented: Mapping[str, Evaluation]) -> None:
    """Compare the chains, and say which is worse."""
    differences, _ = compare(plain, invented)
    board.comparison(differences)
    board.say(_finding(differences), style="bold")
    board.say(_noticed(plain, invented))
    board.say()


def _finding(differences: Sequence[MetricComparison]) -> str:
    """The largest difference that can be told from chance, in a sentence."""
    clear = [one for one in differences if one.clear]
    if not clear:
        return "The two chains cannot be told apart on these questions."
    found = max(clear, key=lambda one: abs(one.difference.value))
    most = found.difference
    worse, other = ("B", most.second) if found.worse else ("A", most.first)
    better = most.first if found.worse else most.second
    low, high = sorted((abs(most.low), abs(most.high)))
    return (
        f"Chain {worse} is worse: {found.metric} {other:.2f} against {better:.2f}, "
        f"{abs(most.value):.2f} apart "
        f"(95 % interval {low:.2f} to {high:.2f}, {most.n} questions)."
    )


def _noticed(plain: Mapping[str, Evaluation], invented: Mapping[str, Evaluation]) -> str:
    """How many of the altered answers scored worse than their originals."""
    altered = [
        (plain[question], invented[question])
        for question in plain.keys() & invented.keys()
        if _answer(plain[question]) != _answer(invented[question])
    ]
    noticed = sum(any(_worse(one[m], other[m]) for m in COLUMNS) for one, other in altered)
    return f"Of {counted(len(altered), 'altered answer')} the judge noticed {noticed}."


def _answer(evaluation: Evaluation) -> str:
    return evaluation.record.answer if evaluation.record else ""


def _worse(one: Score, other: Score) -> bool:
    if one.value is None or other.value is None:
        return False
    return other.value < one.value if one.direction == "higher" else other.value > one.value


def _next(database: str, model: str | None) -> list[tuple[str, str]]:
    file = "" if database == "steelyard.db" else f" --db {database}"
    steps = [
        (f"steelyard report --tag inventing{file}", "the scores of chain B again"),
        ("steelyard judge check", "how far to trust the judge"),
        ("steelyard score FILE.jsonl", "answers of your own"),
    ]
    if model is None:
        key = "; its key is set, and not used unasked" if os.environ.get("OPENAI_API_KEY") else ""
        steps.append(("steelyard demo --model gpt-4o-mini", f"answers by a real model{key}"))
    return steps
