"""`steelyard judge`: how good a judge is."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import typer
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from typer import Option

from steelyard._internal.text import counted, printable
from steelyard.cli._judges import CostEstimate, JudgeChoice, JudgeOptions, price_words
from steelyard.cli._options import YES, takes
from steelyard.cli._say import say
from steelyard.cli._terminal import Terminal, figures_table, progress
from steelyard.probing import (
    Accuracy,
    Effect,
    JudgeCheck,
    ProbeSet,
    Reliability,
    acheck_judge,
    advice,
    baselines,
    check_judge,
    load_probes,
)
from steelyard.questions import Judge
from steelyard.results import open_labels, open_results
from steelyard.stats import Estimate

_RESULTS = "steelyard.db"
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


def _show(
    console: Terminal,
    check: JudgeCheck,
    baselines: Sequence[JudgeCheck],
    advised: Sequence[str],
    price: str,
) -> None:
    own = "" if check.published else ", a set of your own"
    console.print(
        Text(f"{printable(check.judge)} (wording {printable(check.prompt_version)})", style="bold"),
        Text(
            f"{counted(check.n, 'probe')}, set {check.probes[:12]}{own}, in {check.seconds:.1f} s",
            style="dim",
        ),
    )
    console.print(_kinds(check, baselines))
    console.print(Text(_LEGEND, style="dim"))
    if check.again is not None:
        console.print(_changes(check, baselines))
    if check.calibration is not None:
        console.print(_reliability(check.calibration, baselines))
    if check.causes:
        words = ", ".join(f"{cause} {count}" for cause, count in check.causes.items())
        console.say(f"without an answer, in all passes: {words}; they count as not right", "dim")
    for line in _cost(check, price):
        console.say(line, "dim")
    console.say("\nWhat to take it for", "bold")
    for sentence in advised:
        console.print(Padding(Text(f"- {sentence}"), (0, 0, 0, 1)))


def _kinds(check: JudgeCheck, baselines: Sequence[JudgeCheck]) -> Table:
    names = [_short(baseline) for baseline in baselines]
    table = figures_table("Right by kind", "n", "right", "95 %", "both", "yes", *names)
    for kind, figures in check.kinds.items():
        beside = [baseline.kinds[kind] for baseline in baselines]
        table.add_row(*_accuracy(kind.replace("_", " "), figures, beside))
        if kind == "language":
            for language, part in check.languages.items():
                beside = [baseline.languages[language] for baseline in baselines]
                table.add_row(*_accuracy(f"  {language}", part, beside), style="dim")
    table.add_section()
    overall = [baseline.overall for baseline in baselines]
    table.add_row(*_accuracy("all", check.overall, overall), style="bold")
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


def _changes(check: JudgeCheck, baselines: Sequence[JudgeCheck]) -> Table:
    names = [_short(baseline) for baseline in baselines]
    table = figures_table("Moved by", "n", "moved", "95 %", "to yes, no", "right", *names)
    for field, words in _CHANGES:
        change: Effect | None = getattr(check, field)
        if change is None or change.moved is None:
            continue
        beside = [_moved(getattr(baseline, field)) for baseline in baselines]
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


def _moved(change: Effect | None) -> str:
    return "-" if change is None or change.moved is None else f"{change.moved.value:.2f}"


def _interval(estimate: Estimate) -> str:
    return f"{estimate.low:.2f}-{estimate.high:.2f}"


def _reliability(calibration: Reliability, baselines: Sequence[JudgeCheck]) -> Table:
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


def _cost(check: JudgeCheck, price: str) -> list[str]:
    usage, first = check.usage, check.passes["all"]
    line = f"{counted(usage.requests, 'request')}, {counted(usage.questions, 'question')}"
    if usage.prompt_tokens:
        each = (first.prompt_tokens + first.completion_tokens) / max(first.questions, 1)
        line += (
            f", {usage.prompt_tokens:,} tokens in ({usage.cached_tokens:,} cached), "
            f"{usage.completion_tokens:,} out; {each:,.0f} tokens a claim with fuse view"
        )
    return [line, *([price] if price else [])]


judge = typer.Typer(help="Measure a judge.", no_args_is_help=True)


@judge.callback()
def _judge() -> None:
    """Measure a judge."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckOptions(JudgeOptions):
    """One call of `steelyard judge check`, as it was typed."""

    probes: str = Option(
        "", metavar="FOLDER", help="A probe set of your own; without, the one that ships with this."
    )
    concurrency: int = Option(16, min=1, help="Requests in flight.")
    fail_under: float | None = Option(
        None, min=0, max=1, metavar="X", help="Exit with 1 if fewer than this share are right."
    )
    db: str = Option(
        "",
        metavar="FILE",
        help="Keep the figures in these results, for the page of judges; "
        "without, in steelyard.db if it is there.",
    )
    yes: bool = YES
    as_json: bool = Option(False, "--json", help="The figures as JSON.")


