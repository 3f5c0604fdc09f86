"""One call of `steelyard judge check`: plan, ask, show."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict

import typer
from rich.console import Console

from steelyard.cli._terminal import progress
from steelyard.cli._words import counted
from steelyard.cli.checking._page import Page, show
from steelyard.cli.commands.scoring._judge import CheckOptions
from steelyard.cli.scoring._dry_run import DryRunJudge
from steelyard.cli.scoring._judges import JudgeChoice
from steelyard.cli.scoring._plan import price_of_all
from steelyard.cli.scoring._prices import price_words
from steelyard.errors import ConfigurationError
from steelyard.probing import CheckRun, JudgeCheck, ProbeSet, advice, baselines, check_judge, load_probes
from steelyard.questions import Judge
from steelyard.scores import Usage

_Progress = Callable[[str, int, int], None]


def run(options: CheckOptions) -> int:
    """Check a judge; returns the exit status."""
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
