"""Playing the demo: chain -> callback -> Monitor -> judge -> sinks, and the scores read back."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Mapping
from pathlib import Path

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from rich.console import Console

from steelyard.cli._words import counted
from steelyard.cli.demo._board import Board
from steelyard.cli.demo._chain import ExtractiveChatModel, build_chain, inventing
from steelyard.cli.demo._compare import compare
from steelyard.cli.demo._text import QUESTIONS, UNANSWERABLE, passages
from steelyard.errors import ConfigurationError
from steelyard.judge import LocalJudge
from steelyard.online import Monitor
from steelyard.scores import Evaluation
from steelyard.sinks import SQLiteSink
from steelyard_langchain import CallbackHandler

__all__ = ["play"]

_VARIANTS = ("plain", "inventing")
_PATIENCE = 20.0

Found = dict[str, dict[str, Evaluation]]
"""Evaluations by variant and question."""


def play(console: Console, *, database: str, model: str | None, base_url: str | None) -> int:
    """Ask, record, score, compare.

    Args:
        console: Where to print.
        database: The SQLite file for the results.
        model: A real model's name; None for the one that quotes.
        base_url: The model's server.

    Returns:
        The exit status: 1 if some turn was not scored in time.

    Raises:
        ConfigurationError: If the database cannot be written or the model does not answer.
    """
    judge = LocalJudge()
    sink = SQLiteSink(database)
    sink.open()
    chat = _chat_model(model, base_url)
    chain = build_chain(chat)
    questions = (*QUESTIONS, *UNANSWERABLE)
    board = Board(console)
    board.head(
        model=model or "quoted from the passages, without a model",
        judge=f"{judge.name}, offline",
        passages=len(passages()),
        questions=len(questions),
    )
    started = time.monotonic()
    monitor = Monitor(judge=judge, sinks=[sink])
    arrived: queue.SimpleQueue[Evaluation] = queue.SimpleQueue()
    monitor.on_evaluation(arrived.put)
    show = _Shown(board)
    handler = CallbackHandler(monitor)
    chains = dict(zip(_VARIANTS, (chain, inventing(chain)), strict=True))
    with console.status("Asking and scoring ..."):
        for question in questions:
            _ask(question, chains, handler)
            while not arrived.empty():
                show.take(arrived.get())
        pending = monitor.flush(_PATIENCE)
        _wait(arrived, show, expected=len(_VARIANTS) * len(questions))
    stats = monitor.stats()
    monitor.close()
    board.comparison(*compare(*(show.found[variant] for variant in _VARIANTS)))
    board.foot(
        [
            f"{judge.name} judges by words, not by understanding; it is not calibrated against people.",
            f"{counted(stats.seen, 'turn')}: {stats.evaluated} evaluated, {pending} pending, "
            f"{sum(stats.dead.values())} lost; {time.monotonic() - started:.1f} s; "
            f"{stats.usage.requests} requests left this machine.",
            f"Every score is in {database}.",
        ],
        _next(database, model),
    )
    return 1 if pending else 0


def _chat_model(model: str | None, base_url: str | None) -> BaseChatModel:
    if model is None:
        if base_url:
            raise ConfigurationError("--base-url needs --model")
        return ExtractiveChatModel()
    from steelyard.cli.demo._openai import OpenAIChatModel

    key = os.environ.get("OPENAI_API_KEY") or ("none" if base_url else "")
    if not key:
        raise ConfigurationError(
            "--model needs a key: export OPENAI_API_KEY=..., or name a server that needs none with --base-url"
        )
    return OpenAIChatModel(name=model, base_url=base_url, api_key=key)


def _ask(question: str, chains: Mapping[str, Runnable[str, str]], handler: CallbackHandler) -> None:
    for variant, chain in chains.items():
        chain.invoke(
            question, {"callbacks": [handler], "tags": ["demo", variant], "metadata": {"variant": variant}}
        )


def _wait(arrived: queue.SimpleQueue[Evaluation], show: _Shown, *, expected: int) -> None:
    """Take what is still on its way to us; the callback runs in a thread of its own."""
    deadline = time.monotonic() + 2
    while show.count < expected:
        try:
            show.take(arrived.get(timeout=max(deadline - time.monotonic(), 0.01)))
        except queue.Empty:
            return


class _Shown:
    """Evaluations as they arrive, and a row on the board once both variants of a question are there."""

    def __init__(self, board: Board) -> None:
        self.found: Found = {variant: {} for variant in _VARIANTS}
        self._board = board

    @property
    def count(self) -> int:
        return sum(map(len, self.found.values()))

    def take(self, evaluation: Evaluation) -> None:
        record = evaluation.record
        if record is None:
            return
        self.found[str(record.metadata["variant"])][record.question] = evaluation
        both = [self.found[variant].get(record.question) for variant in _VARIANTS]
        if both[0] is not None and both[1] is not None:
            self._board.row(record.question, both[0], both[1])


def _next(database: str, model: str | None) -> list[tuple[str, str]]:
    default = Path(database) == Path("steelyard.db")
    steps = [
        ("steelyard report" + ("" if default else f" --db {database}"), "look at the scores again"),
        ("steelyard score FILE.jsonl", "score answers of your own"),
        ("CallbackHandler(Monitor())", "pass it to your chain: config={'callbacks': [...]}"),
    ]
    if model is None and os.environ.get("OPENAI_API_KEY"):
        steps.append(
            ("steelyard demo --model gpt-4o-mini", "answer with a real model (a key is set, not used)")
        )
    return steps
