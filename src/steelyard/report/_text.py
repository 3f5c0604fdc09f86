"""Judged text made harmless to look at. Positions stay as they are: a character is replaced by one."""

from __future__ import annotations

import re

from steelyard.report.figures import PeopleFigure
from steelyard.stats import Estimate

_UNSAFE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def visible(text: str) -> str:
    """The text with a replacement character for each that steers a terminal, a browser or the direction."""
    return _UNSAFE.sub("\ufffd", text)


def one_line(text: str, width: int) -> str:
    """At most so many characters on one line."""
    flat = " ".join(visible(text[: 4 * width + 100]).split())
    return flat if len(flat) <= width else flat[: max(width - 1, 0)].rstrip() + "…"


def people_words(found: PeopleFigure) -> str:
    """What people's labels say of a metric, in a sentence."""
    if found.corrected is None:
        parts = [f"{found.labelled:,} labelled turns: from 10 on, the mean is corrected by them"]
    else:
        parts = [
            f"people would call {_range(found.corrected)} good, where the judge's mean is "
            f"{'-' if found.raw is None else f'{found.raw.value:.2f}'}"
        ]
        parts.append(f"from {found.labelled:,} labelled of {found.scored:,} scored turns")
    if found.kappa is not None:
        parts.append(f"kappa {_range(found.kappa)}")
    if found.area is not None:
        parts.append(f"AUROC {_range(found.area)}")
    if found.people is not None:
        parts.append(f"kappa among people {_range(found.people)}")
    if found.contradictory:
        parts.append(f"{found.contradictory:,} turns left out because people differ")
    return "; ".join(parts)


def _range(found: Estimate) -> str:
    return f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"
