"""`steelyard score`: score a file of records, write one Evaluation a line, and say what it comes to."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

from typer import Argument, Option

from steelyard._internal.files import owners_alone
from steelyard._internal.text import counted, escaped, printable
from steelyard.backfill import Columns, Unread, read_records
from steelyard.cli._judges import FREE, CostEstimate, JudgeChoice, JudgeOptions, price_words, suite_of
from steelyard.cli._options import COLUMNS, METRICS, listed, numbers_by_name, open_input, takes
from steelyard.cli._summary import Tally, show
from steelyard.cli._terminal import Terminal, progress, say_unread
from steelyard.engine import evaluate, evaluate_each
from steelyard.errors import ConfigurationError, SteelyardError
from steelyard.judge.dry_run import ASSUMED
from steelyard.metrics import Metric
from steelyard.questions import Embedder, Fuse, Judge
from steelyard.record import Record
from steelyard.scores import Evaluation, evaluation_to_json
from steelyard.stats import MetricSummary


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreOptions(JudgeOptions):
    """One call of `steelyard score`, as it was typed."""

    source: str = Argument(
        ..., metavar="IN.jsonl", help="Records, one a line or in a list; `-` for standard input."
    )
    columns: str = COLUMNS
    metrics: str = METRICS
    extractor: str = Option(
        "", metavar="M", help="Chat model that extracts claims for `decisions`; without, they are sentences."
    )
    embedder: str = Option(
        "", metavar="M", help="Embedding model on the judge's server; without, static word vectors."
    )
    fuse: Fuse = Option(
        "view", help="Questions share requests by what they may see (`view`), all at once (`record`), or not."
    )
    out: str = Option(
        "",
        "--out",
        "-o",
        metavar="OUT.jsonl",
        help="One evaluation a line, in the order of IN, as they come.",
    )
    fail_under: list[str] | None = Option(
        None, metavar="METRIC=X", help="Exit with 1 if a mean is worse than this; repeatable."
    )
    concurrency: int = Option(16, min=1, help="Records, and requests, in flight.")
    plan: bool = Option(False, "--plan", help="Ask nothing: estimate requests, tokens, price.")

    @property
    def source_name(self) -> str:
        return "standard input" if self.source == "-" else self.source


@takes(ScoreOptions)
def score(options: ScoreOptions) -> int:
    """Score the records of a file.

    A record is a JSON object with `question`, `contexts` (strings, or objects with `text`, `id`, `score`),
    `answer`, and, if known, `id`, `reference` and `reference_contexts`. The names of Ragas
    (`user_input`, `retrieved_contexts`, `response`, `ground_truth`), of DeepEval, and `query`, `documents`,
    `output` work too; `--map` names others.

    The summary and the progress go to standard error, so `--out -` can be piped.

    Exit status: 0 fine; 1 a bad line, a missed `--fail-under`, or a metric that failed on every record;
    2 wrong usage.

    **Examples**

    - `steelyard score turns.jsonl`
    - `steelyard score log.jsonl --map question=user_query,contexts=chunks,answer=reply`
    - `steelyard score turns.jsonl --metrics faithfulness,context_recall --fail-under faithfulness=0.8`
    - `steelyard score turns.jsonl --judge openai:gpt-4o-mini --metrics all --plan`
    - `steelyard score turns.jsonl --judge openai:qwen3 --base-url http://127.0.0.1:8000/v1 --out -`
    """
    if options.source.lower().endswith(_TABLES):
        raise ConfigurationError(
            f"{options.source!r} is a table; use `steelyard backfill`, which scores tables"
        )
    choice = options.choice(
        extractor=options.extractor, embedder=options.embedder, concurrency=options.concurrency
    )
    return _plan(options, choice) if options.plan else _score(options, choice)


# Read once and scaled up: making the requests of a large file would take as long as sending them.
_SAMPLE = 100
_TABLES = (".csv", ".tsv", ".parquet")
_STDOUT = frozenset({"-", "/dev/stdout", "/dev/fd/1"})
_MOST_NAMED = 20
_INTERRUPTED = 130
# So many failures in a row are not the records' fault; each further one would be waited and paid for.
_HOPELESS = 20


def _score(job: ScoreOptions, choice: JudgeChoice) -> int:
    console = Terminal(stderr=True)
    # First of all: a wrong option is told before the input is opened.
    judge, embedder = choice.build(), choice.build_embedder()
    suite = suite_of(listed(job.metrics), judge)
    bars = _thresholds(job.fail_under or (), known=[metric.name for metric in suite])
    tally, bad, unread = Tally(), _BadLines(console), Unread()
    started = time.monotonic()
    stopped = False
    # Results on the same terminal would be drawn over.
    shared = job.out in _STDOUT and sys.stdout.isatty()
    bar = progress(console, "Scoring", total=_count_lines(job.source), hidden=shared)
    with open_input(job.source) as lines, _writing(job) as write, bar as move:

        def done(evaluation: Evaluation) -> bool:
            tally.add(evaluation)
            write(evaluation)
            move(advance=1)
            return not _hopeless(tally)

        records = read_records(lines, bad=bad, columns=Columns.parse(job.columns), unread=unread)
        try:
            asyncio.run(_evaluate(job, records, judge=judge, embedder=embedder, suite=suite, done=done))
        except KeyboardInterrupt:
            stopped = True
    title = f"from {job.source_name}, scored in {time.monotonic() - started:.1f} s"
    show(console, tally, title=title, price=_price(choice, tally))
    say_unread(console, unread)
    if stopped:
        console.say("interrupted; the records above are what was scored", "red")
        return _INTERRUPTED
    faults = _faults(tally, bad, _missed(bars, tally.metrics), job.source_name)
    for fault in faults:
        console.say(fault, "red")
    return 1 if faults else 0


def _plan(job: ScoreOptions, choice: JudgeChoice) -> int:
    """Judge the first records in a dry run and print what they would take; returns the exit status."""
    console = Terminal()
    if choice.is_here:
        console.print(FREE)
        return 0
    bad = _BadLines(Terminal(stderr=True))
    with open_input(job.source) as lines:
        records = list(islice(read_records(lines, bad=bad, columns=Columns.parse(job.columns)), _SAMPLE))
    if not records:
        Terminal(stderr=True).say(f"no records in {job.source_name}", "red")
        return 1
    judge = choice.dry_run()
    suite = suite_of(listed(job.metrics), judge)
    embedder = judge.embedder(choice.embedder) if choice.embedder else None
    results = evaluate(records, metrics=suite, judge=judge, embedder=embedder, fuse=job.fuse, progress=False)
    for summary in results.summary:
        if summary.failed:
            raise SteelyardError(
                f"no plan: {summary.metric}: {summary.explanations[next(iter(summary.failed))]}"
            )
    asked = f"{counted(len(suite), 'metric')}, {judge.name}, fuse {job.fuse}: nothing was sent"
    # As many as were read, or as the file has lines; unknown for a pipe.
    total = len(records) if len(records) < _SAMPLE else _count_lines(job.source)
    _show_plan(console, CostEstimate.of(judge, choice), f"{job.source_name}, {asked}", len(records), total)
    return 1 if bad.count else 0


def _show_plan(console: Terminal, estimate: CostEstimate, what: str, sampled: int, total: int | None) -> None:
    of = (
        counted(sampled, "record")
        if total == sampled
        else f"the first {sampled} of {total or 'many'} records"
    )
    console.say(f"{of} of {what}", "bold")
    console.say(f"per record: {estimate.words(1 / sampled)}")
    if total:
        console.say(f"all {total:,}: {estimate.words(total / sampled)}")
    for line in (*(f"assumed: {what}" for what in ASSUMED), *estimate.sources):
        console.say(line, "dim")


def _price(judge: JudgeChoice, tally: Tally) -> str:
    """What the run cost, where tokens of one model were counted and its price is known."""
    return "" if judge.extractor or judge.embedder else price_words(judge, tally.sums.usage)


async def _evaluate(
    job: ScoreOptions,
    records: Iterable[Record],
    *,
    judge: Judge,
    embedder: Embedder,
    suite: list[Metric],
    done: Callable[[Evaluation], bool],
) -> None:
    each = evaluate_each(
        records,
        metrics=suite,
        judge=judge,
        embedder=embedder,
        fuse=job.fuse,
        concurrency=job.concurrency,
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


class _BadLines:
    """Names bad lines as they are met, up to a number, and counts them all."""

    def __init__(self, console: Terminal) -> None:
        self.count = 0
        self._console = console

    def __call__(self, number: int, why: str) -> None:
        self.count += 1
        if self.count <= _MOST_NAMED:
            self._console.say(printable(f"line {number}: {why}"), "red")
        elif self.count == _MOST_NAMED + 1:
            self._console.say("more bad lines are counted, not named", "red")


def _faults(tally: Tally, bad: _BadLines, missed: list[str], source: str) -> list[str]:
    faults = [f"{counted(bad.count, 'bad line')} in {source}"] if bad.count else []
    if not tally.sums.records:
        faults.append(f"no records in {source}")
    if _hopeless(tally):
        faults.append(f"stopped: the judge answered nothing for the first {_HOPELESS} records")
    for summary in tally.metrics:
        if summary.scored or not summary.failed:
            continue
        failed = counted(sum(summary.failed.values()), "record")
        faults.append(f"{summary.metric} failed on {failed} and has no value")
    return faults + missed


@contextmanager
def _writing(job: ScoreOptions) -> Iterator[Callable[[Evaluation], None]]:
    """A function that writes one Evaluation to OUT. The record stays out of it: IN has it."""
    if not job.out:
        yield lambda _: None
        return
    with nullcontext(sys.stdout.buffer) if job.out in _STDOUT else _open_output(job.out, job.source) as file:

        def put(evaluation: Evaluation) -> None:
            file.write(escaped(evaluation_to_json(evaluation.replace(record=None))).encode() + b"\n")
            # Each line at once, so that a run which is stopped leaves all that was paid for.
            file.flush()

        yield put


def _open_output(path: str, source: str) -> BinaryIO:
    # Compared as files: two paths may lead to one, and writing would empty it first.
    if os.path.exists(path) and os.path.exists(source) and os.path.samefile(path, source):
        raise ConfigurationError(f"--out {path!r} is the input; name another file")
    try:
        return open(path, "wb", opener=owners_alone)
    except OSError as error:
        raise ConfigurationError(
            f"cannot write {path!r}: {os.strerror(error.errno or 0)}; "
            "name a file in a folder that can be written"
        ) from None


def _thresholds(given: Iterable[str], *, known: Sequence[str]) -> dict[str, float]:
    bars = numbers_by_name(given, option="--fail-under")
    for metric, bar in bars.items():
        if metric not in known:
            raise ConfigurationError(
                f"--fail-under {f'{metric}={bar:g}'!r}: scored are {', '.join(known)}; "
                "name one of these, or add it to --metrics"
            )
    return bars


def _missed(bars: Mapping[str, float], summaries: Iterable[MetricSummary]) -> list[str]:
    """A sentence for each bar that was not cleared; a metric without any value misses its bar."""
    means = {summary.metric: summary for summary in summaries}
    found = []
    for metric, bar in bars.items():
        summary = means.get(metric)
        if summary is None or summary.mean is None:
            found.append(f"{metric} has no value to hold against {bar:g}")
        elif summary.direction == "higher" and summary.mean < bar:
            found.append(f"{metric} {summary.mean:.4g} is under {bar:g}")
        elif summary.direction == "lower" and summary.mean > bar:
            found.append(f"{metric} {summary.mean:.4g} is over {bar:g} (lower is better)")
    return found


def _count_lines(path: str) -> int | None:
    """How many lines a regular file has, for a progress bar; None for a pipe, and for a list."""
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        if file.peek(1)[:1] == b"[":
            return None
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
