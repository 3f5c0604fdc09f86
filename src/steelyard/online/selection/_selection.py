"""Selection: which turns are judged, with which probability, and why not the others.

Every turn has a fixed position in [0, 1) (see `_sampling`) and a rate; it is picked where that is below the
rate. Rules and suspicion raise or lower the rate of single turns. The rate a turn was picked with is its
inclusion probability and is stored on each of its Scores: a mean over picked turns that weights each by the
inverse of that number stays true, however much the sample leans towards what looked bad.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from steelyard._internal.logs import SafeLogger
from steelyard._internal.redact import error_place
from steelyard._internal.warn_once import WarnOnce
from steelyard.online.selection._rules import Decision, Rule
from steelyard.online.selection._sampling import checked_rate
from steelyard.online.selection._suspicion import Suspicion
from steelyard.record import Record
from steelyard.recording import check_function

RateChooser = Callable[[Record], "float | Literal['force', 'never'] | None"]
"""A user's own rule: a rate, `"force"`, `"never"`, or None to leave the decision to the rest."""

_warn = WarnOnce(SafeLogger("steelyard.online"))


@dataclass(frozen=True, slots=True)
class _BaseRate:
    """The last source: every turn."""

    ceiling: float

    def decide(self, record: Record) -> Decision:
        return Decision(rate=self.ceiling)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The first source: the user's own function."""

    choose: RateChooser
    ceiling: float = 1.0

    def decide(self, record: Record) -> Decision | None:
        try:
            chosen = self.choose(record)
            if chosen is None:
                return None
            if chosen == "never":
                return Decision(rate=0.0, reasons=("choose",), skip="never")
            if chosen == "force":
                return Decision(rate=1.0, reasons=("choose",), forced=True)
            return Decision(rate=checked_rate(chosen, "the result of choose"), reasons=("choose",))
        except BaseException as error:  # noqa: BLE001 - the user's function may raise anything
            _warn(
                id(self.choose),
                "choose failed: %s; where it does, the rules decide; correct the function",
                error_place(error),
            )
            return None


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which turns are judged.

    `choose` is asked first, then the first rule that matches, else the base rate holds; suspicion then raises
    what is below its own rate. The first `never` or `force` ends it.

    Example:
        >>> Selection(rate=0.05, rules=[Rule(tags=["vip"], rate=1.0)], suspicion=Suspicion(rate=0.5)).ceiling
        1.0
    """

    rate: float = 1.0
    """The base rate."""
    rules: tuple[Rule, ...] | list[Rule] = ()
    """Rates for turns with certain tags, metadata, route or status; the first that matches decides."""
    suspicion: Suspicion | None = None
    """Signs of a bad turn, and the rate at which such turns are judged."""
    choose: RateChooser | None = None
    """A function of the Record. Where it raises, the rules decide, and a warning is logged the first time."""
    metric_rates: Mapping[str, float] = field(default_factory=dict)
    """By instance name: the share of picked turns that this metric scores; 1 for those not named."""

    def __post_init__(self) -> None:
        checked_rate(self.rate, "rate")
        check_function("choose", self.choose)
        for name, rate in self.metric_rates.items():
            checked_rate(rate, f"metric_rates[{name!r}]")

    @property
    def ceiling(self) -> float:
        """No turn has a higher rate: what lies above is skipped without a look inside."""
        sources = [source.ceiling for source in self._sources()]
        return max(sources if self.suspicion is None else [*sources, self.suspicion.rate])

    @property
    def floor(self) -> float | None:
        """No picked turn has a lower inclusion probability, for any metric; None where `choose` decides."""
        if self.choose is not None:
            return None
        rates = [rate for source in self._sources() if (rate := source.ceiling) > 0]
        shares = [share for share in self.metric_rates.values() if share > 0]
        return min(rates, default=1.0) * min(shares, default=1.0)

    def _sources(self) -> Iterator[_Chosen | Rule | _BaseRate]:
        """All that give a turn its rate, in the order in which they are asked."""
        if self.choose is not None:
            yield _Chosen(self.choose)
        yield from self.rules
        yield _BaseRate(self.rate)

    def decide(self, record: Record, *, disliked: bool = False) -> Decision:
        """The rate for one turn.

        Args:
            record: The turn as it was recorded, before masking.
            disliked: Whether the user has said that the answer was bad.
        """
        decision = next(found for source in self._sources() if (found := source.decide(record)) is not None)
        if decision.skip or decision.forced or self.suspicion is None:
            return decision
        signs = self.suspicion.signs(record, disliked=disliked)
        if not signs or self.suspicion.rate <= decision.rate:
            return decision
        return Decision(rate=self.suspicion.rate, reasons=(*decision.reasons, *signs))

    def metrics_for(self, position: float, rate: float, names: list[str]) -> dict[str, float]:
        """The metrics that score a turn, each with its own inclusion probability; empty where none does."""
        shares = {name: rate * self.metric_rates.get(name, 1.0) for name in names}
        return {name: share for name, share in shares.items() if position < share}
