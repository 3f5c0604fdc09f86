"""Selection: which turns are judged, with which probability, and why not the others.

Every turn has a fixed position in [0, 1) and a rate; it is picked where that is below the rate. Rules and
suspicion raise or lower the rate of single turns. The rate a turn was picked with is its inclusion
probability and is stored on each of its Scores: a mean over picked turns that weights each by the inverse of
that number stays true, however much the sample leans towards what looked bad.

The same turn has the same position in every process and language (see `sampling_position`). Its key is the
W3C trace id in lower-case hex (32 digits) where the turn has one, otherwise the record's id. So a sample at a
lower rate is part of the sample at a higher one, all services that see a trace agree on it, and no state is
shared. The id is hashed rather than used as it stands because tracing systems sample by its bits: without the
hash, the turns picked here would depend on the traces picked there. A secret is for applications that are
reached from outside: trace ids come from the caller's `traceparent`, and whoever knows the hash could choose
ids that are never or always picked.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from hashlib import sha256
from itertools import islice
from typing import Any, Literal, get_args

from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard._internal.text import error_place
from steelyard.errors import ConfigurationError, SkipReason
from steelyard.record import Record, Status
from steelyard.recording import Draft, check_function

RateChooser = Callable[[Record], "float | Literal['force', 'never'] | None"]
"""A user's own rule: a rate, `"force"`, `"never"`, or None to leave the decision to the rest."""
ROUTE = "route"
"""The metadata entry that `Rule.route` is compared with: the endpoint, chain or tenant a turn belongs to."""
_WORDS = re.compile(r"\w{3,}")
_READ = 20_000  # characters: picking must stay cheap beside judging
_REFUSAL = re.compile(
    r"\b(i('m| am) (sorry|unable|not able|afraid)|i (can(no|')t|do(n't| not) know|could not find)"
    r"|(no|not enough|insufficient) (information|context)|cannot (answer|be answered)|as an ai\b)",
    re.IGNORECASE,
)
_RANGE = float(2**64)
_log = SafeLogger("steelyard.online")


def sampling_position(key: str, secret: str = "") -> float:
    """Where a key falls in [0, 1); with a secret, nobody can foresee it who does not know the secret.

    The first 8 bytes of SHA-256(UTF-8 bytes of key), a big-endian integer, / 2**64; with a secret, of
    HMAC-SHA-256 with the UTF-8 bytes of the secret as its key.
    """
    said = key.encode("utf-8", "replace")
    if secret:
        digest = hmac.digest(secret.encode("utf-8", "replace"), said, "sha256")
    else:
        digest = sha256(said).digest()
    # The division rounds the largest integers up to 1.0, which no rate would exceed.
    return min(int.from_bytes(digest[:8], "big") / _RANGE, 1 - 2**-53)


def key_of(turn: Record | Draft) -> str:
    """What decides about a turn: its trace id, or else its own id."""
    trace = turn.trace
    return (trace.trace_id if trace else None) or turn.id


