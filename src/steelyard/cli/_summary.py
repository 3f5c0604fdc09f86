"""What scoring a file comes to, for a person who wants to do something about it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from steelyard.cli._words import amount, counted, reason_of, shorten, worst_verdict
from steelyard.engine import MetricSummary, Summarizer
from steelyard.scores import Evaluation, Provenance, Score, Usage

__all__ = ["Tally", "show"]

_WORST = 3
_FULL = 6


@dataclass(slots=True)
class _Moments:
    """Running sums of one metric's values, each weighted by 1 / its inclusion probability."""

    number: int = 0
    weight: float = 0.0
    value: float = 0.0
    square: float = 0.0
    square_value: float = 0.0
    square_value_value: float = 0.0

    def add(self, value: float, weight: float) -> None:
        self.number += 1
        self.weight += weight
        self.value += weight * value
        self.square += weight * weight
        self.square_value += weight * weight * value
        self.square_value_value += weight * weight * value * value

    @property
    def margin(self) -> float | None:
        """Half the width of the 95 % interval of the weighted (Hajek) mean.

        Linearised variance, Särndal, Swensson & Wretman, Model Assisted Survey Sampling (1992), result 5.8.1,
        with n / (n - 1); by the normal approximation.
        """
        if self.number < 2:
            return None
        mean = self.value / self.weight
        spread = self.square_value_value - 2 * mean * self.square_value + mean * mean * self.square
        correction = self.number / (self.number - 1)
        return 1.96 * math.sqrt(max(spread, 0.0) * correction) / self.weight


class Tally:
    """Adds up Evaluations in bounded memory: the engine's sums, how they spread, and how they were made."""

    def __init__(self) -> None:
        self.sums = Summarizer(worst=_WORST)
        self.makings: Counter[str] = Counter()
        self.readings: dict[str, str] = {}
        self._moments: defaultdict[str, _Moments] = defaultdict(_Moments)

    def add(self, evaluation: Evaluation) -> None:
        """Take one into account."""
        self.sums.add(evaluation)
        self.makings.update({_making(score.provenance) for score in evaluation.scores if score.provenance})
        for score in evaluation.scores:
            if score.reading:
                self.readings.setdefault(score.metric, score.reading)
            if score.value is not None:
                self._moments[score.metric].add(score.value, 1 / score.inclusion_probability)

    @property
    def metrics(self) -> tuple[MetricSummary, ...]:
        """One summary per metric."""
        return self.sums.metrics()

    @property
    def nothing_worked(self) -> list[MetricSummary]:
        """Metrics that failed on some records and succeeded on none."""
        return [summary for summary in self.metrics if summary.failed and not summary.scored]

    def margin(self, metric: str) -> float | None:
        """Half the width of the 95 % interval of a metric's mean."""
        return self._moments[metric].margin


def show(console: Console, tally: Tally, *, title: str) -> None:
    """Print the whole summary.

    Args:
        console: Where to.
        tally: What was found.
        title: The first line, after the number of records.
    """
    console.print(Text(f"{counted(tally.sums.records, 'record')} {title}", style="bold"))
    if not tally.sums.records:
        return
    parts: Iterable[RenderableType | None] = (
        _table(tally),
        _missing("Not applicable", {s.metric: (s.not_applicable, s) for s in tally.metrics}, style="dim"),
        _missing("Failed", {s.metric: (s.failed, s) for s in tally.metrics}, style="red"),
        _worst(tally, console.width),
        _made(tally),
    )
    console.print(Group(*(part for part in parts if part is not None)))


def _table(tally: Tally) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    table.add_column("\nMetric", no_wrap=True)
    for heading in ("\nMean", "95 %\n±", "\nPass", "\nFail", "\nBar", "Not\nappl.", "\nFailed"):
        table.add_column(heading, justify="right", no_wrap=True)
    for summary in tally.metrics:
        table.add_row(*_row(summary, tally.margin(summary.metric)))
    return table


