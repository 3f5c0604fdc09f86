"""What speaks against a claim although its words are there: another owner, order, amount, row or quantity.

Each check compares the claim with one place of the evidence that speaks of the same thing, and answers only
if both say something to the point. All of them are rules of language; none looks at how likely a claim is. A
check stays only while it pays on pairs that it was not written for (docs/trusting-the-judge.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.judge.local._material import Line
from steelyard.judge.local.verifying.checks._additions import added
from steelyard.judge.local.verifying.checks._amounts import other_amount
from steelyard.judge.local.verifying.checks._mismatch import Mismatch
from steelyard.judge.local.verifying.checks._opposites import other_word
from steelyard.judge.local.verifying.checks._owners import other_owner
from steelyard.judge.local.verifying.checks._quantifiers import other_quantity
from steelyard.judge.local.verifying.checks._rows import other_row
from steelyard.judge.local.verifying.checks._sides import other_side

_CHECKS = (other_amount, other_owner, other_row, other_side, other_quantity, other_word, added)


def mismatches(claim: Line, lines: Sequence[Line]) -> tuple[Mismatch, ...]:
    """The differences between a claim and the sentences that say most of it."""
    return tuple(found for check in _CHECKS if (found := check(claim, lines)) is not None)
