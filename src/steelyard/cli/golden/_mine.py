"""One call of `steelyard golden mine`."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

from steelyard._internal.text import shorten
from steelyard.cli._words import counted
from steelyard.cli.commands.scoring._golden import MineOptions
from steelyard.cli.golden._options import function_of
from steelyard.errors import ConfigurationError
from steelyard.golden.mining import Mined, mine

_MOST_CLUSTERS = 12


def run(options: MineOptions) -> int:
    """Draw and write a set; returns the exit status.

    Raises:
        ConfigurationError: If OUT exists, or an option cannot mean what was given.
    """
    out, rest = options.out, max(1 - options.failing - options.uncertain, 0.0)
    check_new(out, force=options.force)
    found = mine(
        options.db,
        n=options.n,
        metric=options.metric or None,
        since=time.time() - options.days * 86_400 if options.days else None,
        shares={"failing": options.failing, "uncertain": options.uncertain, "rest": rest},
        mask=function_of(options.mask, option="--mask") if options.mask else None,
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


def _show(console: Console, found: Mined, out: Path) -> None:
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
