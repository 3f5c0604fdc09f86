"""`steelyard label`: a person's word on turns, given in the terminal."""

from __future__ import annotations

import getpass
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Annotated

import typer

from steelyard._internal.text import printable, shorten
from steelyard.cli._options import Results
from steelyard.cli._say import amount, counted, say
from steelyard.record import Record
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
        str, typer.Option(metavar="NAME", help="Who labels; your login name if none is given.")
    ] = "",
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many turns to label now.")] = 20,
    only_list: Annotated[
        bool, typer.Option("--next", help="Only list the turns that come next, the most useful first.")
    ] = False,
) -> None:
    """Label turns as good or bad; those whose labels tell the most come first.

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

    stored = 0
    # What was said is stored at once, whenever the person has had enough.
    with suppress(_Quit):
        for place, (judged, chance) in enumerate(found.turns, 1):
            with closing(open_results(db)) as results:
                evaluation = results.evaluation(judged.record_id)
            if evaluation is None or evaluation.record is None:
                continue
            _show(evaluation.record, f"{place} of {len(found.turns)}")
            for value, claim in _of_claims(evaluation[metric]) if metric else _of_turn(evaluation):
                label = Label(
                    record_id=judged.record_id,
                    value=value,
                    who=who or getpass.getuser(),
                    labelled_at=time.time(),
                    metric=metric or None,
                    claim=claim,
                    drawn=chance,
                )
                open_labels(db).put([label])
                stored += 1
    say(f"stored {counted(stored, 'label')}")


class _Quit(Exception):
    """The person has had enough."""


def _show(record: Record, place: str) -> None:
    say(f"\n-- {place} {'-' * 50}")
    say(f"Question: {shorten(record.asked, _ANSWER)}")
    for number, context in enumerate(record.contexts[:_CONTEXTS], 1):
        say(f"  [{number}] {shorten(context.text, _CONTEXT)}")
    if len(record.contexts) > _CONTEXTS:
        say(f"  and {counted(len(record.contexts) - _CONTEXTS, 'more passage')}")
    say(f"Answer: {shorten(record.answer, _ANSWER)}")


def _of_turn(evaluation: Evaluation) -> Iterator[tuple[LabelValue, None]]:
    letter = _letter("Is this a good answer? [g]ood [b]ad [s]kip [q]uit: ", "gbs")
    if letter != "s":
        # Stored before the judge's word is shown, which must not sway anybody.
        yield ("good" if letter == "g" else "bad"), None
        said = ", ".join(
            f"{printable(score.metric)} {amount(score.value)}"
            for score in evaluation.scores
            if score.value is not None
        )
        say(f"The judge: {said}")


def _of_claims(score: Score) -> Iterator[tuple[LabelValue, int]]:
    for place, verdict in enumerate(score.verdicts):
        say(f"Claim {place + 1} of {len(score.verdicts)}: {shorten(verdict.about, _ANSWER)}")
        letter = _letter("Do the passages support it? [y]es [n]o [s]kip [q]uit: ", "yns")
        if letter != "s":
            yield ("supported" if letter == "y" else "not_supported"), place


def _letter(question: str, letters: str) -> str:
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
