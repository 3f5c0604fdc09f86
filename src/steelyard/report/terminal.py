"""Figures as tables for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from steelyard._internal.text import counted, printable, shorten, utc
from steelyard.report._people import describe_agreement
from steelyard.report.figures import MetricFigure, Point, ReportFigures
from steelyard.report.lights import Light, State, lights_of, verdict_of
from steelyard.report.turn import (
    bounds_words,
    evidence_words,
    explain_verdict,
    remaining_turns,
    shown_words,
    title_of,
    words,
    worth_words,
)
from steelyard.scores import Evaluation
from steelyard.stats import Estimate

_BARS = "▁▂▃▄▅▆▇█"
_TREND = 20
_WORST = 3
# A smaller range would draw a steady metric's noise as high as a fall.
_SPAN = 0.2
_WEAK = "; it may be the judge, which reads this language worse"
_STYLES: Mapping[State, str] = {"worse": "bold red", "better": "green"}
_LEGEND = "means are weighted by inclusion; a trend spans its own range, at least .2 of the scale"


def print_figures(console: Console, figures: ReportFigures) -> None:
    """Print a report's figures."""
    totals = figures.totals
    head = f"{counted(totals.turns, 'record')} in {shorten(figures.source, 200)}"
    console.print(Text(head, style="bold"))
    if totals.first is not None:
        console.print(Text(f"{_when(totals.first)} to {_when(totals.last)} UTC", style="dim"))
    if line := evidence_words(totals):
        console.print(Text(line, style="dim"))
    for note in figures.notes:
        console.print(Text(note, style="yellow"))
    if figures.metrics:
        console.print(_metrics(figures.metrics))
        console.print(Text(_LEGEND, style="dim"))
        for one in figures.metrics:
            if said := bounds_words(one):
                console.print(Text(f"{shorten(one.metric, 40)}: {said}", style="yellow"))
        lights = lights_of(figures.metrics, figures.findings)
        console.print(Text(f"{verdict_of(lights)}.", style=_STYLES.get(lights[0].state, "dim")))
        section(console, "What changed", _changed(lights, {one.metric for one in figures.findings}))
    section(console, "Two judges: screen, judge alone, corrected", _screens(figures))
    section(console, f"By {figures.by}", _groups(figures))
    section(console, "Why turns are bad", _causes(figures))
    section(console, "What people say", _people(figures))
    section(console, "What stands out", _slices(figures))
    section(console, "What became of every turn", _funnel(figures))
    section(console, "Scores without a value", _missing(figures))
    section(console, "Worst records", _worst(figures, console.width - 2))
    section(console, "How these numbers were made", _made(figures))


def section(console: Console, title: str, rows: Sequence[Text | str], *, style: str = "") -> None:
    """Print rows under a title, where there are any."""
    if not rows:
        return
    console.print()
    console.print(Text(title, style=f"bold {style}"))
    for row in rows:
        text = row if isinstance(row, Text) else Text(printable(row), style=style)
        # Wrapped here, so that continued lines are indented as well.
        for line in text.wrap(console, console.width - 2):
            console.print(Text.assemble("  ", line))


def _causes(figures: ReportFigures) -> list[Text]:
    rows, where = [], "" if figures.source == "steelyard.db" else f" --db {shorten(figures.source, 200)}"
    for one in figures.causes:
        share = f"{one.turns:,} ({one.share:.0%}): ".replace("%", " %")
        rows.append(Text.assemble((f"{one.cause.replace('_', ' ')} ", "bold"), share, (one.mend, "dim")))
        rows.append(Text(f"  steelyard explain {shorten(one.record_id, 80)}{where}", style="dim"))
    return rows


