"""What `steelyard calibrate` prints."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard._internal.text import printable
from steelyard.calibration import Assessment, Fit, Refusal
from steelyard.cli._words import counted
from steelyard.stats import Estimate

_SHOWN = 5


def lines_of(assessment: Assessment) -> list[str]:
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
