"""What several commands draw on a terminal alike: a bar while they work, and a table of figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table


@contextmanager
def progress(
    console: Console, what: str, *, total: int | None = None, hidden: bool = False
) -> Iterator[Callable[..., None]]:
    """A bar, if that is a terminal; a log that a program keeps would fill up with it.

    Args:
        console: Where to.
        what: What is being done.
        total: How often it will be done, where that is known.
        hidden: Show none here either.

    Yields:
        Moves the bar: takes `advance`, `completed`, `total` and `description`, as rich does.
    """
    columns = (
        *(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()),
        *(TimeElapsedColumn(), TimeRemainingColumn()),
    )
    shown = console.is_terminal and not hidden
    with Progress(*columns, console=console, transient=True, disable=not shown) as bar:
        yield partial(bar.update, bar.add_task(what, total=total))


def figures_table(*headings: str, names: int = 1, pad: int = 0) -> Table:
    """A table: the first `names` columns on the left, figures on the right, `pad` blanks before each cell."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, pad))
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place < names else "right", no_wrap=True)
    return table
