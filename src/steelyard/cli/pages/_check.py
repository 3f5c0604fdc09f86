"""The page of `steelyard judge check`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from steelyard._internal.text import printable
from steelyard.cli._terminal import figures_table
from steelyard.cli._words import counted
from steelyard.probing import Accuracy, Calibration, Change, JudgeCheck
from steelyard.stats import Estimate

_WEAK = 0.5
_CHANGES = (
    ("again", "asked again"),
    ("swapped", "order reversed"),
    ("longer", "longer wording"),
    ("fused_record", "fuse record"),
    ("fused_off", "fuse off"),
    ("injected", "injection"),
)

_LEGEND = (
    "both: pairs with both twins right. yes: share of yes among the verdicts. "
    "overlap, length: what word overlap and answer length get right by themselves, at their best threshold.\n"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """What there is to show."""

    check: JudgeCheck
    """The judge's figures."""
    baselines: tuple[JudgeCheck, ...]
    """Those of word overlap and answer length."""
    advice: tuple[str, ...]
    """What to take the judge for."""
    price: str
    """What the check cost, in words; empty where nothing."""


def show(console: Console, page: Page) -> None:
    """Print the page."""
    check = page.check
    own = "" if check.published else ", a set of your own"
    console.print(
        Text(f"{printable(check.judge)} (wording {printable(check.prompt_version)})", style="bold"),
        Text(
            f"{counted(check.n, 'probe')}, set {check.probes[:12]}{own}, in {check.seconds:.1f} s",
            style="dim",
        ),
    )
    console.print(_kinds(page))
    console.print(Text(_LEGEND, style="dim"))
    if check.again is not None:
        console.print(_changes(page))
    if check.calibration is not None:
        console.print(_reliability(check.calibration, page.baselines))
    for line in (*_causes(check), *_cost(page)):
        console.print(Text(line, style="dim"), soft_wrap=True)
    console.print(Text("\nWhat to take it for", style="bold"))
    for sentence in page.advice:
        console.print(Padding(Text(f"- {sentence}"), (0, 0, 0, 1)))


def _kinds(page: Page) -> Table:
    names = [_short(baseline) for baseline in page.baselines]
    table = figures_table("Right by kind", "n", "right", "95 %", "both", "yes", *names)
    for kind, figures in page.check.kinds.items():
        beside = [baseline.kinds[kind] for baseline in page.baselines]
        table.add_row(*_accuracy(kind.replace("_", " "), figures, beside))
        if kind == "language":
            for language, part in page.check.languages.items():
                beside = [baseline.languages[language] for baseline in page.baselines]
                table.add_row(*_accuracy(f"  {language}", part, beside), style="dim")
    table.add_section()
    overall = [baseline.overall for baseline in page.baselines]
    table.add_row(*_accuracy("all", page.check.overall, overall), style="bold")
    return table


def _accuracy(name: str, figures: Accuracy, beside: Sequence[Accuracy]) -> list[Text]:
    style = "red" if figures.right.value < _WEAK else "green" if figures.right.low > _WEAK else ""
    return [
        Text(printable(name) if not name.startswith(" ") else name),
        Text(str(figures.right.n)),
        Text(f"{figures.right.value:.2f}", style=style),
        Text(_interval(figures.right)),
        Text(f"{figures.pairs.value:.2f}"),
        Text(f"{figures.says_yes:.2f}"),
        *(Text(f"{other.right.value:.2f}", style="dim") for other in beside),
    ]


def _changes(page: Page) -> Table:
    names = [_short(baseline) for baseline in page.baselines]
    table = figures_table("Moved by", "n", "moved", "95 %", "to yes, no", "right", *names)
    for field, words in _CHANGES:
        change: Change | None = getattr(page.check, field)
        if change is None or change.moved is None:
            continue
        beside = [_moved(getattr(baseline, field)) for baseline in page.baselines]
        table.add_row(
            words,
            str(change.moved.n),
            _moved(change),
            _interval(change.moved),
            f"{change.to_yes}, {change.to_no}",
            f"{change.before.value:.2f}>{change.after.value:.2f}",
            *(Text(text, style="dim") for text in beside),
        )
    return table


def _short(baseline: JudgeCheck) -> str:
    """`overlap` of `word-overlap`: the heading has no room for more."""
    return baseline.judge.rpartition("-")[2]


def _moved(change: Change | None) -> str:
    return "-" if change is None or change.moved is None else f"{change.moved.value:.2f}"


def _interval(estimate: Estimate) -> str:
    return f"{estimate.low:.2f}-{estimate.high:.2f}"


def _reliability(calibration: Calibration, baselines: Sequence[JudgeCheck]) -> Table:
    beside = [
        f"{_short(baseline)} {baseline.calibration.error:.2f}"
        for baseline in baselines
        if baseline.calibration is not None
    ]
    table = figures_table("Probability of yes", "verdicts", "mean", "really yes")
    table.title = f"Calibration error {calibration.error:.2f} ({', '.join(beside) or 'no baseline has one'})"
    table.title_justify = "left"
    table.title_style = ""
    for part in calibration.bins:
        table.add_row(
            f"{part.low:.1f}-{part.high:.1f}", str(part.n), f"{part.probability:.2f}", f"{part.yes:.2f}"
        )
    return table


def _causes(check: JudgeCheck) -> list[str]:
    if not check.causes:
        return []
    words = ", ".join(f"{cause} {count}" for cause, count in check.causes.items())
    return [f"without an answer, in all passes: {words}; they count as not right"]


def _cost(page: Page) -> list[str]:
    usage, first = page.check.usage, page.check.passes["all"]
    line = f"{counted(usage.requests, 'request')}, {counted(usage.questions, 'question')}"
    if usage.prompt_tokens:
        each = (first.prompt_tokens + first.completion_tokens) / max(first.questions, 1)
        line += (
            f", {usage.prompt_tokens:,} tokens in ({usage.cached_tokens:,} cached), "
            f"{usage.completion_tokens:,} out; {each:,.0f} tokens a claim with fuse view"
        )
    return [line, *([page.price] if page.price else [])]
