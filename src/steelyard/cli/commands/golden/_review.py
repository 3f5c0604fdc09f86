"""`steelyard golden review`: a case, a key, the next one."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from steelyard._internal.text import printable, shorten
from steelyard.cli._options import GoldenSetFile
from steelyard.cli._words import counted
from steelyard.errors import ConfigurationError
from steelyard.golden import Case, GoldenSet
from steelyard.golden.mining import Review, apply_labels

_KEYS = (
    "g the answer is good   b it is bad   k keep without a word on the answer   e edit the reference   "
    "w reword the question   d drop   s skip   q stop"
)
_LONGEST = 1_200
_MOST_CONTEXTS = 4


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
    console = Console(highlight=False)
    if labels:
        _from_view(console, golden, labels)
        return
    review = Review.open(golden, who=who or _user())
    pending = review.pending
    if not pending:
        console.print(f"all {counted(len(review.golden), 'case')} of {golden} are reviewed")
        return
    console.print(f"{counted(len(pending), 'case')} to review, as {review.who}. {_KEYS}", soft_wrap=True)
    for number, case in enumerate(pending, start=1):
        _show(console, case, f"{number} of {len(pending)}")
        if not _decide(console, review, case):
            break
    console.print(f"{counted(len(review.pending), 'case')} left; version {review.golden.version}")


def _decide(console: Console, review: Review, case: Case) -> bool:
    """Ask until there is a decision; False where the person stops."""
    actions: dict[str, Callable[[], None]] = {
        "g": lambda: review.accept(case, label="good"),
        "b": lambda: review.accept(case, label="bad"),
        "k": lambda: review.accept(case),
        "e": lambda: review.accept(case, reference=_asked("reference")),
        "w": lambda: review.accept(case, question=_asked("question")),
        "d": lambda: review.drop(case),
        "s": lambda: None,
    }
    while True:
        try:
            key = typer.prompt("g b k e w d s q", prompt_suffix=" > ").strip().lower()
        # Ctrl-C and the end of the input mean the same as q: what was decided is saved.
        except (typer.Abort, EOFError):
            return False
        if key == "q":
            return False
        if key in actions:
            actions[key]()
            return True
        console.print(_KEYS, soft_wrap=True)


def _asked(what: str) -> str:
    return str(typer.prompt(what, prompt_suffix=": ")).strip()


def _show(console: Console, case: Case, where: str) -> None:
    console.print()
    console.print(
        Text(f"{where}  {case.id}  {case.source} {case.kind}".rstrip(), style="dim"), soft_wrap=True
    )
    for message in case.history:
        console.print(Text(f"{message.role}: {shorten(message.text, _LONGEST)}", style="dim"), soft_wrap=True)
    console.print(Text(shorten(case.question, _LONGEST), style="bold"), soft_wrap=True)
    if case.answer is not None:
        console.print(Text(f"answer: {shorten(case.answer, _LONGEST)}"), soft_wrap=True)
    if case.reference:
        console.print(Text(f"reference: {shorten(case.reference, _LONGEST)}", style="green"), soft_wrap=True)
    for name, texts in (("rests on", case.reference_contexts), ("context", case.contexts)):
        for text in texts[:_MOST_CONTEXTS]:
            console.print(Text(f"{name}: {shorten(text, _LONGEST)}", style="dim"), soft_wrap=True)
    if scores := case.metadata.get("scores"):
        line = ", ".join(f"{name} {value:.2f}" for name, value in scores.items())
        console.print(Text(printable(line), style="cyan"), soft_wrap=True)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise ConfigurationError("who reviews? give a name with --as") from None


def _from_view(console: Console, path: Path, db: str) -> None:
    """Take what people said in the live view as the review of the cases of these turns."""
    from steelyard.report import open_labels

    said = [(label.record_id, label.value, label.who) for label in open_labels(db) if label.claim is None]
    golden, found = apply_labels(GoldenSet.load(path), said)
    golden.save(path)
    console.print(f"{counted(found, 'case')} labelled in the view; {len(golden.unreviewed)} left to review")
