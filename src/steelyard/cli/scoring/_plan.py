"""`steelyard score --plan`: what a run would take, before a single request is sent."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from rich.console import Console
from rich.table import Table
from rich.text import Text

from steelyard.backfill import read_records
from steelyard.cli._options import listed
from steelyard.cli._terminal import figures_table
from steelyard.cli._words import counted
from steelyard.cli.commands.scoring._score import ScoreOptions
from steelyard.cli.scoring._dry_run import ASSUMED, DryRunJudge
from steelyard.cli.scoring._input import count_lines, open_input
from steelyard.cli.scoring._judges import JudgeChoice
from steelyard.cli.scoring._prices import price_of
from steelyard.cli.scoring._score_file import BadLines, suite_of
from steelyard.engine import evaluate
from steelyard.errors import SteelyardError
from steelyard.record import Record
from steelyard.scores import Usage

# Read once and scaled up: making the requests of a large file would take as long as sending them.
_SAMPLE = 100


def estimate(job: ScoreOptions, choice: JudgeChoice) -> int:
    """Judge the first records in a dry run and print what they would take; returns the exit status."""
    console = Console(highlight=False)
    if choice.is_here:
        console.print("This judge asks nobody: no requests, no tokens, no price.")
        return 0
    bad = BadLines(Console(stderr=True))
    with open_input(job.source) as lines:
        records = list(islice(read_records(lines, bad=bad), _SAMPLE))
    if not records:
        Console(stderr=True).print(f"no records in {job.source_name}", style="red", markup=False)
        return 1
    judge = DryRunJudge(choice.remote)
    suite = suite_of(listed(job.metrics), judge)
    embedder = judge.embedder(choice.embedder) if choice.embedder else None
    results = evaluate(
        records, metrics=suite, judge=judge, embedder=embedder, fuse=job.fuse.value, progress=False
    )
    for summary in results.summary:
        if summary.failed:
            raise SteelyardError(
                f"no plan: {summary.metric}: {summary.explanations[next(iter(summary.failed))]}"
            )
    price, sources = price_of_all(judge.usage, choice.base_url)
    total = _total(job.source, records)
    console.print(_headline(job, judge.name, len(records), total, len(suite)))
    console.print(_table(sum(judge.usage.values(), Usage()), price, len(records), total))
    for line in (*(f"assumed: {what}" for what in ASSUMED), *sources):
        console.print(Text(line, style="dim"))
    return 1 if bad.count else 0


def price_of_all(usage: Mapping[str, Usage], base_url: str | None) -> tuple[float | None, list[str]]:
    """What all models cost together, if all prices are known, and where each comes from."""
    found = [price_of(spent, model=model, base_url=base_url) for model, spent in usage.items()]
    known = [dollars for dollars, _ in found if dollars is not None]
    return sum(known) if len(known) == len(found) else None, list(dict.fromkeys(line for _, line in found))


def _total(source: str, records: list[Record]) -> int | None:
    """How many records the file has: as many as were read, or as it has lines; unknown for a pipe."""
    return len(records) if len(records) < _SAMPLE else count_lines(source)


def _headline(job: ScoreOptions, judge: str, sampled: int, total: int | None, metrics: int) -> Text:
    whole = (
        f"the first {sampled} of {total or 'many'} records"
        if sampled != total
        else counted(sampled, "record")
    )
    asked = f"{counted(metrics, 'metric')}, {judge}, fuse {job.fuse}"
    return Text(f"{whole} of {job.source_name}, {asked}: nothing was sent", style="bold")


def _table(usage: Usage, price: float | None, sampled: int, total: int | None) -> Table:
    table = figures_table("Estimate", "Requests", "Tokens in", "Tokens out", "Price")
    scales = [("per record", 1 / sampled)]
    if total:
        scales.append((f"all {total:,}", total / sampled))
    for name, scale in scales:
        table.add_row(
            name,
            f"{usage.requests * scale:,.1f}" if scale < 1 else f"{usage.requests * scale:,.0f}",
            f"{usage.prompt_tokens * scale:,.0f}",
            f"{usage.completion_tokens * scale:,.0f}",
            "-"
            if price is None
            else f"${price * scale:,.4f}"
            if price * scale < 1
            else f"${price * scale:,.2f}",
        )
    return table
