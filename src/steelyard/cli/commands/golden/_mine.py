"""`steelyard golden mine`."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from steelyard._internal.text import shorten
from steelyard.cli._options import Results, takes
from steelyard.cli._words import counted
from steelyard.errors import ConfigurationError
from steelyard.golden import mining

_MOST_CLUSTERS = 12


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


@takes(MineOptions)
def mine(options: MineOptions) -> int:
    """Draw a golden set from what production asked; needs no key.

    Failing and uncertain turns and a fair share of the rest, spread over clusters of questions, drawn with
    known probabilities, which stand in the set: a weighted mean over it estimates production.

    **Examples**

    - `steelyard golden mine cases.jsonl --db steelyard.db --n 50`
    - `steelyard golden mine cases.jsonl --mask my_app.privacy:mask --days 7`
    """
    out, rest = options.out, max(1 - options.failing - options.uncertain, 0.0)
    check_new(out, force=options.force)
    found = mining.mine(
        options.db,
        n=options.n,
        metric=options.metric or None,
        since=time.time() - options.days * 86_400 if options.days else None,
        shares={"failing": options.failing, "uncertain": options.uncertain, "rest": rest},
        mask=_function(options.mask) if options.mask else None,
        seed=options.seed,
        name=out.stem,
    )
    found.golden.save(out)
    _show(Console(highlight=False), found, out)
    return 0


# A set is somebody's work once it was reviewed, and no run brings that back.
def check_new(out: Path, *, force: bool) -> None:
    """Refuse to write over a set that somebody may have reviewed.

    Raises:
        ConfigurationError: If the file exists.
    """
    if out.exists() and not force:
        raise ConfigurationError(f"{str(out)!r} exists; give another name, or --force to replace it")


def _show(console: Console, found: mining.Mined, out: Path) -> None:
    golden = found.golden
    head = (
        f"{counted(len(golden), 'case')} of {counted(found.questions, 'question')} in {found.turns:,} turns"
    )
    console.print(Text(f"{head} > {out} (version {golden.version})", style="bold"), soft_wrap=True)
    for stratum, (there, taken) in found.strata.items():
        console.print(f"  {stratum:<10} {taken:>5} of {there:,}")
    for name, count in sorted(found.clusters.items(), key=lambda pair: -pair[1])[:_MOST_CLUSTERS]:
        console.print(Text(f"  {count:>5}  {shorten(name, 70) or 'all questions'}", style="dim"))
    for reason, count in found.left_out.items():
        if count:
            console.print(Text(f"  left out: {count:,} {reason}", style="dim"))
    console.print(f"Nobody has reviewed them yet: steelyard golden review {out}", soft_wrap=True)


def _function(spec: str) -> Callable[..., Any]:
    """The function that `module:name` names, seen from the working directory.

    Raises:
        ConfigurationError: If there is none.
    """
    module, _, name = spec.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"--mask {spec!r} cannot be imported ({type(error).__name__}); write module:function"
        ) from None
    if not callable(found):
        raise ConfigurationError(f"--mask {spec!r} is a {type(found).__name__}, not a function")
    return found  # type: ignore[no-any-return]
