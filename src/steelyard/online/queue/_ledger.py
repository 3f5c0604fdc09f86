"""The ledger: where every turn that was seen has got to, at every moment.

    seen     = skipped + accepted
    accepted = pending + evaluated + dead + abandoned + spooled

A turn is accepted as soon as it is seen, unless it is skipped on the spot. A turn that has to be looked at
before selection can decide (rules, suspicion) may still be skipped later; it is then no longer an accepted
one. Counting is all this does: the lock that makes it safe is the `Inbox`'s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

FinalState = Literal["skipped", "evaluated", "dead", "abandoned", "spooled"]
"""What a pending turn can become. `spooled` hands it to the spool, which has a ledger of its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """The ledger at one moment."""

    seen: int
    """Turns handed to `submit`."""
    pending: int
    """Accepted and not finished: queued, being judged, or being written."""
    evaluated: int
    """Finished: every metric is scored, not applicable or failed."""
    abandoned: int
    """Given up at exit because time ran out."""
    spooled: int
    """Handed to the spool, which accounts for them from there."""
    skipped: Mapping[str, int]
    """Not judged, by reason."""
    dead: Mapping[str, int]
    """Accepted but impossible to evaluate, by cause."""

    @property
    def accepted(self) -> int:
        """Turns that were not skipped."""
        return self.pending + self.evaluated + self.abandoned + self.spooled + sum(self.dead.values())


class Ledger:
    """Counts turns as they move from one state to the next. Each total has a counter of its own."""

    def __init__(self) -> None:
        self.seen = 0
        self.pending = 0
        self._plain: dict[str, int] = {"evaluated": 0, "abandoned": 0, "spooled": 0}
        self._skipped: Counter[str] = Counter()
        self._dead: Counter[str] = Counter()

    def accept(self) -> None:
        """A turn was seen and is now pending."""
        self.seen += 1
        self.pending += 1

    def skip(self, reason: str) -> None:
        """A turn was seen and is not judged."""
        self.seen += 1
        self._skipped[reason] += 1

    def settle(self, state: FinalState, reason: str = "", *, count: int = 1) -> None:
        """Pending turns have reached a final state.

        Turns that were given up while they were on their way may get there yet: they leave `abandoned` then.

        Args:
            state: Which one.
            reason: Why; needed for `skipped` and `dead`.
            count: How many turns.

        Raises:
            ValueError: If fewer are pending or given up, which would mean that a turn was settled twice.
        """
        if not count:
            return
        late = max(0, count - self.pending)
        if late > self._plain["abandoned"]:
            raise ValueError(f"{count} turns became {state!r} but only {self.pending} are pending")
        self.pending -= count - late
        self._plain["abandoned"] -= late
        if state == "skipped":
            self._skipped[reason] += count
        elif state == "dead":
            self._dead[reason] += count
        else:
            self._plain[state] += count

    def reopen(self, state: FinalState) -> None:
        """A turn that was evaluated, or skipped as `sampled_out`, is pending again.

        Raises:
            ValueError: If there is none.
        """
        counts, name = (self._skipped, "sampled_out") if state == "skipped" else (self._plain, state)
        if counts[name] < 1:
            raise ValueError(f"no turn has been {state}")
        counts[name] -= 1
        self.pending += 1

    def counts(self) -> Counts:
        """The ledger now."""
        return Counts(
            seen=self.seen,
            pending=self.pending,
            skipped={reason: n for reason, n in self._skipped.items() if n},
            dead=dict(self._dead),
            **self._plain,
        )
