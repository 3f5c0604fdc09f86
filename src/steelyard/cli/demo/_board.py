"""What the demo shows: a row as soon as a question is scored, then the comparison and what to do next."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from steelyard._internal.text import shorten
from steelyard.cli._terminal import figures_table
from steelyard.cli._words import amount, worst_verdict
from steelyard.golden.gates import MetricComparison
from steelyard.report import reason_of
from steelyard.scores import Evaluation, Score

COLUMNS = ("faithfulness", "hallucination")
"""The metrics that have a column for each chain."""

_CELL = 4
_GAP = 2
_WIDEST = 150


class Board:
    """Prints to one console, in rows that never wrap, whatever its width."""

    def __init__(self, console: Console) -> None:
        self._console = console
        cells = 2 * len(COLUMNS) * (_CELL + _GAP)
        room = max(min(console.width, _WIDEST) - cells - _GAP, 40)
        self._question = room * 45 // 100
        self._verdict = room - self._question

    def head(self, *, about: str, way: str) -> None:
        """Say what is going to be seen."""
        self.say()
        self.say("A RAG chain on the balance", style="bold")
        self.say(about)
        self.say()
        self.say("  A  the chain as it is")
        self.say("  B  the same chain, with numbers, names and negations in its answers altered")
        self.say()
        self.say(way, style="dim")
        self.say("faithful: claims that the contexts carry; contradicted: claims that they deny", style="dim")
        self.say()
        gap = " " * _GAP
        wide = 2 * _CELL + _GAP
        self.say(
            f"{'':<{self._question}}{gap}{'faithful':^{wide}}{gap}{'contradicted':^{wide}}", style="bold"
        )
        names = gap.join(f"{name:>{_CELL}}" for name in ("A", "B") * len(COLUMNS))
        self.say(f"{'Question':<{self._question}}{gap}{names}{gap}What speaks against B", style="bold")
        self.say("─" * (self._question + self._verdict + 2 * len(COLUMNS) * (_CELL + _GAP) + _GAP))

    def row(self, question: str, first: Evaluation, second: Evaluation) -> None:
        """One question, scored for both chains."""
        gap = " " * _GAP
        line = Text(f"{shorten(question, self._question):<{self._question}}")
        for metric in COLUMNS:
            for evaluation in (first, second):
                line.append(gap).append(_mark(evaluation[metric]))
        against = _against(second, self._verdict)
        self._console.print(line.append(gap).append(against), no_wrap=True, crop=True)

    def comparison(self, differences: Sequence[MetricComparison]) -> None:
        """How the chains differ, metric by metric."""
        table = figures_table("Mean over questions", "A", "B", "B - A", "95 % interval", "Questions")
        for metric in differences:
            one = metric.difference
            style = "bold" if one.clear else "dim"
            interval = f"{one.low:+.2f} to {one.high:+.2f}"
            cells = (amount(one.first), amount(one.second), f"{one.value:+.2f}", interval, str(one.n))
            table.add_row(Text(metric.metric), *(Text(cell, style=style) for cell in cells))
        self.say()
        self._console.print(table)
        self.say()

    def steps(self, title: str, steps: Sequence[tuple[str, str]]) -> None:
        """Commands and what they do."""
        self.say()
        self.say(title, style="bold")
        width = max(len(command) for command, _ in steps) + _GAP
        for command, what in steps:
            shown = f"{command:<{width}}" if what else command
            self._console.print(Text.assemble("  ", (shown, "cyan"), what), soft_wrap=True)

    def say(self, text: str = "", *, style: str = "") -> None:
        """A line of text."""
        self._console.print(Text(text, style=style))


def _mark(score: Score) -> Text:
    if score.value is None:
        return Text(f"{'n/a' if score.status == 'not_applicable' else 'fail':>{_CELL}}", style="dim")
    return Text(f"{amount(score.value):>{_CELL}}", style="green" if score.passed else "red")


def _against(evaluation: Evaluation, width: int) -> Text:
    """The worst verdict: why, and as much of the sentence as there is room for."""
    scores = [evaluation[metric] for metric in COLUMNS]
    verdict = next((found for score in scores if (found := worst_verdict(score))), None)
    if verdict is None:
        missing = next((score.explanation for score in scores if score.value is None), "nothing")
        return Text(shorten(missing, width), style="dim")
    reason = reason_of(verdict)
    room = width - len(reason) - 4
    return Text(shorten(f'{reason}: "{shorten(verdict.about, room)}"' if room >= 16 else reason, width))
