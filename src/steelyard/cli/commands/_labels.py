"""`steelyard label`, `labels` and `calibrate`: people's word on turns, and what scores mean by it."""

from __future__ import annotations

import getpass
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer
from typer import Argument, Option

from steelyard._internal.files import owners_alone
from steelyard._internal.text import counted, printable, shorten
from steelyard.cli._options import RESULTS
from steelyard.cli._say import amount, say
from steelyard.results import open_labels, open_results
from steelyard.results.labels import Label, LabelValue

if TYPE_CHECKING:
    from steelyard.calibration import Assessment, Fit, Refusal
    from steelyard.record import Record
    from steelyard.scores import Evaluation, Score
    from steelyard.stats import Estimate

_ANSWER = 3_000
_CONTEXT = 1_200
_CONTEXTS = 10
_PROBLEMS = 20


def label(
    db: str = RESULTS,
    metric: str = Option(
        "", "--metric", "-m", metavar="M", help="Label the claims of this metric, not whole turns."
    ),
    who: str = Option("", metavar="NAME", help="Who labels; your login name if none is given."),
    count: int = Option(20, "--count", "-n", min=1, help="How many turns to label now."),
) -> None:
    """Label turns as good or bad; those whose labels tell the most come first.

    Without `--metric` a turn as a whole is good or bad; with it, each claim the metric judged is supported or
    not. What the judge said is shown only afterwards, so that it does not sway you. Labels are stored at
    once: leave with q whenever you like. `steelyard calibrate` makes use of them.

    **Examples**

    - `steelyard label`
    - `steelyard label --metric faithfulness --count 50 --who ada`
    """
    from steelyard.view.labelling import turns_to_label

    found = turns_to_label(db, metric=metric or None, limit=count)
    say(f"{counted(found.labelled, 'turn')} labelled; order by {printable(found.metric)}")
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


labels = typer.Typer(help="Export labels from a results file, or import them.", no_args_is_help=True)
_FILE = Argument(..., metavar="FILE", help="A file ending in .csv or .jsonl.")


@labels.command("export")
def export_(file: Path = _FILE, db: str = RESULTS) -> None:
    """Write all labels to a CSV or JSONL file.

    **Examples**

    - `steelyard labels export labels.csv`
    """
    from steelyard.view import export_labels

    form = _form(file)
    with open(file, "w", encoding="utf-8", newline="", opener=owners_alone) as opened:
        say(f"wrote {export_labels(open_labels(db), opened, form=form)} labels to {file}")


@labels.command("import")
def import_(file: Path = _FILE, db: str = RESULTS) -> None:
    """Read labels from a CSV or JSONL file; a person's later label replaces the earlier one.

    Exit status 1 if a line holds no label; the others are stored.

    **Examples**

    - `steelyard labels import labels.csv --db prod.db`
    """
    from steelyard.view import import_labels

    problems: list[str] = []
    with file.open(encoding="utf-8", errors="replace", newline="") as opened:
        read = list(import_labels(opened, form=_form(file), problems=problems))
    stored = open_labels(db).put(read)
    say(f"stored {stored} of {len(read)} labels")
    if _tell_problems(problems, "lines hold no label"):
        raise typer.Exit(1)


def _form(file: Path) -> Literal["csv", "jsonl"]:
    if file.suffix not in (".csv", ".jsonl"):
        raise typer.BadParameter(f"{str(file)!r} must end in .csv or .jsonl")
    return "csv" if file.suffix == ".csv" else "jsonl"


def _tell_problems(problems: Sequence[str], what: str) -> bool:
    for problem in problems[:_PROBLEMS]:
        say(printable(problem), err=True)
    if problems:
        say(f"{len(problems)} {what}", err=True)
    return bool(problems)