def _row(summary: MetricSummary, margin: float | None) -> list[Text]:
    judged = summary.threshold is not None and summary.scored > 0
    sign = "≥" if summary.direction == "higher" else "≤"
    failed = sum(summary.failed.values())
    return [
        Text(summary.metric),
        Text(amount(summary.mean), style="bold"),
        Text(amount(margin), style="dim"),
        Text(f"{summary.passed:,}" if judged else "-"),
        Text(f"{summary.below:,}" if judged else "-", style="yellow" if judged and summary.below else ""),
        Text("-" if summary.threshold is None else f"{sign} {summary.threshold:g}", style="dim"),
        Text(f"{sum(summary.not_applicable.values()):,}", style="dim"),
        Text(f"{failed:,}", style="red" if failed else "dim"),
    ]


def _missing(
    title: str, counts: Mapping[str, tuple[Mapping[str, int], MetricSummary]], *, style: str
) -> Table | None:
    """Every reason once, with the metrics it befell."""
    reasons: dict[str, list[str]] = {}
    for metric, (causes, summary) in counts.items():
        for cause, number in causes.items():
            reason = summary.explanations.get(cause) or cause
            reasons.setdefault(reason if cause in reason else f"{reason} ({cause})", []).append(
                f"{metric} {number:,}"
            )
    if not reasons:
        return None
    table = _list(title, style)
    for reason, metrics in reasons.items():
        table.add_row(Text(f"{reason}: {', '.join(metrics)}", style=style))
    return table


def _worst(tally: Tally, width: int) -> Table | None:
    """The records below the bar, worst first, each with what weighs most against it."""
    below = [summary for summary in tally.metrics if summary.below]
    most = _WORST if len(below) <= _FULL else 1
    table = _list("Worst records", "bold")
    for summary in below:
        table.add_row(Text(summary.metric))
        for record_id, score in [pair for pair in summary.worst if pair[1].passed is False][:most]:
            table.add_row(_finding(record_id, score, width - 4))
    return table if below else None


def _finding(record_id: str, score: Score, width: int) -> Text:
    name = shorten(record_id, 24)
    text = Text.assemble("  ", (amount(score.value), "yellow"), "  ", (name, "cyan"), "  ")
    verdict = worst_verdict(score)
    if verdict is None:
        text.append(shorten(score.explanation, max(width - text.cell_len, 20)))
        return text
    reason = shorten(reason_of(verdict), max(width // 2, 20))
    room = width - text.cell_len - len(reason) - 4
    text.append(f'"{shorten(verdict.about, max(room, 20))}" ')
    text.append(reason, style="dim")
    return text


def _made(tally: Tally) -> Table:
    """How the numbers were made and what they cost: without it no two of them can be compared."""
    table = _list("How", "bold")
    for making, number in tally.makings.most_common(_FULL):
        table.add_row(Text(making if len(tally.makings) == 1 else f"{making}: {counted(number, 'record')}"))
    if len(tally.makings) > 1:
        table.add_row(Text("means over scores made in different ways say little", style="yellow"))
    for metric, reading in list(tally.readings.items())[:_FULL]:
        table.add_row(Text(f"{metric}: {reading}", style="dim"))
    table.add_row(Text(_cost(tally.sums.usage)))
    return table


def _making(made: Provenance) -> str:
    calibrated = "" if made.calibrated else " (not calibrated against people)"
    prompts = f", prompts {made.prompt_version}" if made.prompt_version else ""
    return f"judge {made.judge}{calibrated}{prompts}, embedder {made.embedder or '-'}, fuse {made.fuse}"


def _cost(usage: Usage) -> str:
    tokens = usage.prompt_tokens + usage.completion_tokens
    parts = [counted(usage.requests, "request"), counted(usage.questions, "question")]
    if tokens:
        parts.append(f"{usage.prompt_tokens:,} tokens in, {usage.completion_tokens:,} out")
    if usage.reasked:
        parts.append(f"{usage.reasked:,} asked twice")
    if usage.cost is not None:
        parts.append(f"${usage.cost:.4f}")
    return ", ".join(parts)


def _list(title: str, style: str) -> Table:
    table = Table(box=None, show_header=True, pad_edge=False, padding=(0, 0, 0, 2))
    table.add_column(Text(title, style=style), overflow="fold")
    return table
