"""`steelyard judge`: how good a judge is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from rich.console import Console

from steelyard.cli._judges import JudgeChoice
from steelyard.cli._options import BaseUrl, JudgeName, KeyVariable, Model, Yes, takes
from steelyard.cli._prices import price_of_all, price_words
from steelyard.cli._terminal import progress
from steelyard.cli._words import counted
from steelyard.cli.pages._check import Page, show
from steelyard.errors import ConfigurationError
from steelyard.judge.dry_run import DryRunJudge
from steelyard.probing import CheckRun, JudgeCheck, ProbeSet, advice, baselines, check_judge, load_probes
from steelyard.questions import Judge
from steelyard.scores import Usage

app = typer.Typer(help="Measure a judge.", no_args_is_help=True)


@app.callback()
def _judge() -> None:
    """Measure a judge."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckOptions:
    """One call of `steelyard judge check`, as it was typed."""

    judge: JudgeName = "local"
    model: Model = ""
    base_url: BaseUrl = ""
    api_key_env: KeyVariable = ""
    probes: Annotated[
        str,
        typer.Option(
            metavar="FOLDER", help="A probe set of your own; without, the one that ships with this."
        ),
    ] = ""
    concurrency: Annotated[int, typer.Option(min=1, help="Requests in flight.")] = 16
    fail_under: Annotated[
        float | None,
        typer.Option(min=0, max=1, metavar="X", help="Exit with 1 where fewer than this share are right."),
    ] = None
    yes: Yes = False
    as_json: Annotated[bool, typer.Option("--json", help="The figures as JSON.")] = False


@app.command()
@takes(CheckOptions)
def check(options: CheckOptions) -> int:
    """Ask a judge questions whose right answers are known, and say what it can be trusted with.

    The questions are pairs of claims about short texts, one true and one false, that differ in a single
    point. The page shows how many are right by kind, what moves verdicts that should not move, whether the
    probabilities are calibrated, what it cost, and the same for word overlap and answer length.

    The local judge takes seconds and costs nothing. For any other the plan and its price are shown first, and
    nothing is sent without `--yes`.

    Exit status: 0 fine; 1 a missed `--fail-under`, or a judge that answered nothing; 2 wrong usage, or a
    remote judge without `--yes`.

    **Examples**

    - `steelyard judge check`
    - `steelyard judge check --judge openai:gpt-4o-mini`
    - `steelyard judge check --judge openai:qwen3 --base-url http://127.0.0.1:8000/v1 --yes --fail-under 0.8`
    """
    console = Console(stderr=True, highlight=False)
    choice = JudgeChoice.named(
        options.judge,
        model=options.model,
        base_url=options.base_url,
        key_variable=options.api_key_env,
        concurrency=options.concurrency,
    )
    probes = load_probes(options.probes or None)
    if not choice.is_here:
        _plan(choice, probes, console)
        # Shown first, asked for second: seven passes over all probes cost real money.
        if not options.yes:
            raise ConfigurationError("nothing was sent; add --yes to ask this judge at that price")
    judge = choice.build()
    with progress(console, "Asking") as move:

        def show_pass(name: str, done: int, of: int) -> None:
            move(description=f"Asking: {name}", completed=done, total=of)

        check = asyncio.run(_check(judge, probes, choice.concurrency, show_pass))
    beside = tuple(check_judge(baseline, probes) for baseline in baselines(probes.probes))
    page = Page(
        check=check, baselines=beside, advice=advice(check, beside), price=price_words(choice, check.usage)
    )
    if options.as_json:
        typer.echo(json.dumps(_plain(page), ensure_ascii=False))
    else:
        show(Console(highlight=False), page)
    return _status(options, check, console)


_Progress = Callable[[str, int, int], None]


async def _check(judge: Judge, probes: ProbeSet, concurrency: int, on_progress: _Progress) -> JudgeCheck:
    try:
        return await CheckRun(judge, probes, concurrency, on_progress).run()
    finally:
        await judge.aclose()


def _plan(choice: JudgeChoice, probes: ProbeSet, console: Console) -> None:
    """Make every request in a dry run, and say how many they are and what they would cost."""
    dry_run = DryRunJudge(choice.remote)
    asyncio.run(_check(dry_run, probes, choice.concurrency, lambda _name, _done, _of: None))
    spent = sum(dry_run.usage.values(), Usage())
    price, sources = price_of_all(dry_run.usage, choice.base_url)
    cost = "price unknown" if price is None else f"about ${price:.2f}"
    console.print(
        f"{dry_run.name}: {counted(len(probes.probes), 'probe')} in seven passes, "
        f"{counted(spent.requests, 'request')}, {spent.prompt_tokens:,} tokens in, "
        f"{spent.completion_tokens:,} tokens out, {cost}",
        style="bold",
        markup=False,
        soft_wrap=True,
    )
    for source in sources:
        console.print(source, style="dim", markup=False, soft_wrap=True)


def _plain(page: Page) -> dict[str, object]:
    return {
        **asdict(page.check),
        "usage": asdict(page.check.usage),
        "price": page.price or None,
        "baselines": [asdict(check) for check in page.baselines],
        "advice": page.advice,
    }


def _status(options: CheckOptions, check: JudgeCheck, console: Console) -> int:
    right = check.overall.right.value
    fault = ""
    if check.again is None:
        fault = "the judge answered nothing"
    elif options.fail_under is not None and right < options.fail_under:
        fault = f"{right:.3f} are right, under {options.fail_under:g}"
    if fault:
        console.print(fault, style="red", markup=False)
    return 1 if fault else 0
