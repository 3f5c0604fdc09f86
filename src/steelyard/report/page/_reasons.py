"""Why a verdict speaks against an answer, in few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steelyard.scores import Verdict


def explain_verdict(verdict: Verdict) -> str:
    """Why, in few words: what the judge found missing or turned round, or else its own words."""
    notes = verdict.evidence[0].notes if verdict.evidence else {}
    found = [f"{item} is in no context" for item in _items(notes, "missing_numbers", "missing_names")]
    if notes.get("negation_flip"):
        found.append("negation turned round")
    return "; ".join(found) or verdict.reason or _PLAIN.get(verdict.kind, "")


def _items(notes: Mapping[str, Any], *names: str) -> list[str]:
    return [str(item) for name in names for item in notes.get(name) or ()]


_PLAIN: Mapping[str, str] = {
    "supported": "not supported",
    "contradicted": "contradicted",
    "led_astray": "wrong, and from a context",
    "noncommittal": "evasive",
    "useful": "not useful",
    "relevant": "beside the question",
    "same": "only on one side",
}
