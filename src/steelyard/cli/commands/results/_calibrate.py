"""`steelyard calibrate`: from people's labels to what a judge's scores mean."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from steelyard._internal.text import printable
from steelyard.calibration import Assessment, Calibration, Fit, Refusal, assess
from steelyard.cli._options import Results
from steelyard.cli._say import counted, say
from steelyard.stats import Estimate
from steelyard.view.labelling import LabelledResults


def calibrate(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[LABELS]...",
            help="Further labels: .csv or .jsonl as `steelyard labels export` writes them, .json as Phoenix "
            "and Langfuse export them.",
        ),
    ] = None,
    db: Results = "steelyard.db",
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where the calibration goes.")
    ] = Path("steelyard-calibration.json"),
    metric: Annotated[str, typer.Option("--metric", "-m", metavar="M", help="Only this metric.")] = "",
    turns: Annotated[int, typer.Option(min=1, help="Use only the latest so many turns.")] = 10_000,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write no file.")] = False,
) -> None:
    """Compare each judge with people's labels, and write down what its scores mean.

    For each metric and judge that has labels: how far judge and people agree, a map from the score to the
    probability that people call the turn good, the share of good turns corrected by the labels, and how many
    more labels would halve its interval. Nothing is calibrated on fewer than 30 labels, on fewer than 8 good
    or 8 bad ones, or if the judge's scores do not follow the labels; the page says so.

    Give the file to a Monitor: `Monitor(calibration="steelyard-calibration.json")`, or `calibration` in
    steelyard.toml. Scores then carry the calibrated value beside their own.

    Exit status: 0 a calibration was made; 1 nothing could be calibrated, or a line of a file holds no label;
    2 wrong usage.

    **Examples**

    - `steelyard calibrate`
    - `steelyard calibrate phoenix.json --db steelyard.db --out calibration.json`
    """
    sources = LabelledResults(db, files or (), metric or None, turns)
    found = [assess(one) for one in sources.material() if one.labelled or one.answers.contradictory]
    for assessment in found:
        say("\n".join([*_page(assessment), ""]))
    _tell_problems(sources.problems)
    fits = {one.key: one.fit for one in found if isinstance(one.fit, Fit)}
    if not found:
        say("No judged turn has a label: give some with `steelyard label` or `steelyard serve`.")
    elif not fits:
        say("Nothing was calibrated.")
    elif not dry_run:
        made = Calibration.of(fits)
        made.save(out)
        say(f"wrote calibration {made.version} with {len(fits)} of {len(found)} maps to {out}")
    if not fits or sources.problems:
        raise typer.Exit(1)


def _tell_problems(problems: Sequence[str]) -> None:
    for problem in problems[:20]:
        say(printable(problem), err=True)
    if problems:
        say(f"{len(problems)} lines or annotations hold no label of a turn here", err=True)


_SHOWN = 5


def _page(assessment: Assessment) -> list[str]:
    """One metric and judge, in words."""
    key, agreement = assessment.key, assessment.agreement
    title = f"{key.metric}, judged by {key.judge}, prompt version {key.prompt_version or '-'}"
    said = f"{counted(agreement.n, 'labelled turn')} of {assessment.turns:,}, {agreement.good} of them good"
    if agreement.picked:
        said += f"; {agreement.picked} picked by people, {agreement.n - agreement.picked} drawn"
    if agreement.of_turns:
        said += f"; {agreement.of_turns} by labels of the whole turn"
    lines = [printable(title), f"  labels       {said}"]
    if agreement.contradictory:
        lines.append(f"  left out     {_contradictory(agreement.contradictory)}")
    if agreement.people is not None:
        lines.append(f"  people       agree among each other: kappa {_words(agreement.people)}")
    if agreement.kappa is not None:
        lines.append(f"  agreement    of judge and people: kappa {_words(agreement.kappa)}")
    if agreement.area is not None:
        lines.append(f"  AUROC        {_words(agreement.area)}")
    lines += [f"  calibration  {line}" for line in _calibration(assessment.fit)]
    return lines + _means(assessment)


def _calibration(made: Fit | Refusal) -> list[str]:
    if isinstance(made, Refusal):
        return [f"none ({made.cause}): {made.explanation}"]
    of = "the score" if made.signal == "value" else "the probability of the worst verdict"
    return [
        f"{made.map.method} over {of}: calibration error {made.error_before:.3f} -> {made.error_after:.3f}, "
        f"squared error {made.squared_before:.3f} -> {made.squared_after:.3f} (cross-validated)"
    ]


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


def _contradictory(records: Sequence[str]) -> str:
    shown = ", ".join(printable(record)[:40] for record in records[:_SHOWN])
    more = f" and {len(records) - _SHOWN} more" if len(records) > _SHOWN else ""
    return f"{counted(len(records), 'turn')} on which as many people say good as bad: {shown}{more}"


def _words(estimate: Estimate) -> str:
    return f"{estimate.value:.2f} ({estimate.low:.2f} to {estimate.high:.2f})"