def checked_rate(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ConfigurationError(f"{name} must be a number from 0 to 1, not {value!r}")
    return float(value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What selection says about one turn."""

    rate: float
    """The probability with which a turn like this is picked."""
    reasons: tuple[str, ...] = ()
    """What moved the rate away from the base rate: names of rules, signs of suspicion."""
    skip: SkipReason | None = None
    """Why it is not judged, whatever its position; None where that decides."""
    forced: bool = False
    """Judged whatever its position, and not slowed down by throttle or budget."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rate for the turns that match. Everything that is given must match; a rule without any matches all.

    Example:
        >>> Rule(route="/chat/*", rate=0.2).matches(Record(metadata={"route": "/chat/help"}))
        True
    """

    rate: float = 1.0
    """The rate of the turns that match."""
    tags: Sequence[str] = ()
    """All of these tags."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """All of these entries."""
    route: str | None = None
    """A shell pattern that `metadata["route"]` fits, e.g. `/chat/*`."""
    status: Sequence[Status] | Status = ()
    """One of these endings. Only `ok` and `truncated` turns can be judged, whatever the rate."""
    force: bool = False
    """Judge all of them, past throttle and budget."""
    never: bool = False
    """Judge none of them."""
    name: str = ""
    """What it is called in `Decision.reasons`."""

    def __post_init__(self) -> None:
        checked_rate(self.rate, "a rule's rate")
        if isinstance(self.tags, str):
            raise ConfigurationError(f"a rule's tags must be a list; write tags=[{self.tags!r}]")
        if self.force and self.never:
            raise ConfigurationError(
                f"the rule {self.label!r} says both force and never; leave out one of them"
            )
        for status in self._statuses:
            if status not in get_args(Status):
                raise ConfigurationError(
                    f"a rule's status must be one of {', '.join(get_args(Status))}, not {status!r}"
                )

    @property
    def label(self) -> str:
        """Its name, or what it matches."""
        parts = [*self.tags, *self.metadata, self.route or "", *self._statuses]
        return self.name or "rule:" + ",".join(filter(None, map(str, parts)))

    @property
    def _statuses(self) -> tuple[str, ...]:
        return (self.status,) if isinstance(self.status, str) else tuple(self.status)

    @property
    def ceiling(self) -> float:
        """The highest rate that a turn can get from it."""
        return 1.0 if self.force else self.rate

    def matches(self, record: Record) -> bool:
        """Whether a turn is one of those meant."""
        if self._statuses and record.status not in self._statuses:
            return False
        if not set(self.tags) <= set(record.tags):
            return False
        if any(record.metadata.get(name) != value for name, value in self.metadata.items()):
            return False
        return self.route is None or fnmatchcase(str(record.metadata.get(ROUTE, "")), self.route)


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspicion:
    """Signs of a bad turn, and the rate at which turns with at least one of them are judged.

    The signs are `disliked` (negative feedback), `no_context`, `low_overlap`, `low_retrieval_score`,
    `no_retrieval_score`, `refusal` (English wordings), `short_answer` and `upstream_error` (a turn that
    came to an end although the recorder noted an error on the way). None of them is a verdict: they only say
    where to look more often, and the inclusion probability on the Score takes the leaning out of averages.
    """

    rate: float = 1.0
    """The rate of suspicious turns; others keep theirs."""
    min_overlap: float | None = 0.3
    """Share of the answer's words that also stand in a context; below it is a sign. None: no sign."""
    min_retrieval_score: float | None = None
    """The best context's retrieval score below this is a sign, on the retriever's own scale."""
    need_retrieval_score: bool = False
    """Whether contexts without any retrieval score are a sign."""
    min_answer_words: int = 3
    """An answer of fewer words is a sign; 0 for no sign."""
    refusals: bool = True
    """Whether an answer that reads like a refusal is a sign."""

    def __post_init__(self) -> None:
        checked_rate(self.rate, "the rate of Suspicion")

    def signs(self, record: Record, *, disliked: bool = False) -> tuple[str, ...]:
        """The signs that a turn shows."""
        checks = {
            "disliked": disliked,
            "no_context": not record.contexts,
            "low_overlap": self._overlaps_little(record),
            "low_retrieval_score": self._scored_low(record),
            "no_retrieval_score": self.need_retrieval_score
            and bool(record.contexts)
            and all(context.score is None for context in record.contexts),
            "refusal": self.refusals and _REFUSAL.search(record.answer[:500]) is not None,
            "short_answer": len(record.answer.split(maxsplit=self.min_answer_words)) < self.min_answer_words,
            "upstream_error": record.error is not None or any("error" in note for note in record.notes),
        }
        return tuple(name for name, shown in checks.items() if shown)

    def _overlaps_little(self, record: Record) -> bool:
        if self.min_overlap is None or not record.contexts:
            return False
        said = _words([record.answer])
        read = _words(context.text for context in islice(record.contexts, 50))
        return bool(said) and len(said & read) < self.min_overlap * len(said)

    def _scored_low(self, record: Record) -> bool:
        scores = [context.score for context in record.contexts if context.score is not None]
        return (
            self.min_retrieval_score is not None and bool(scores) and max(scores) < self.min_retrieval_score
        )


def _words(texts: Iterable[str]) -> set[str]:
    together = " ".join(text[:_READ] for text in texts)[:_READ]
    return set(_WORDS.findall(together.lower()))


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
    _warn: WarnOnce = field(default_factory=partial(WarnOnce, _log), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        checked_rate(self.rate, "rate")
        check_function("choose", self.choose)
        for rule in self.rules:
            if not isinstance(rule, Rule):
                raise ConfigurationError(f"rules hold {rule!r}; write Rule(...) of steelyard.online")
        for name, rate in self.metric_rates.items():
            checked_rate(rate, f"metric_rates[{name!r}]")

    @property
    def ceiling(self) -> float:
        """No turn has a higher rate: what lies above is skipped without a look inside."""
        rates = [self.rate, *(rule.ceiling for rule in self.rules)]
        if self.suspicion is not None:
            rates.append(self.suspicion.rate)
        return 1.0 if self.choose is not None else max(rates)

    @property
    def floor(self) -> float | None:
        """No picked turn has a lower inclusion probability, for any metric; None where `choose` decides."""
        if self.choose is not None:
            return None
        rates = [rate for rate in (self.rate, *(rule.ceiling for rule in self.rules)) if rate > 0]
        shares = [share for share in self.metric_rates.values() if share > 0]
        return min(rates, default=1.0) * min(shares, default=1.0)

    def decide(self, record: Record, *, disliked: bool = False) -> Decision:
        """The rate for one turn.

        Args:
            record: The turn as it was recorded, before masking.
            disliked: Whether the user has said that the answer was bad.
        """
        decision = self._chosen(record) or self._ruled(record)
        if decision.skip or self.suspicion is None:
            return decision
        signs = self.suspicion.signs(record, disliked=disliked)
        if not signs or self.suspicion.rate <= decision.rate:
            return decision
        return Decision(rate=self.suspicion.rate, reasons=(*decision.reasons, *signs))

    def metrics_for(self, position: float, rate: float, names: list[str]) -> dict[str, float]:
        """The metrics that score a turn, each with its own inclusion probability; empty where none does."""
        shares = {name: rate * self.metric_rates.get(name, 1.0) for name in names}
        return {name: share for name, share in shares.items() if position < share}

    def _chosen(self, record: Record) -> Decision | None:
        if self.choose is None:
            return None
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
            self._warn(
                "choose",
                "choose failed: %s; where it does, the rules decide; correct the function",
                error_place(error),
            )
            return None

    def _ruled(self, record: Record) -> Decision:
        for rule in self.rules:
            if rule.matches(record):
                skip: SkipReason | None = "never" if rule.never else None
                return Decision(rate=rule.ceiling, reasons=(rule.label,), skip=skip, forced=rule.force)
        return Decision(rate=self.rate)
