"""How the passages of turns are known, in a line."""

from __future__ import annotations

from steelyard.report.queries import Totals


def evidence_words(totals: Totals) -> str:
    """`How the passages are known: known 73 %, none 27 % of 1,181 turns`; empty if not counted."""
    if not totals.evidence:
        return ""
    kinds = ", ".join(f"{kind} {_share(count, totals.turns)}" for kind, count in totals.evidence.items())
    turns = "1 turn" if totals.turns == 1 else f"{totals.turns:,} turns"
    return f"How the passages are known: {kinds} of {turns}"


def _share(count: int, turns: int) -> str:
    share = f"{count / turns:.0%}".replace("%", " %")
    # A single turn among thousands is there, and a few that are missing are missing.
    if share == "0 %":
        return "below 1 %"
    return "above 99 %" if share == "100 %" and count < turns else share
