"""`steelyard label`: a person's word on turns, given in the terminal."""

from __future__ import annotations

import getpass
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from steelyard._internal.text import printable, shorten
from steelyard.calibration import Judged
from steelyard.cli._options import Results
from steelyard.cli._say import amount, counted, say
from steelyard.report import Label, LabelValue, open_labels, open_results
from steelyard.scores import Evaluation, Score
from steelyard.view.labelling import turns_to_label

_ANSWER = 3_000
_CONTEXT = 1_200
_CONTEXTS = 10


def label(
    db: Results = "steelyard.db",
    metric: Annotated[
        str,
        typer.Option("--metric", "-m", metavar="M", help="Label the claims of this metric, not whole turns."),
    ] = "",
    who: Annotated[
        str, typer.Option(metavar="NAME", help="Who labels; your login name where none is given.")
    ] = "",
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many turns to label now.")] = 20,
    only_list: Annotated[
        bool, typer.Option("--next", help="Only list the turns that come next, the most useful first.")
    ] = False,
) -> None:
    """Say of turns whether they are good; the turns whose labels tell the most come first.

    Without `--metric` a turn as a whole is good or bad; with it, each claim the metric judged is supported or
    not. What the judge said is shown only afterwards, so that it does not sway you. Labels are stored at
    once: leave with q whenever you like. `steelyard calibrate` makes use of them.

    **Examples**

    - `steelyard label`
    - `steelyard label --next`
    - `steelyard label --metric faithfulness --count 50 --who ada`
    """
    found = turns_to_label(db, metric=metric or None, limit=count)
    say(f"{counted(found.labelled, 'turn')} labelled; order by {printable(found.metric)}")
    if only_list:
        for judged, _ in found.turns:
            say(f"{printable(judged.record_id)}  score {amount(judged.value)}")
        return

    stored = _Sitting(db=db, who=who or getpass.getuser()).run(found.turns, metric or None)
    say(f"stored {counted(stored, 'label')}")


class _Quit(Exception):
    """The person has had enough."""


@dataclass(frozen=True, kw_only=True)
class _Sitting:
    """One sitting."""

    db: str
    """The results."""
    who: str
    """Who labels."""

    def run(self, turns: list[tuple[Judged, float]], metric: str | None) -> int:
        """Ask about turns, or about the claims of one metric in them; returns how many labels were stored."""
        count = 0
        for place, (judged, chance) in enumerate(turns, 1):
            evaluation = self._evaluation(judged.record_id)
            if evaluation is None or evaluation.record is None:
                continue
            self._show(evaluation, f"{place} of {len(turns)}")
            try:
                for label in self._of_claims(evaluation, metric) if metric else self._of_turn(evaluation):
                    open_labels(self.db).put([replace(label, drawn=chance)])
                    count += 1
            except _Quit:
                return count
        return count

    def _evaluation(self, record_id: str) -> Evaluation | None:
        with closing(open_results(self.db)) as results:
            return results.evaluation(record_id)

    def _show(self, evaluation: Evaluation, place: str) -> None:
        record = evaluation.record
        assert record is not None
        say(f"\n-- {place} {'-' * 50}")
        say(f"Question: {shorten(record.asked, _ANSWER)}")
        for number, context in enumerate(record.contexts[:_CONTEXTS], 1):
            say(f"  [{number}] {shorten(context.text, _CONTEXT)}")
        if len(record.contexts) > _CONTEXTS:
            say(f"  and {counted(len(record.contexts) - _CONTEXTS, 'more passage')}")
        say(f"Answer: {shorten(record.answer, _ANSWER)}")

    def _of_turn(self, evaluation: Evaluation) -> Iterator[Label]:
        letter = self._letter("Is this a good answer? [g]ood [b]ad [s]kip [q]uit: ", "gbs")
        if letter != "s":
            # Stored before the judge's word is shown, which must not sway anybody.
            yield self._label(evaluation, "good" if letter == "g" else "bad")
            said = ", ".join(
                f"{printable(score.metric)} {amount(score.value)}"
                for score in evaluation.scores
                if score.value is not None
            )
            say(f"The judge: {said}")

    def _of_claims(self, evaluation: Evaluation, metric: str) -> Iterator[Label]:
        score: Score = evaluation[metric]
        for place, verdict in enumerate(score.verdicts):
            say(f"Claim {place + 1} of {len(score.verdicts)}: {shorten(verdict.about, _ANSWER)}")
            letter = self._letter("Do the passages support it? [y]es [n]o [s]kip [q]uit: ", "yns")
            if letter != "s":
                yield self._label(
                    evaluation, "supported" if letter == "y" else "not_supported", metric, place
                )

    def _letter(self, question: str, letters: str) -> str:
        while True:
            say(question, end="")
            try:
                letter = input().strip().lower()[:1]
            except EOFError:
                say()
                raise _Quit from None
            if letter == "q":
                raise _Quit
            if letter and letter in letters:
                return letter
            say(f"please answer with one of {', '.join(letters)} or q")

    def _label(
        self, evaluation: Evaluation, value: LabelValue, metric: str | None = None, claim: int | None = None
    ) -> Label:
        return Label(
            record_id=evaluation.record_id,
            value=value,
            who=self.who,
            labelled_at=time.time(),
            metric=metric,
            claim=claim,
        )
