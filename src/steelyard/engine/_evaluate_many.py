"""Scoring many Records: bounded concurrency, results in input order, one event loop that is ours."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence, Sized
from contextlib import aclosing, contextmanager
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, overload

from steelyard._internal.threads import run_anywhere
from steelyard.engine._evaluate import check_names, evaluate_one
from steelyard.errors import ConfigurationError, MissingDependency
from steelyard.judge import StaticEmbedder, judge_from
from steelyard.metrics import Metric, default_metrics, parse_metrics
from steelyard.questions import Embedder, Fuse, Judge
from steelyard.record import Record
from steelyard.scores import Evaluation, Usage
from steelyard.stats import MetricSummary, Summarizer

if TYPE_CHECKING:
    import pandas as pd

Progress = bool | Callable[[Evaluation], None]
"""Show a bar on stderr, show nothing, or call a function for each finished Evaluation."""


def evaluate(
    records: Iterable[Record],
    *,
    metrics: Sequence[Metric | str] | None = None,
    judge: Judge | str | None = None,
    embedder: Embedder | None = None,
    fuse: Fuse = "view",
    concurrency: int = 16,
    deadline: float | None = None,
    score_guesses: bool = False,
    progress: Progress = True,
) -> Results:
    """Score records and wait for the results; `aevaluate` without an event loop of your own.

    Works inside a running loop too (a notebook), by using a thread for its own.

    Raises:
        ConfigurationError: If an option cannot mean what was given.
    """
    return run_anywhere(
        aevaluate(
            records,
            metrics=metrics,
            judge=judge,
            embedder=embedder,
            fuse=fuse,
            concurrency=concurrency,
            deadline=deadline,
            score_guesses=score_guesses,
            progress=progress,
        ),
        name="steelyard-evaluate",
    )


async def aevaluate(
    records: Iterable[Record],
    *,
    metrics: Sequence[Metric | str] | None = None,
    judge: Judge | str | None = None,
    embedder: Embedder | None = None,
    fuse: Fuse = "view",
    concurrency: int = 16,
    deadline: float | None = None,
    score_guesses: bool = False,
    progress: Progress = True,
) -> Results:
    """Score records.

    Args:
        records: The turns; read as they are needed.
        metrics: What to score them with, as objects or names (`["faithfulness"]`); the judge's default suite
            where none are given.
        judge: Who answers: a Judge, or a name such as `"openai:gpt-4o-mini"`; the local judge by default.
        embedder: Who embeds; local static vectors by default.
        fuse: How questions share requests.
        concurrency: How many records are in flight.
        deadline: Seconds for one record.
        score_guesses: Whether passages that were guessed from a prompt are judged by.
        progress: A bar on stderr where that is a terminal, or a function, or neither.

    Raises:
        ConfigurationError: If an option cannot mean what was given.
    """
    total = len(records) if isinstance(records, Sized) else None
    each = evaluate_each(
        records,
        metrics=metrics,
        judge=judge,
        embedder=embedder,
        fuse=fuse,
        concurrency=concurrency,
        deadline=deadline,
        score_guesses=score_guesses,
    )
    with _reporting(progress, total) as report:
        evaluations = []
        async with aclosing(each):
            async for evaluation in each:
                report(evaluation)
                evaluations.append(evaluation)
    return Results(evaluations)


async def evaluate_each(
    records: Iterable[Record],
    *,
    metrics: Sequence[Metric | str] | None = None,
    judge: Judge | str | None = None,
    embedder: Embedder | None = None,
    fuse: Fuse = "view",
    concurrency: int = 16,
    deadline: float | None = None,
    score_guesses: bool = False,
) -> AsyncGenerator[Evaluation, None]:
    """Score records as a stream, in input order and bounded memory; arguments as for `aevaluate`."""
    _check(concurrency, deadline, embedder)
    chosen = judge_from(judge if judge is not None else "local")
    suite = parse_metrics(metrics, chosen) if metrics is not None else default_metrics(chosen)
    check_names(suite)
    vectors = embedder if embedder is not None else StaticEmbedder()

    slots = asyncio.Semaphore(concurrency)

    async def score(record: Record) -> Evaluation:
        async with slots:
            limit = None if deadline is None else time.monotonic() + deadline
            return await evaluate_one(
                record,
                suite,
                judge=chosen,
                embedder=vectors,
                fuse=fuse,
                deadline=limit,
                score_guesses=score_guesses,
            )

    window: deque[asyncio.Task[Evaluation]] = deque()
    try:
        for record in _checked(records):
            window.append(asyncio.create_task(score(record)))
            # Wider than the slots, so that one slow record at the head does not idle them.
            if len(window) >= 4 * concurrency:
                yield await window.popleft()
        while window:
            yield await window.popleft()
    finally:
        for task in window:
            task.cancel()
        await asyncio.gather(*window, return_exceptions=True)
        if chosen is not judge:
            await chosen.aclose()
        if vectors is not embedder:
            await vectors.aclose()


def _check(concurrency: object, deadline: object, embedder: object) -> None:
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
        raise ConfigurationError(f"concurrency must be a whole number of at least 1, not {concurrency!r}")
    if deadline is not None and not (isinstance(deadline, int | float) and deadline > 0):
        raise ConfigurationError(f"deadline must be a number of seconds above 0, not {deadline!r}")
    if embedder is not None and not isinstance(embedder, Embedder):
        raise ConfigurationError(
            f"embedder={embedder!r} is not an Embedder; write OpenAIEmbedder(MODEL) of steelyard.judge, or "
            "give an object with name and embed()"
        )


def _checked(records: Iterable[Record]) -> Iterator[Record]:
    """The same records; anything else is refused, with the way to make a Record."""
    if isinstance(records, Record):
        raise ConfigurationError("records is a single Record; pass a list of them: [record]")
    for record in records:
        if not isinstance(record, Record):
            raise ConfigurationError(
                f"records holds a {type(record).__name__}, not a Record; make one with Record(question=...), "
                "Record.from_ragas(sample), Record.from_deepeval(case) or record_from_dict(data)"
            )
        yield record


@contextmanager
def _reporting(progress: Progress, total: int | None) -> Iterator[Callable[[Evaluation], None]]:
    if callable(progress):
        yield progress
        return
    if not progress:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    with Bar(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("Scoring", total=total)
        yield lambda _: bar.advance(task)


class Results(Sequence[Evaluation]):
    """Evaluations in input order, with what they add up to.

    >>> print(results)  # doctest: +SKIP
    faithfulness      mean 0.81   17 of 20 pass (0.5)
    """

    def __init__(self, evaluations: Sequence[Evaluation]) -> None:
        self.evaluations = tuple(evaluations)

    @overload
    def __getitem__(self, index: int) -> Evaluation: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Evaluation, ...]: ...
    def __getitem__(self, index: int | slice) -> Evaluation | tuple[Evaluation, ...]:
        return self.evaluations[index]

    def __len__(self) -> int:
        return len(self.evaluations)

    def __iter__(self) -> Iterator[Evaluation]:
        return iter(self.evaluations)

    @cached_property
    def _sums(self) -> Summarizer:
        return Summarizer().add_all(self.evaluations)

    @property
    def summary(self) -> tuple[MetricSummary, ...]:
        """One summary per metric."""
        return self._sums.metrics()

    @property
    def usage(self) -> Usage:
        """What it all cost."""
        return self._sums.usage

    def __str__(self) -> str:
        return "\n".join(map(_line, self.summary)) or ("no metrics" if self.evaluations else "no records")

    def _repr_html_(self) -> str:
        """A table for notebooks: each metric's mean with its interval."""
        rows = "".join(map(_html_row, self.summary))
        heads = "".join(f"<th>{name}</th>" for name in ("metric", "mean", "95 % interval", "scored", "pass"))
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"

    def to_pandas(self) -> pd.DataFrame:
        """One row a record: id, texts, session, tenant, evidence, Unix time, and each metric's value or none.

        Raises:
            MissingDependency: If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise MissingDependency("pandas", extra="pandas") from None
        return pd.DataFrame([_row(evaluation) for evaluation in self.evaluations])


def _row(evaluation: Evaluation) -> dict[str, Any]:
    record = evaluation.record
    return {
        "record_id": evaluation.record_id,
        "question": record.question if record else None,
        "answer": record.answer if record else None,
        "session": evaluation.session,
        "tenant": evaluation.tenant,
        "evidence": evaluation.evidence,
        "happened_at": evaluation.at,
        **{score.metric: score.value for score in evaluation.scores},
    }


def _html_row(summary: MetricSummary) -> str:
    found, passed = summary.estimate, summary.pass_rate
    cells = [
        summary.metric,
        "" if found is None else f"{found.value:.3f}",
        "" if found is None else f"{found.low:.3f} to {found.high:.3f}",
        f"{summary.scored}",
        "" if passed is None else f"{passed.value:.0%}",
    ]
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


def _line(summary: MetricSummary) -> str:
    parts = [f"{summary.metric:<24}", "no score   " if summary.mean is None else f"mean {summary.mean:.3f} "]
    if summary.threshold is not None and summary.scored:
        parts.append(f"{summary.passed} of {summary.scored} pass ({summary.threshold:g})")
    for name, counts in (("not applicable", summary.not_applicable), ("failed", summary.failed)):
        if counts:
            parts.append(f"{sum(counts.values())} {name} ({', '.join(counts)})")
    return "  ".join(parts)