def calibrate(
    files: list[Path] | None = Argument(
        None,
        metavar="[LABELS]...",
        help="Further labels: .csv or .jsonl as `steelyard labels export` writes them, .json as Phoenix "
        "and Langfuse export them.",
    ),
    db: str = RESULTS,
    out: Path = Option(
        Path("steelyard-calibration.json"), "--out", "-o", metavar="FILE", help="Where the calibration goes."
    ),
    metric: str = Option("", "--metric", "-m", metavar="M", help="Only this metric."),
) -> None:
    """Compare each judge with people's labels, and write down what its scores mean.

    For each metric and judge that has labels: how far judge and people agree, a map from the score to the
    probability that people call the turn good, the share of good turns corrected by the labels, and how many
    more labels would halve its interval. Nothing is calibrated on fewer than 30 labels, on fewer than 8 good
    or 8 bad ones, or if the judge's scores do not follow the labels; the page says so.

    Give the file to a Monitor: `Monitor(calibration="steelyard-calibration.json")`, or `calibration` in
    steelyard.toml. Scores then carry the calibrated value beside their own. The latest 10,000 turns count.

    Exit status: 0 a calibration was made; 1 nothing could be calibrated, or a line of a file holds no label;
    2 wrong usage.

    **Examples**

    - `steelyard calibrate`
    - `steelyard calibrate phoenix.json --db steelyard.db --out calibration.json`
    """
    from steelyard.calibration import Calibration, Fit, assess
    from steelyard.view.labelling import LabelledResults

    sources = LabelledResults(db, files or (), metric or None)
    found = [assess(one) for one in sources.material() if one.labelled or one.answers.contradictory]
    for assessment in found:
        say("\n".join([*_page(assessment), ""]))
    has_problems = _tell_problems(sources.problems, "lines or annotations hold no label of a turn here")
    fits = {one.key: one.fit for one in found if isinstance(one.fit, Fit)}
    if not found:
        say("No judged turn has a label: give some with `steelyard label` or `steelyard serve`.")
    elif not fits:
        say("Nothing was calibrated.")
    else:
        made = Calibration.of(fits)
        made.save(out)
        say(f"wrote calibration {made.version} with {len(fits)} of {len(found)} maps to {out}")
    if not fits or has_problems:
        raise typer.Exit(1)


_SHOWN = 5


def _page(assessment: Assessment) -> list[str]:
    key, agreement = assessment.key, assessment.agreement
    title = f"{key.metric}, judged by {key.judge}, prompt version {key.prompt_version or '-'}"
    said = f"{counted(agreement.n, 'labelled turn')} of {assessment.turns:,}, {agreement.good} of them good"
    if agreement.picked:
        said += f"; {agreement.picked} picked by people, {agreement.n - agreement.picked} drawn"
    if agreement.of_turns:
        said += f"; {agreement.of_turns} by labels of the whole turn"
    lines = [printable(title), f"  labels       {said}"]
    if agreement.contradictory:
        several = agreement.contradictory
        shown = ", ".join(printable(record)[:40] for record in several[:_SHOWN])
        more = f" and {len(several) - _SHOWN} more" if len(several) > _SHOWN else ""
        turns = f"{counted(len(several), 'turn')} on which as many people say good as bad"
        lines.append(f"  left out     {turns}: {shown}{more}")
    if agreement.people is not None:
        lines.append(f"  people       agree among each other: kappa {_words(agreement.people)}")
    if agreement.kappa is not None:
        lines.append(f"  agreement    of judge and people: kappa {_words(agreement.kappa)}")
    if agreement.area is not None:
        lines.append(f"  AUROC        {_words(agreement.area)}")
    return [*lines, f"  calibration  {_calibration(assessment.fit)}", *_means(assessment)]


def _calibration(made: Fit | Refusal) -> str:
    from steelyard.calibration import Refusal

    if isinstance(made, Refusal):
        return f"none ({made.cause}): {made.explanation}"
    of = "the score" if made.signal == "value" else "the probability of the worst verdict"
    return (
        f"{made.map.method} over {of}: calibration error {made.error_before:.3f} -> {made.error_after:.3f}, "
        f"squared error {made.squared_before:.3f} -> {made.squared_after:.3f} (cross-validated)"
    )


def _means(assessment: Assessment) -> list[str]:
    raw, corrected = assessment.raw_mean, assessment.corrected_mean
    lines = []
    if raw is not None:
        lines.append(f"  mean         as the judge says: {_words(raw)}")
    if corrected is not None:
        lines.append(f"               corrected by labels: {_words(corrected)} of turns are good")
        more = assessment.to_halve
        lines.append(
            f"               about {counted(more, 'more label')} would halve that interval"
            if more is not None
            else "               more labels alone would not halve that interval; judge more turns"
        )
    elif assessment.agreement.picked:
        lines.append("               to correct it, label at least 10 turns that `steelyard label` draws")
    return lines


def _words(estimate: Estimate) -> str:
    return f"{estimate.value:.2f} ({estimate.low:.2f} to {estimate.high:.2f})"
