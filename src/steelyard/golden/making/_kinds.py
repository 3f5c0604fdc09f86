"""The kinds of question that are made, in what shares, and in what words they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from steelyard._internal.text import instead_of
from steelyard.errors import ConfigurationError

CaseKind = Literal[
    "single_passage", "multi_passage", "comparison", "follow_up", "unanswerable", "false_premise"
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """How a kind of question is made."""

    share: float
    """Its share of the cases, where nothing else is wanted."""
    passages: int
    """How many related passages it is made from."""
    wanted: str
    """What the model is asked for."""
    answerable: bool = True
    """Whether the passages answer it."""


KINDS: Mapping[CaseKind, Kind] = {
    "single_passage": Kind(
        share=0.4, passages=1, wanted="a question that one or two sentences of its passage answer"
    ),
    "multi_passage": Kind(
        share=0.2, passages=2, wanted="a question whose answer needs a sentence of each of its two passages"
    ),
    "comparison": Kind(
        share=0.1, passages=2, wanted="a question that compares something its two passages both tell of"
    ),
    "follow_up": Kind(
        share=0.1,
        passages=1,
        wanted="a short conversation (history: the user's first question and its answer), and then a "
        "follow-up question that is understood only with it and that the passage answers",
    ),
    "unanswerable": Kind(
        share=0.1,
        passages=1,
        wanted="a question about the passage's subject that the passage does not answer; sentences: the one "
        "that comes nearest; reference: that this cannot be known from it",
        answerable=False,
    ),
    "false_premise": Kind(
        share=0.1,
        passages=1,
        wanted="a question that takes for granted something the passage says is wrong; sentences: the ones "
        "that say so; reference: the correction",
    ),
}


def quotas(n: int, shares: Mapping[CaseKind, float] | None = None) -> dict[CaseKind, int]:
    """How many cases of each kind make n, by largest remainders.

    Raises:
        ConfigurationError: If a share is negative, of no kind, or all are 0.
    """
    wanted = {kind: KINDS[kind].share for kind in KINDS} if shares is None else dict(shares)
    unknown = [kind for kind in wanted if kind not in KINDS]
    if unknown:
        raise ConfigurationError(
            f"no kind of question is called {unknown[0]!r}; {instead_of(unknown[0], KINDS)}"
        )
    total = sum(wanted.values())
    if any(share < 0 for share in wanted.values()) or not total > 0:
        raise ConfigurationError(f"shares must not be negative, and not all 0: {wanted!r}")
    exact = {kind: n * share / total for kind, share in wanted.items()}
    found = {kind: int(count) for kind, count in exact.items()}
    for kind in sorted(exact, key=lambda kind: found[kind] - exact[kind])[: n - sum(found.values())]:
        found[kind] += 1
    return found
