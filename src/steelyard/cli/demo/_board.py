"""What the demo shows: a row as soon as a question is scored, then the comparison and what to do next."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from steelyard.cli._words import amount, counted, reason_of, shorten, worst_verdict
from steelyard.cli.demo._compare import Difference
from steelyard.scores import Evaluation, Score

__all__ = ["Board"]

_METRIC = "faithfulness"
_NUMBER = 5


class Board:
    """Prints to one console, in lines that never wrap, whatever its width."""

    def __init__(self, console: Console) -> None:
        self._console = console
        room = min(console.width, 140) - 2 * (_NUMBER + 2) - 2
        self._question = room * 45 // 100
        self._verdict = room - self._question

    def head(self, *, model: str, judge: str, passages: int, questions: int) -> None:
        """Say what is going to be seen."""
        say = self._say
        say("")
        say("A RAG chain under the balance", style="bold")
        say(f"{counted(questions, 'question')} over {passages} passages, to two chains. Answers: {model}.")
        say("A  the chain as it is")
        say("B  the same chain, with numbers, names and negations of its answers altered")
        say(f"Each turn is recorded by a callback and scored in the background by {judge}.")
        say("")
        self._row(
            Text("Question", style="bold"),
            Text("A", style="bold"),
            Text("B", style="bold"),
            Text("What weighs most against B", style="bold"),
        )
        self._row(
            Text("─" * self._question), Text("─" * _NUMBER), Text("─" * _NUMBER), Text("─" * self._verdict)
        )

    def row(self, question: str, first: Evaluation, second: Evaluation) -> None:
        """One question, scored for both chains."""
        ours, theirs = first[_METRIC], second[_METRIC]
        self._row(
            Text(shorten(question, self._question)),
            _mark(ours),
            _mark(theirs),
            Text(_against(theirs, self._verdict), style="dim" if theirs.passed is not False else ""),
        )

    def comparison(self, differences: Sequence[Difference], incomparable: Sequence[str]) -> None:
        """Which chain is worse, by which metric, and by how much."""
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        table.add_column("Mean", no_wrap=True)
        for heading in ("A", "B", "B - A", "95 % interval", "Questions"):
            table.add_column(heading, justify="right", no_wrap=True)
        for one in differences:
            style = "bold" if one.clear else "dim"
            interval = f"{one.low:+.2f} to {one.high:+.2f}"
            cells = (amount(one.first), amount(one.second), f"{one.value:+.2f}", interval, str(one.pairs))
            table.add_row(Text(one.metric), *(Text(cell, style=style) for cell in cells))
        self._say("")
        self._console.print(table)
        if incomparable:
            self._say(f"Not scored for two questions or more: {', '.join(incomparable)}", style="dim")
        self._say("")
        self._say(_finding(differences), style="bold")

    def foot(self, lines: Sequence[str], commands: Sequence[tuple[str, str]]) -> None:
        """How the numbers were made, and what to do next."""
        for line in lines:
            self._say(line, style="dim")
        self._say("")
        self._say("Next", style="bold")
        width = max(len(command) for command, _ in commands) + 2
        for command, what in commands:
            self._console.print(Text.assemble("  ", (f"{command:<{width}}", "cyan"), what))

    def _row(self, question: Text, first: Text, second: Text, verdict: Text) -> None:
        grid = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
        grid.add_column(width=self._question, no_wrap=True)
        grid.add_column(width=_NUMBER, justify="right")
        grid.add_column(width=_NUMBER, justify="right")
        grid.add_column(width=self._verdict, no_wrap=True)
        grid.add_row(question, first, second, verdict)
        self._console.print(grid)

    def _say(self, text: str, *, style: str = "") -> None:
        self._console.print(Text(text, style=style))


def _mark(score: Score) -> Text:
    if score.value is None:
        return Text("n/a" if score.status == "not_applicable" else "fail", style="dim")
    return Text(amount(score.value), style="green" if score.passed else "red")


def _against(score: Score, width: int) -> str:
    """The worst verdict of a Score: its reason, and as much of the sentence as there is room for."""
    verdict = worst_verdict(score)
    if verdict is None:
        return shorten(score.explanation if score.value is None else "nothing", width)
    reason = reason_of(verdict)
    room = width - len(reason) - 4
    return shorten(f'{reason}: "{shorten(verdict.about, room)}"' if room >= 12 else reason, width)


def _finding(differences: Sequence[Difference]) -> str:
    """The largest difference that can be told from chance, in a sentence."""
    clear = [one for one in differences if one.clear]
    if not clear:
        return "The two chains cannot be told apart on these questions."
    most = max(clear, key=lambda one: abs(one.value))
    worse, better = ("B", "A") if most.value < 0 else ("A", "B")
    low, high = sorted((abs(most.low), abs(most.high)))
    return (
        f"Chain {worse} is worse: {most.metric} is {abs(most.value):.2f} below chain {better} "
        f"(95 % interval {low:.2f} to {high:.2f}, {most.pairs} questions)."
    )
