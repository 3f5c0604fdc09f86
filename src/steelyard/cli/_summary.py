"""What scoring a file comes to, for a person who wants to do something about it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from rich.text import Text

from steelyard._internal.text import counted, shorten
from steelyard.cli._say import amount
from steelyard.cli._terminal import Terminal, figures_table
from steelyard.report import explain_verdict
from steelyard.report.terminal import section
from steelyard.scores import Evaluation, Score, Usage, Verdict
from steelyard.stats import MetricSummary, Summarizer

_WORST = 3
_FULL = 6
_ID = 24


class Tally:
    """Adds up Evaluations in bounded memory: what they come to, and how they were made."""

    def __init__(self) -> None:
        self.sums = Summarizer(worst=_WORST)
        self.makings: dict[str, None] = {}

    def add(self, evaluation: Evaluation) -> None:
        self.sums.add(evaluation)
        for score in evaluation.scores:
            if made := score.provenance:
                calibrated = "" if made.calibrated else " (not calibrated against people)"
                prompts = f", prompts {made.prompt_version}" if made.prompt_version else ""
                how = f"embedder {made.embedder or '-'}, fuse {made.fuse}"
                self.makings[f"judge {made.judge}{calibrated}{prompts}, {how}"] = None
            if score.options:
                self.makings[f"{score.metric}: {score.options}"] = None

    @property
    def metrics(self) -> tuple[MetricSummary, ...]:
        return self.sums.metrics()


def show(console: Terminal, tally: Tally, *, title: str, price: str = "") -> None:
    """Print the whole summary; `title` follows the number of records, `price` is in words."""
    console.print(Text(f"{counted(tally.sums.records, 'record')} {title}", style="bold"))
    if not tally.sums.records:
        return
    headings = ("\nMean", "95 %\ninterval", "\nPass", "\nFail", "Pass\nif", "Not\nappl.", "\nFailed")
    table = figures_table("\nMetric", *headings, pad=1)
    for summary in tally.metrics:
        table.add_row(*_row(summary))
    console.print(table)
    section(console, "Not applicable", _reasons(tally.metrics, "not_applicable"), style="dim")
    section(console, "Failed", _reasons(tally.metrics, "failed"), style="red")
    section(console, "Worst records", _worst(tally, console.width - 2))
    makings = sorted(tally.makings, key=lambda line: not line.startswith("judge "))
    made = [*makings, _cost(tally.sums.usage), *([price] if price else [])]
    section(console, "How these numbers were made", made)


def _row(summary: MetricSummary) -> list[Text]:
    judged = summary.threshold is not None and summary.scored > 0
    sign = "≥" if summary.direction == "higher" else "≤"
    failed, found = sum(summary.failed.values()), summary.estimate
    # Both ends: an interval is seldom symmetric, and near 0 and 1 it never is.
    interval = "-" if found is None else f"{amount(found.low)}–{amount(found.high)}"
    return [
        Text(summary.metric),
        Text(amount(summary.mean), style="bold"),
        Text(interval, style="dim"),
        Text(f"{summary.passed:,}" if judged else "-"),
        Text(f"{summary.below:,}" if judged else "-", style="yellow" if judged and summary.below else ""),
        Text("-" if summary.threshold is None else f"{sign} {summary.threshold:g}", style="dim"),
        Text(f"{sum(summary.not_applicable.values()):,}", style="dim"),
        Text(f"{failed:,}", style="red" if failed else "dim"),
    ]


def _reasons(summaries: Iterable[MetricSummary], status: Literal["not_applicable", "failed"]) -> list[str]:
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
        sure = [(one.probability_of_good, one) for one in against]
        return min(sure, key=lambda pair: 0.5 if pair[0] is None else pair[0])[1]
    rated = [one for one in score.verdicts if not isinstance(one.value, str | bool | None)]
    return min(rated, key=lambda one: float(one.value or 0), default=None)