@judge.command()
@takes(CheckOptions)
def check(options: CheckOptions) -> int:
    """Ask a judge questions whose right answers are known, and say what it can be trusted with.

    The questions are pairs of claims about short texts, one true and one false, that differ in a single
    point. The page shows how many are right by kind, what moves verdicts that should not move, whether the
    probabilities are calibrated, what it cost, and the same for word overlap and answer length. The figures
    are kept beside your results, and `steelyard serve` draws them on its page of judges.

    The local judge takes seconds and costs nothing. For any other the plan and its price are shown first, and
    nothing is sent without `--yes`.

    Exit status: 0 fine; 1 a missed `--fail-under`, or a judge that answered nothing; 2 wrong usage, or a
    remote judge without `--yes`.

    **Examples**

    - `steelyard judge check`
    - `steelyard judge check --judge openai:gpt-4o-mini`
    - `steelyard judge check --judge openai:qwen3 --base-url http://127.0.0.1:8000/v1 --yes --fail-under 0.8`
    """
    console = Terminal(stderr=True)
    choice = options.choice(concurrency=options.concurrency)
    probes = load_probes(options.probes or None)
    db = options.db or (_RESULTS if Path(_RESULTS).is_file() else "")
    # What cannot be kept is said before anything is paid for.
    if db:
        open_results(db).close()
    if not choice.is_here:
        _plan(choice, probes, console)
    choice.check_agreed(options.yes)
    judge = choice.build()
    with progress(console, "Asking") as move:

        def show_pass(name: str, done: int, of: int) -> None:
            move(description=f"Asking: {name}", completed=done, total=of)

        check = asyncio.run(_check(judge, probes, choice.concurrency, show_pass))
    beside = tuple(check_judge(baseline, probes) for baseline in baselines(probes.probes))
    advised, price = advice(check, beside), price_words(choice, check.usage)
    if options.as_json:
        found = {
            **asdict(check),
            "usage": asdict(check.usage),
            "price": price or None,
            "baselines": [asdict(one) for one in beside],
            "advice": advised,
        }
        say(json.dumps(found, ensure_ascii=False))
    else:
        _show(Terminal(), check, beside, advised, price)
    if db and check.again is not None:
        open_labels(db).put_check(check, checked_at=time.time())
        console.say("Kept beside your results: `steelyard serve` draws it.", "dim")
    return _status(options, check, console)


_Progress = Callable[[str, int, int], None]


async def _check(judge: Judge, probes: ProbeSet, concurrency: int, on_progress: _Progress) -> JudgeCheck:
    try:
        return await acheck_judge(judge, probes, concurrency=concurrency, progress=on_progress)
    finally:
        await judge.aclose()


def _plan(choice: JudgeChoice, probes: ProbeSet, console: Terminal) -> None:
    """Make every request in a dry run, and say how many they are and what they would cost."""
    dry_run = choice.dry_run()
    asyncio.run(_check(dry_run, probes, choice.concurrency, lambda _name, _done, _of: None))
    cost = CostEstimate.of(dry_run, choice)
    head = f"{dry_run.name}: {counted(len(probes.probes), 'probe')} in seven passes, {cost.words()}"
    console.say(head, "bold")
    for source in cost.sources:
        console.say(source, "dim")


def _status(options: CheckOptions, check: JudgeCheck, console: Terminal) -> int:
    right = check.overall.right.value
    fault = ""
    if check.again is None:
        fault = "the judge answered nothing"
    elif options.fail_under is not None and right < options.fail_under:
        fault = f"{right:.3f} are right, under {options.fail_under:g}"
    if fault:
        console.say(fault, "red")
    return 1 if fault else 0
