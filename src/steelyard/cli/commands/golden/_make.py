"""`steelyard golden make`: plan, write, say what was rejected."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.console import Console
from rich.text import Text

from steelyard.cli._judges import JudgeChoice
from steelyard.cli._options import BaseUrl, KeyVariable, Yes, numbers_by_name, takes
from steelyard.cli._prices import price_of
from steelyard.cli._words import counted
from steelyard.cli.commands.golden._mine import check_new
from steelyard.errors import ConfigurationError
from steelyard.golden import making
from steelyard.judge.chat import ChatWriter

_NEEDS = (
    "making a golden set needs a model that writes: --judge openai:gpt-4o-mini with OPENAI_API_KEY, or "
    "--judge openai:MODEL --base-url URL for a server of your own. Without one, draw cases from production: "
    "`steelyard golden mine OUT.jsonl --db steelyard.db` needs no key"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class MakeOptions:
    """One call of `steelyard golden make`, as it was typed."""

    documents: Annotated[
        Path, typer.Argument(metavar="DOCS", help="A file or folder: .txt, .md, .rst, or .jsonl with `text`.")
    ]
    out: Annotated[Path, typer.Option("--out", "-o", metavar="OUT.jsonl", help="The set to write.")] = Path(
        "golden.jsonl"
    )
    n: Annotated[int, typer.Option("--n", "-n", min=1, help="How many cases.")] = 50
    judge: Annotated[
        str, typer.Option("--judge", "-j", metavar="openai:MODEL", help="The model that writes and checks.")
    ] = ""
    base_url: BaseUrl = ""
    api_key_env: KeyVariable = ""
    share: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND=X", help="Shares of kinds, e.g. single_passage=1; repeatable."),
    ] = None
    seed: Annotated[int, typer.Option(help="The same seed and documents make the same set.")] = 0
    concurrency: Annotated[int, typer.Option(min=1, help="Requests in flight.")] = 8
    yes: Yes = False
    force: Annotated[bool, typer.Option("--force", help="Replace OUT.")] = False


@takes(MakeOptions)
def make(options: MakeOptions) -> int:
    """Have a model write a golden set about documents, and check it.

    Single-passage, multi-passage, comparison, follow-up, unanswerable and false-premise questions. Every case
    carries the sentences that it rests on, found word for word in the documents; a critic sees only these.

    The plan and its price come first; nothing is sent without `--yes`. Replies are kept in OUT.jsonl.replies:
    interrupted work goes on where it stopped.

    Exit status: 0 fine; 1 fewer cases than asked for (the reasons are listed); 2 wrong usage, or no `--yes`.

    **Examples**

    - `steelyard golden make docs/ --n 50 --judge openai:gpt-4o-mini`
    - `steelyard golden make docs/ --judge openai:qwen3 --base-url http://127.0.0.1:8000/v1 --yes`
    """
    writer, choice = _writer(options)
    check_new(options.out, force=options.force)
    passages = making.read_passages(options.documents)
    shares = cast(
        "dict[making.CaseKind, float] | None",
        numbers_by_name(options.share or (), option="--share", name="kind") or None,
    )
    planned = making.plan(passages, n=options.n, shares=shares, seed=options.seed)
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
        made = making.make(
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


def _show(console: Console, made: making.Made, out: Path, journal: Path) -> None:
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
