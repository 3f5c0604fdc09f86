"""What `steelyard judge check` found of a judge, as it is stored beside results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from steelyard.probing import JudgeCheck
from steelyard.stats import Estimate


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredCheck:
    """One check of a judge by probes with known answers; see `steelyard.probing.JudgeCheck`."""

    checked_at: float
    """When, as Unix time."""
    judge: str
    """The judge, with its model."""
    prompt_version: str
    """Version of its wording."""
    published: bool
    """Whether by the probes that ship with this version, and not by a set of one's own."""
    right: Estimate
    """Share of probes answered rightly."""
    kinds: Mapping[str, Estimate]
    """The same by kind of probe."""
    bins: tuple[tuple[float, float, int], ...]
    """By tenths of the probability of yes: its mean, the share of probes whose answer is yes, how many."""
    error: float | None
    """Expected calibration error; None for a judge without probabilities."""


def row_of_check(check: JudgeCheck, checked_at: float) -> tuple[float, str, str]:
    """The row of the table `judge_checks`: when, the judge, and all figures as JSON."""
    return checked_at, check.judge, json.dumps(asdict(check), ensure_ascii=False)


def check_of_row(checked_at: float, judge: str, figures: str) -> StoredCheck | None:
    """What a row of the table says; None where it cannot be read."""
    try:
        found = json.loads(figures)
        reliability = found["calibration"] or {"bins": (), "error": None}
        return StoredCheck(
            checked_at=checked_at,
            judge=judge,
            prompt_version=found["prompt_version"],
            published=found["published"],
            right=Estimate(**found["overall"]["right"]),
            kinds={kind: Estimate(**one["right"]) for kind, one in found["kinds"].items()},
            bins=tuple((one["probability"], one["yes"], one["n"]) for one in reliability["bins"]),
            error=reliability["error"],
        )
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError):
        return None
