"""What commands draw: tables, colours, a bar while they work. Lines go through `_say`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.control import Control
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from steelyard._internal.text import counted, escaped, printable

if TYPE_CHECKING:
    from steelyard.backfill import Unread


class Terminal(Console):
    """Prints tables and colours of ours; no character of the texts in them acts as code."""

    def __init__(self, *, stderr: bool = False) -> None:
        # Names are data: `chat:m:` holds no picture, and `[beta]` no style.
        super().__init__(stderr=stderr, highlight=False, emoji=False, markup=False)
        self.push_render_hook(_EscapeHook())

    def say(self, text: str = "", style: str = "") -> None:
        """Print a text as it is, which the terminal wraps where it must."""
        self.print(Text(text, style=style), soft_wrap=True)


class _EscapeHook(RenderHook):
    """Wraps what is printed; what moves the cursor for a bar is rich's own."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [one if isinstance(one, Control) else _Escaped(one) for one in renderables]


class _Escaped:
    """Something to print, with escapes for the characters of its texts that would act as code."""

    def __init__(self, what: ConsoleRenderable) -> None:
        self._what = what

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for text, style, control in console.render(self._what, options):
            yield Segment(text if control else escaped(text), style, control)


@contextmanager
def progress(
    console: Console, what: str, *, total: int | None = None, hidden: bool = False
) -> Iterator[Callable[..., None]]:
    """A bar, if that is a terminal; a log that a program keeps would fill up with it.

    Yields what moves it: takes `advance`, `completed`, `total` and `description`, as rich does.
    """
    columns = (
        *(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()),
        *(TimeElapsedColumn(), TimeRemainingColumn()),
    )
    shown = console.is_terminal and not hidden
    with Progress(*columns, console=console, transient=True, disable=not shown) as bar:
        yield partial(bar.update, bar.add_task(what, total=total))


def say_unread(console: Terminal, unread: Unread) -> None:
    """Say which columns nothing read, though they seem to hold what turns lack."""
    for (part, column), count in unread.items():
        said = f"{counted(count, 'turn')} without {part}; is that in {column!r}? --map {part}={column}"
        console.say(printable(said), "yellow")


def figures_table(*headings: str, names: int = 1, pad: int = 0) -> Table:
    """A table: the first `names` columns on the left, figures on the right, `pad` blanks before each cell."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, pad))
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place < names else "right")
    return table
