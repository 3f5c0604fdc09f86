"""One call of `steelyard golden make`: plan, write, say what was rejected."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

from rich.console import Console
from rich.text import Text

from steelyard.cli._options import numbers_by_name
from steelyard.cli._words import counted
from steelyard.cli.commands.scoring._golden import MakeOptions
from steelyard.cli.golden._mine import check_new
from steelyard.cli.scoring._judges import JudgeChoice
from steelyard.cli.scoring._prices import price_of
from steelyard.errors import ConfigurationError
from steelyard.golden.making import CaseKind, Made, make, plan, read_passages
from steelyard.judge.chat import ChatWriter

_NEEDS = (
    "making a golden set needs a model that writes: --judge openai:gpt-4o-mini with OPENAI_API_KEY, or "
    "--judge openai:MODEL --base-url URL for a server of your own. Without one, draw cases from production: "
    "`steelyard golden mine OUT.jsonl --db steelyard.db` needs no key"
)


def run(options: MakeOptions) -> int:
    """Make a set; returns the exit status: 1 where there are fewer cases than asked for."""
    writer, choice = _writer(options)
    check_new(options.out, force=options.force)
    passages = read_passages(options.documents)
    shares = cast(
        "dict[CaseKind, float] | None",
        numbers_by_name(options.share or (), option="--share", name="kind") or None,
    )
    planned = plan(passages, n=options.n, shares=shares, seed=options.seed)
    console = Console(stderr=True, highlight=False)
    dollars, source = price_of(planned.usage, model=choice.chosen_model, base_url=choice.base_url)
    cost = "price unknown" if dollars is None else f"about ${dollars:.2f}"
    line = (
        f"{writer.name}: {counted(planned.cases, 'case')} from {counted(planned.passages, 'passage')}, about "
        f"{counted(planned.requests, 'request')}, {planned.usage.prompt_tokens:,} tokens in, "
        f"{planned.usage.completion_tokens:,} tokens out, {cost}"
    )
    console.print(Text(line, style="bold"), soft_wrap=True)
    wanted = ", ".join(f"{count} {kind}" for kind, count in planned.quotas.items() if count)
    console.print(Text(f"{wanted}; {source}", style="dim"), soft_wrap=True)
    if not options.yes:
        raise ConfigurationError("nothing was sent; add --yes to make the set at that price")
    journal = options.out.with_name(f"{options.out.name}.replies")
    with console.status("Writing and checking ..."):
        made = make(
            passages,
            writer=writer,
            n=options.n,
            shares=shares,
            seed=options.seed,
            journal=journal,
            concurrency=options.concurrency,
            name=options.out.stem,
        )
    if len(made.golden):
        made.golden.save(options.out)
    _show(Console(highlight=False), made, options.out, journal)
    return 0 if len(made.golden) == options.n else 1


def _writer(options: MakeOptions) -> tuple[ChatWriter, JudgeChoice]:
    kind = options.judge.partition(":")[0]
    key = os.environ.get(options.api_key_env) if options.api_key_env else os.environ.get("OPENAI_API_KEY")
    if kind != "openai" or not (key or options.base_url):
        raise ConfigurationError(_NEEDS)
    choice = JudgeChoice.named(options.judge, base_url=options.base_url, key_variable=options.api_key_env)
    if options.api_key_env and not key:
        raise ConfigurationError(f"--api-key-env {options.api_key_env}: that variable is not set")
    writer = ChatWriter(
        choice.chosen_model,
        base_url=choice.base_url,
        api_key=key if options.api_key_env else None,
        concurrency=options.concurrency,
    )
    return writer, choice


def _show(console: Console, made: Made, out: Path, journal: Path) -> None:
    golden = made.golden
    if not len(golden):
        console.print(
            Text(f"no case was accepted; {str(out)!r} was not written", style="red"), soft_wrap=True
        )
    else:
        head = f"{len(golden)} of {counted(made.wanted, 'case')} > {out} (version {golden.version})"
        console.print(Text(head, style="bold"), soft_wrap=True)
    kinds = [case.kind for case in golden]
    for kind in dict.fromkeys(kinds):
        console.print(f"  {kinds.count(kind):>4}  {kind}")
    for reason, count in made.rejected.items():
        console.print(Text(f"  {count:>4}  rejected: {reason}", style="dim"))
    each = made.requests_per_case
    if each is not None:
        sent = counted(made.usage.requests, "request")
        resumed = f", {made.resumed} replies from before" if made.resumed else ""
        console.print(
            f"{sent}, {each:.2f} for each accepted case{resumed}; replies are in {journal}", soft_wrap=True
        )
        console.print(f"Nobody has reviewed them yet: steelyard golden review {out}", soft_wrap=True)
