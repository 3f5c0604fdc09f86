"""Why a turn went wrong: the cause, what speaks for it, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Cause = Literal[
    "step_failed",
    "answer_cut_short",
    "nothing_retrieved",
    "passages_not_shown",
    "passage_lost",
    "passage_cut",
    "outside_collection",
    "passage_not_found",
    "passages_conflict",
    "evasive",
    "contradicted",
    "ignored",
    "distracted",
    "invented",
    "unknown",
]
"""What a turn can suffer from, in the order in which it passes through it; see docs/explain/diagnosis.md."""

CAUSES: tuple[Cause, ...] = get_args(Cause)

Backing = Literal["earned", "lucky"]
"""Whether a good answer came from passages that hold it, or from what the model knew anyway."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """One time that a bad turn was answered again."""

    name: str
    """Under which condition: `as it was`, `closed book`, `wider search`, `all but passage 2` ..."""
    good: bool | None = None
    """Whether the answer was good then; None if nobody could tell."""
    same: bool = False
    """Whether it was the answer that the turn had, word for word."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """What one turn suffers from, or that it is fine. It holds no content: places and names alone."""

    cause: Cause | None = None
    """The cause; None for a turn in which nothing was found wrong."""
    rule: str = ""
    """The rule that found it, as docs/explain/diagnosis.md has it."""
    strength: float = 0.0
    """How much the rule is worth, in 0..1: the probability or share that it went by; 0 without a cause."""
    because: str = ""
    """What speaks for it, in a sentence without content."""
    contexts: tuple[int, ...] = ()
    """The passages that it is about, as indices into `Record.contexts`."""
    lost: tuple[int, ...] = ()
    """Passages that were found and not shown: their places in what `stage` returned, or, if that is empty, in
    `Record.retrieved`."""
    claim: int | None = None
    """The first claim that fails, as an index into the verdicts of `metric`."""
    metric: str = ""
    """The metric whose verdicts decided."""
    stage: str = ""
    """The last step of the retrieval that had them; empty if the retrieval as a whole returned them."""
    answered_anyway: bool = False
    """Whether the application answered although what was shown could not tell."""
    backing: Backing | None = None
    """Of a good turn, whether its answer was earned; None where nobody judged what was shown."""
    trials: tuple[Trial, ...] = ()
    """What experiments with the turn have tried, in this order."""

    @property
    def bad(self) -> bool:
        """Whether anything is wrong."""
        return self.cause is not None
