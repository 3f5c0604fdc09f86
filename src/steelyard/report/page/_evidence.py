"""How the passages of turns are known, and what their values are."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard._internal.text import shorten
from steelyard.report.figures import MetricFigure
from steelyard.report.queries import Totals


def evidence_words(totals: Totals) -> str:
    """`How the passages are known: known 73 %, none 27 % of 1,181 turns`; empty if not counted."""
    if not totals.evidence:
        return ""
    kinds = ", ".join(f"{kind} {_share(count, totals.turns)}" for kind, count in totals.evidence.items())
    turns = "1 turn" if totals.turns == 1 else f"{totals.turns:,} turns"
    return f"How the passages are known: {kinds} of {turns}"


def bounds_words(metric: MetricFigure) -> str:
    """`0.72 to 0.96 whatever the 10 % of turns without a value are`; empty if hardly any has none."""
    if metric.bounds is None:
        return ""
    low, high = metric.bounds
    share = f"{metric.missing:.0%}".replace("%", " %")
    return f"{low:.2f} to {high:.2f} whatever the {share} of turns without a value are"


def shown_words(metrics: Sequence[MetricFigure]) -> list[str]:
    """Which value of each score the figures are of, one sentence for each kind that there is."""
    sentences = {
        "expectation": "the expectation of the formula under the judge's probabilities (`value`; the formula "
        "on bare verdicts is `hard_value`)",
        "verdicts": "the formula on the judge's verdicts (`value`, there is no `hard_value`)",
        "both": "of some turns an expectation under the judge's probabilities, of others the formula on bare "
        "verdicts: their mean says little",
    }
    return [
        f"Values of {', '.join(shorten(name, 40) for name in names)}: {said}."
        for kind, said in sentences.items()
        if (names := [one.metric for one in metrics if one.shows == kind])
    ]


def _share(count: int, turns: int) -> str:
    share = f"{count / turns:.0%}".replace("%", " %")
    # A single turn among thousands is there, and a few that are missing are missing.
    if share == "0 %":
        return "below 1 %"
    return "above 99 %" if share == "100 %" and count < turns else share