def _metrics(metrics: Sequence[MetricFigure]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    table.add_column("Metric", no_wrap=True)
    for heading in ("Mean", "95 %", "Scored", "Pass"):
        table.add_column(heading, justify="right", no_wrap=True)
    # What can be narrowed is narrowed first: bars rather than figures.
    table.add_column("Trend")
    for one in metrics:
        passed = one.pass_rate
        table.add_row(
            Text(shorten(one.metric, 40)),
            Text(f"{one.estimate.value:.2f}", style="bold"),
            Text(_interval(one.estimate), style="dim"),
            Text(f"{one.estimate.n:,}", style="yellow" if one.estimate.few else ""),
            Text("-" if passed is None else f"{passed.value:.0%}"),
            Text(_trend(one.points), no_wrap=True, overflow="crop"),
        )
    return table


def _changed(lights: Sequence[Light], named: Set[str]) -> list[Text]:
    """What is told of metrics that changed; that of slices names its metric itself."""
    return [
        Text(f"{'' if one.metric.metric in named else f'{shorten(one.metric.metric, 80)}: '}{said}")
        for one in lights
        for news in one.told
        if news.since is not None
        for said in [" ".join(filter(None, (news.what, news.why, news.deploy)))]
    ]


def _interval(found: Estimate) -> str:
    return f"{found.low:.2f}–{found.high:.2f}"


def _trend(points: Sequence[Point]) -> str:
    """The latest means as bars."""
    means = [point.estimate.value for point in points[-_TREND:]]
    top = max(means, default=1.0)
    bottom = max(min(*means, top - _SPAN) if means else 0.0, 0.0)
    span = max(top - bottom, _SPAN)
    return "".join(_BARS[min(int((mean - bottom) / span * 8), 7)] for mean in means)


def _screens(figures: ReportFigures) -> list[Text]:
    rows = []
    for one in figures.metrics:
        if one.screen is not None:
            parts = (one.screen.cheap, one.screen.dear, one.estimate)
            told = " · ".join(f"{part.value:.2f} ({_interval(part)})" for part in parts)
            rows.append(Text(f"{shorten(one.metric, 40)}  {told}, {worth_words(one)}"))
    return rows


def _groups(figures: ReportFigures) -> list[Text]:
    rows = []
    for one in figures.groups:
        text = Text(
            f"{shorten(one.metric, 40)}  {shorten(one.group, 40)}  {one.estimate.value:.2f} "
            f"({_interval(one.estimate)}, {one.estimate.n:,} scored)"
        )
        if one.difference is not None:
            found = one.difference
            told = "" if found.clear else ", cannot be told from 0"
            text.append(f"  {found.value:+.2f} ({found.low:+.2f} to {found.high:+.2f}{told})")
        rows.append(text)
    return rows


def _people(figures: ReportFigures) -> list[Text]:
    return [Text(f"{shorten(one.metric, 40)}  {describe_agreement(one)}") for one in figures.people]


def _slices(figures: ReportFigures) -> list[Text]:
    return [
        Text(
            f"{shorten(one.metric, 40)}  {shorten(one.attribute, 40)}: {shorten(one.value, 60)}  "
            f"{one.difference.value:+.2f} ({one.difference.low:+.2f} to {one.difference.high:+.2f}, "
            f"{one.n:,} scored) beside the rest{_WEAK if one.judge else ''}"
        )
        for one in figures.slices
    ]


def _funnel(figures: ReportFigures) -> list[Text]:
    if (found := figures.funnel) is None:
        return []
    rows = [
        ("seen", found.seen),
        *((f"  not judged, {words(reason)}", count) for reason, count in found.skipped.items()),
        ("picked", found.accepted),
        ("  judged", found.by_judge),
        *((f"  impossible to judge, {words(cause)}", count) for cause, count in found.dead.items()),
        *((f"  {name}", count) for name, count in remaining_turns(found) if count),
    ]
    return [Text(f"{count:>10,}  {name}") for name, count in rows]


def _missing(figures: ReportFigures) -> list[Text]:
    return [
        Text(
            f"{shorten(one.metric, 40)}  {one.count:,}  {one.status.replace('_', ' ')} "
            f"({shorten(one.cause, 60)}): {shorten(one.explanation, 300)}",
            style="red" if one.status == "failed" else "dim",
        )
        for one in figures.missing[:12]
    ]


def _worst(figures: ReportFigures, width: int) -> list[Text]:
    """The turns that do not pass, worst first, each with what weighs most against it."""
    rows: list[Text] = []
    for worst in figures.worst:
        bad = [turn for turn in worst.turns if turn[worst.metric].passed is not True][:_WORST]
        if bad:
            rows.append(Text(shorten(worst.metric, 40)))
        for turn in bad:
            rows += _turn(turn, worst.metric, width)
    return rows


def _turn(turn: Evaluation, metric: str, width: int) -> list[Text]:
    score = turn[metric]
    rows = [Text(f"  {score.value:.2f}  {shorten(title_of(turn), max(width - 10, 30))}")]
    if (against := next((one for one in score.verdicts if one.good is False), None)) is not None:
        about = shorten(against.about, max(width - 12, 30))
        reason = shorten(explain_verdict(against), 400)
        rows += [Text(f'        "{about}"', style="dim"), Text(f"        {reason}", style="dim")]
    return rows


def _made(figures: ReportFigures) -> list[Text]:
    rows = [Text(said) for said in shown_words(figures.metrics)]
    rows += [
        Text(f"{shorten(one.metric, 40)} tells as much {worth}")
        for one in figures.metrics
        if one.screen is None and (worth := worth_words(one))
    ]
    for one in figures.made[:6]:
        known = "" if one.calibrated else " (not calibrated against people)"
        prompts = f", prompts {shorten(one.prompt_version, 40)}" if one.prompt_version else ""
        without = f", {one.missing:,} of them without a value" if one.missing else ""
        rows.append(Text(f"judge {shorten(one.judge, 80)}{known}{prompts}: {one.scores:,} scores{without}"))
    if len(figures.made) > 1:
        rows.append(Text("means over scores made in different ways say little", style="yellow"))
    totals = figures.totals
    cost = "" if totals.cost is None else f", ${totals.cost:.4f}"
    if totals.turns:
        rows.append(
            Text(
                f"{totals.requests:,} judge and embedder calls, {totals.prompt_tokens:,} tokens in, "
                f"{totals.completion_tokens:,} out{cost}; an evaluation took "
                f"{totals.median_duration or 0:.2f} s in the median"
            )
        )
    return rows


def _when(time: float | None) -> str:
    return "-" if time is None else utc(time, "%Y-%m-%d %H:%M")
