"""What `steelyard score` does: records stream from a file through the engine to a file, in bounded memory."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import BinaryIO

from rich.console import Console

from steelyard._internal.text import escaped, printable
from steelyard.backfill import read_records
from steelyard.cli._options import listed
from steelyard.cli._terminal import progress
from steelyard.cli._words import counted
from steelyard.cli.commands.scoring._score import ScoreOptions
from steelyard.cli.scoring._input import count_lines, open_input
from steelyard.cli.scoring._judges import JudgeChoice
from steelyard.cli.scoring._prices import price_words
from steelyard.cli.scoring._summary import Tally, show
from steelyard.cli.scoring._thresholds import missed, parse_thresholds
from steelyard.engine import check_names, evaluate_each
from steelyard.errors import ConfigurationError
from steelyard.metrics import Metric, default_metrics, metrics_named
from steelyard.questions import Embedder, Judge
from steelyard.scores import Evaluation, evaluation_to_json

_STDOUT = frozenset({"-", "/dev/stdout", "/dev/fd/1"})
_MOST_NAMED = 20
_INTERRUPTED = 130
# So many failures in a row are not the records' fault; each further one would be waited and paid for.
_HOPELESS = 20


def run(job: ScoreOptions, choice: JudgeChoice) -> int:
    """Score, write, sum up; returns the exit status."""
    console = Console(stderr=True)
    # First of all: a wrong option is told before the input is opened.
    judge, embedder = choice.build(), choice.build_embedder()
    suite = suite_of(listed(job.metrics), judge)
    bars = parse_thresholds(job.fail_under or (), known=[metric.name for metric in suite])
    tally, bad = Tally(), BadLines(console)
    started = time.monotonic()
    stopped = False
    # Results on the same terminal would be drawn over.
    shared = job.out in _STDOUT and sys.stdout.isatty()
    bar = progress(console, "Scoring", total=count_lines(job.source), hidden=shared)
    with open_input(job.source) as lines, _writing(job) as write, bar as move:

        def done(evaluation: Evaluation) -> bool:
            tally.add(evaluation)
            write(evaluation)
            move(advance=1)
            return not _hopeless(tally)

        try:
            asyncio.run(_score(job, lines, bad, judge=judge, embedder=embedder, suite=suite, done=done))
        except KeyboardInterrupt:
            stopped = True
    title = f"from {job.source_name}, scored in {time.monotonic() - started:.1f} s"
    show(console, tally, title=title, price=_price(choice, tally))
    if stopped:
        console.print("interrupted; the records above are what was scored", style="red")
        return _INTERRUPTED
    faults = _faults(tally, bad, missed(bars, tally.metrics), job.source_name)
    for fault in faults:
        console.print(fault, style="red", markup=False, highlight=False)
    return 1 if faults else 0


def _price(judge: JudgeChoice, tally: Tally) -> str:
    """What the run cost, where tokens of one model were counted and its price is known."""
    several = judge.extractor or judge.embedder
    return "" if several or tally.sums.usage.cost is not None else price_words(judge, tally.sums.usage)


def suite_of(names: tuple[str, ...], judge: Judge) -> list[Metric]:
    """The metrics asked for, each once; the judge's default suite where none are.

    Raises:
        ConfigurationError: If a name is unknown.
    """
    chosen = metrics_named(list(names), judge) if names else default_metrics(judge)
    suite = list({metric.name: metric for metric in chosen}.values())
    check_names(suite)
    return suite


async def _score(
    job: ScoreOptions,
    lines: BinaryIO,
    bad: BadLines,
    *,
    judge: Judge,
    embedder: Embedder,
    suite: list[Metric],
    done: Callable[[Evaluation], bool],
) -> None:
    each = evaluate_each(
        read_records(lines, bad=bad),
        metrics=suite,
        judge=judge,
        embedder=embedder,
        fuse=job.fuse.value,
        concurrency=job.concurrency,
        deadline=job.deadline,
    )
    try:
        async with aclosing(each):
            async for evaluation in each:
                if not done(evaluation):
                    break
    finally:
        await judge.aclose()
        await embedder.aclose()


def _hopeless(tally: Tally) -> bool:
    """Whether to stop: a wrong key or a server that is down would fail the rest as well."""
    return tally.sums.records >= _HOPELESS and not any(
        summary.scored or not summary.failed for summary in tally.metrics
    )


class BadLines:
    """Names bad lines as they are met, up to a number, and counts them all."""

    def __init__(self, console: Console) -> None:
        self.count = 0
        self._console = console

    def __call__(self, number: int, why: str) -> None:
        """Take note of one."""
        self.count += 1
        if self.count <= _MOST_NAMED:
            message = printable(f"line {number}: {why}")
        elif self.count == _MOST_NAMED + 1:
            message = "more bad lines are counted, not named"
        else:
            return
        self._console.print(message, style="red", markup=False, highlight=False, soft_wrap=True)


def _faults(tally: Tally, bad: BadLines, missed: list[str], source: str) -> list[str]:
    """Sentences for everything that makes the exit status 1."""
    faults = [f"{counted(bad.count, 'bad line')} in {source}"] if bad.count else []
    if not tally.sums.records:
        faults.append(f"no records in {source}")
    if _hopeless(tally):
        faults.append(f"stopped: the judge answered nothing for the first {_HOPELESS} records")
    for summary in tally.nothing_worked:
        failed = counted(sum(summary.failed.values()), "record")
        faults.append(f"{summary.metric} failed on {failed} and has no value")
    return faults + missed


@contextmanager
def _writing(job: ScoreOptions) -> Iterator[Callable[[Evaluation], None]]:
    """A function that writes one Evaluation to OUT. The record stays out of it: IN has it."""
    if not job.out:
        yield lambda _: None
    elif job.out in _STDOUT:
        yield lambda evaluation: _put(sys.stdout.buffer, evaluation)
    else:
        with _open_output(job.out, job.source) as file:
            yield lambda evaluation: _put(file, evaluation)


def _open_output(path: str, source: str) -> BinaryIO:
    # Compared as files: two paths may lead to one, and writing would empty it first.
    if os.path.exists(path) and os.path.exists(source) and os.path.samefile(path, source):
        raise ConfigurationError(f"--out {path!r} is the input; name another file")
    try:
        return open(path, "wb")
    except OSError as error:
        raise ConfigurationError(f"cannot write {path!r}: {os.strerror(error.errno or 0)}") from None


def _put(file: BinaryIO, evaluation: Evaluation) -> None:
    file.write(escaped(evaluation_to_json(evaluation.replace(record=None))).encode() + b"\n")
    # Each line at once, so that a run which is stopped leaves all that was paid for.
    file.flush()
