"""`steelyard golden`: make golden sets from production and from documents, review them, see what changed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli._options import BaseUrl, GoldenSetFile, KeyVariable, Results, Yes, takes

app = typer.Typer(
    help="Golden sets: cases that an application must pass, from production or from documents.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@app.command()
def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD.jsonl")],
    new: Annotated[Path, typer.Argument(metavar="NEW.jsonl")],
) -> None:
    """Show what changed from one version of a golden set to another.

    Exit status: 0 no change; 1 something changed; 2 a file is not a golden set.
    """
    from steelyard.cli.golden._diff import run

    raise typer.Exit(run(old, new))


@dataclass(frozen=True, kw_only=True, slots=True)
class MineOptions:
    """One call of `steelyard golden mine`, as it was typed."""

    out: Annotated[Path, typer.Argument(metavar="OUT.jsonl", help="The golden set to write.")]
    db: Results = "steelyard.db"
    n: Annotated[int, typer.Option("--n", "-n", min=1, help="How many cases.")] = 50
    metric: Annotated[str, typer.Option(help="Only this metric decides what fails.")] = ""
    days: Annotated[float, typer.Option(min=0, help="Only the last so many days; 0: all.")] = 0
    failing: Annotated[float, typer.Option(min=0, max=1, help="The share of failing turns.")] = 0.3
    uncertain: Annotated[float, typer.Option(min=0, max=1, help="The share of uncertain turns.")] = 0.15
    mask: Annotated[
        str, typer.Option(metavar="MODULE:FUNCTION", help="Your mask: a function from Record to Record.")
    ] = ""
    seed: Annotated[int, typer.Option(help="The same seed and file draw the same cases.")] = 0
    force: Annotated[bool, typer.Option("--force", help="Replace OUT.")] = False


@app.command()
@takes(MineOptions)
def mine(options: MineOptions) -> int:
    """Draw a golden set from what production asked; needs no key.

    Failing and uncertain turns and a fair share of the rest, spread over clusters of questions, drawn with
    known probabilities, which stand in the set: a weighted mean over it estimates production.

    **Examples**

    - `steelyard golden mine cases.jsonl --db steelyard.db --n 50`
    - `steelyard golden mine cases.jsonl --mask my_app.privacy:mask --days 7`
    """
    from steelyard.cli.golden._mine import run

    return run(options)


@app.command()
def review(
    golden: GoldenSetFile,
    who: Annotated[str, typer.Option("--as", metavar="NAME", help="Who reviews; your user name.")] = "",
    labels: Annotated[
        str, typer.Option(metavar="FILE", help="Take the labels of the live view from this results file.")
    ] = "",
) -> None:
    """Look at the cases that nobody has reviewed, one by one.

    Every decision is written at once; stop when you like, and go on another day.
    """
    from steelyard.cli.golden._review import run

    raise typer.Exit(run(golden, who=who, labels=labels or None))


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


@app.command()
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
    from steelyard.cli.golden._make import run

    return run(options)
