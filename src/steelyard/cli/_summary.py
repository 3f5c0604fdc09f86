"""What scoring a file comes to, for a person who wants to do something about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from steelyard._internal.text import printable, shorten
from steelyard.cli._say import amount, counted
from steelyard.cli._terminal import figures_table
from steelyard.report import explain_verdict
from steelyard.scores import Evaluation, Provenance, Score, Usage, Verdict
from steelyard.stats import Estimate, MetricSummary, Summarizer

_WORST = 3
_FULL = 6
_ID = 24


class Tally:
    """Adds up Evaluations in bounded memory: what they come to, and how they were made."""

    def __init__(self) -> None:
        self.sums = Summarizer(worst=_WORST)
        self.makings: Counter[str] = Counter()
        self.readings: dict[str, str] = {}

    def add(self, evaluation: Evaluation) -> None:
        """Take one into account."""
        self.sums.add(evaluation)
        self.makings.update({_making(score.provenance) for score in evaluation.scores if score.provenance})
        for score in evaluation.scores:
            if score.options:
                self.readings.setdefault(score.metric, score.options)

    @property
    def metrics(self) -> tuple[MetricSummary, ...]:
        """One summary per metric."""
        return self.sums.metrics()

    @property
    def nothing_worked(self) -> list[MetricSummary]:
        """Metrics that failed on some records and succeeded on none."""
        return [summary for summary in self.metrics if summary.failed and not summary.scored]


def show(console: Console, tally: Tally, *, title: str, price: str = "") -> None:
    """Print the whole summary; `title` follows the number of records, `price` is in words."""
    console.print(Text(f"{counted(tally.sums.records, 'record')} {title}", style="bold"))
    if not tally.sums.records:
        return
    console.print(_table(tally))
    _section(console, "Not applicable", _reasons(tally.metrics, "not_applicable"), style="dim")
    _section(console, "Failed", _reasons(tally.metrics, "failed"), style="red")
    _section(console, "Worst records", _worst(tally, console.width - 2))
    _section(console, "How these numbers were made", _made(tally, price))


def _section(console: Console, title: str, rows: Sequence[str | Text], *, style: str = "") -> None:
    """A heading and indented rows, or nothing where there are no rows."""
    if not rows:
        return
    console.print()
    console.print(Text(title, style=f"bold {style}"))
    for row in rows:
        text = row if isinstance(row, Text) else Text(printable(row), style=style)
        for line in text.wrap(console, console.width - 2):
            console.print(Text.assemble("  ", line))


def _table(tally: Tally) -> Table:
    headings = ("\nMean", "95 %\ninterval", "\nPass", "\nFail", "Pass\nif", "Not\nappl.", "\nFailed")
    table = figures_table("\nMetric", *headings, pad=1)
    for summary in tally.metrics:
        table.add_row(*_row(summary))
    return table


def _row(summary: MetricSummary) -> list[Text]:
    judged = summary.threshold is not None and summary.scored > 0
    sign = "≥" if summary.direction == "higher" else "≤"
    failed = sum(summary.failed.values())
    return [
        Text(summary.metric),
        Text(amount(summary.mean), style="bold"),
        Text(_interval(summary.estimate), style="dim"),
        Text(f"{summary.passed:,}" if judged else "-"),
        Text(f"{summary.below:,}" if judged else "-", style="yellow" if judged and summary.below else ""),
        Text("-" if summary.threshold is None else f"{sign} {summary.threshold:g}", style="dim"),
        Text(f"{sum(summary.not_applicable.values()):,}", style="dim"),
        Text(f"{failed:,}", style="red" if failed else "dim"),
    ]


def _interval(found: Estimate | None) -> str:
    """Both ends: an interval is seldom symmetric, and near 0 and 1 it never is."""
    return "-" if found is None else f"{amount(found.low)}–{amount(found.high)}"


def _reasons(summaries: Iterable[MetricSummary], status: Literal["not_applicable", "failed"]) -> list[str]:
    """Every reason once, with the metrics it befell."""
    reasons: dict[str, list[str]] = {}
    for summary in summaries:
        causes = summary.failed if status == "failed" else summary.not_applicable
        for cause, number in causes.items():
            reason = summary.explanations.get(cause) or cause
            named = reason if cause in reason else f"{reason} ({cause})"
            reasons.setdefault(named, []).append(f"{summary.metric} {number:,}")
    return [f"{reason}: {', '.join(metrics)}" for reason, metrics in reasons.items()]


def _worst(tally: Tally, width: int) -> list[Text]:
    """The records below the bar, worst first, each with what weighs most against it."""
    below = [summary for summary in tally.metrics if summary.below]
    # With many metrics one record each still fits onto a screen.
    most = _WORST if len(below) <= _FULL else 1
    rows = []
    for summary in below:
        rows.append(Text(summary.metric))
        shown = [pair for pair in summary.worst if pair[1].passed is False][:most]
        rows += [row for record_id, score in shown for row in _finding(record_id, score, width)]
    return rows


def _finding(name: str, score: Score, width: int) -> list[Text]:
    """A bad record in two lines: value, name and what was judged; then why."""
    head = Text.assemble(
        "  ", (amount(score.value), "yellow"), "  ", (shorten(name, max(_ID, width // 3)), "cyan"), "  "
    )
    room = max(width - head.cell_len, 20)
    verdict = worst_verdict(score)
    if verdict is None:
        return [head.append(shorten(score.explanation, room))]
    rows = [head.append(f'"{shorten(verdict.about, room - 2)}"')]
    if reason := explain_verdict(verdict):
        rows.append(Text(f"        {shorten(reason, width - 8)}", style="dim"))
    return rows


def _made(tally: Tally, price: str) -> list[Text]:
    """How the numbers were made and what they cost: without it no two of them can be compared."""
    mixed = len(tally.makings) > 1
    rows = [
        Text(f"{making}: {counted(number, 'record')}" if mixed else making)
        for making, number in tally.makings.most_common(_FULL)
    ]
    if mixed:
        rows.append(Text("means over scores made in different ways say little", style="yellow"))
    readings = [f"{metric}: {reading}" for metric, reading in tally.readings.items()]
    rows += [Text(reading, style="dim") for reading in readings[:_FULL]]
    if len(readings) > _FULL:
        rows.append(Text(f"and {len(readings) - _FULL} more readings; each score has its own", style="dim"))
    return [*rows, Text(_cost(tally.sums.usage)), *([Text(price)] if price else [])]


def _making(made: Provenance) -> str:
    calibrated = "" if made.calibrated else " (not calibrated against people)"
    prompts = f", prompts {made.prompt_version}" if made.prompt_version else ""
    return f"judge {made.judge}{calibrated}{prompts}, embedder {made.embedder or '-'}, fuse {made.fuse}"


def _cost(usage: Usage) -> str:
    tokens = usage.prompt_tokens + usage.completion_tokens
    parts = [counted(usage.requests, "judge and embedder call"), counted(usage.questions, "question")]
    if tokens:
        parts.append(f"{usage.prompt_tokens:,} tokens in, {usage.completion_tokens:,} out")
    if usage.reasked:
        parts.append(f"{usage.reasked:,} asked twice")
    if usage.cost is not None:
        parts.append(f"${usage.cost:.4f}")
    return ", ".join(parts)


def worst_verdict(score: Score) -> Verdict | None:
    """The verdict that weighs most against the record; None where none does.

    Of yes/no verdicts it is the one the judge was surest of; of ratings and similarities the lowest.
    """
    against = [verdict for verdict in score.verdicts if verdict.good is False]
    if against:
        return min(against, key=_probability_of_good)
    numbers = [
        v for v in score.verdicts if isinstance(v.value, float | int) and not isinstance(v.value, bool)
    ]
    return min(numbers, key=lambda verdict: float(verdict.value or 0), default=None)


def _probability_of_good(verdict: Verdict) -> float:
    return 0.5 if verdict.probability_of_good is None else verdict.probability_of_good
