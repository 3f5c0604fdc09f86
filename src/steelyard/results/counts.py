"""What became of the Scores that a sink was given: one unit, one state each."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, runtime_checkable

from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard.scores import Evaluation, Score

State = Literal["written", "refused", "left_out", "lost"]
Key = tuple[str, str, float]

_log = SafeLogger("steelyard.sinks")
_REMEMBERED: Final = 20_000
_ENOUGH: Final = 10
"""After so many Scores without one that was written it is not chance any more."""

_TRACING = "see 'Beside a vendor's own tracing' in docs/reference/results.md"
ADVICE: Final[Mapping[str, str]] = {
    "no_trace": "the records carry no span: record inside a span, or name the tracer that makes them; "
    + _TRACING,
    "no_run": f"the records carry no LangChain run id; {_TRACING}",
    "unsampled": "their traces were not sampled, so the server never gets them: judge sampled traces only",
    "trace_not_found": "the server does not know their traces: send traces and scores to the same server and "
    "project",
    "no_value": "they have no value, which this sink has no place for: look at their causes elsewhere",
    "rejected": "the server rejects them: check its version and the sink's options",
    "no_provider": "no OpenTelemetry provider is set: set one, or leave this sink out",
}
"""What to do about a reason, for the one log line that says that nothing arrives."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreCounts:
    """What became of the Scores that a sink was given; each is counted in exactly one place."""

    written: int = 0
    """Taken by the server, file or provider."""
    refused: Mapping[str, int] = field(default_factory=dict)
    """Sent and not taken, by reason: `rejected`, `trace_not_found`, `unstorable`."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Not sent: nothing to attach them to, or no place for them, by reason: `no_trace`, `no_value`, ..."""
    lost: Mapping[str, int] = field(default_factory=dict)
    """Not delivered, by the cause of the failure; what a later attempt delivers is counted there instead."""

    @property
    def total(self) -> int:
        """All Scores that the sink was given."""
        return self.written + sum(sum(part.values()) for part in (self.refused, self.left_out, self.lost))


@runtime_checkable
class Counting(Protocol):
    """A Sink that says what became of each Score."""

    @property
    def counts(self) -> ScoreCounts:
        """The counts at this moment; may be read from any thread."""


class ScoreLedger:
    """One state for each Score that a sink was given.

    The states of the latest 20,000 Scores are remembered, so that another attempt sends only what has not
    arrived, and counts nothing twice.
    """

    def __init__(self, sink: str) -> None:
        self._sink = sink
        self._counts: Counter[tuple[State, str]] = Counter()
        self._states: OrderedDict[Key, tuple[State, str]] = OrderedDict()
        self._warn = WarnOnce(_log)

    @property
    def counts(self) -> ScoreCounts:
        found = dict(self._counts)

        def by_reason(state: State) -> dict[str, int]:
            return {reason: count for (kind, reason), count in found.items() if kind == state and count}

        return ScoreCounts(
            written=found.get(("written", ""), 0),
            refused=by_reason("refused"),
            left_out=by_reason("left_out"),
            lost=by_reason("lost"),
        )

    def is_settled(self, key: Key) -> bool:
        """Whether nothing is left to be done about a Score: it arrived, was refused or has no place."""
        return self._states.get(key, ("lost", ""))[0] != "lost"

    def settle(self, key: Key, state: State, reason: str = "") -> None:
        """Give a Score its state, in place of the one it had."""
        if (before := self._states.get(key)) is not None:
            self._counts[before] -= 1
        self._states[key] = (state, reason)
        self._counts[state, reason] += 1
        if len(self._states) > _REMEMBERED:
            self._states.popitem(last=False)

    def settle_all(self, keys: Iterable[Key], state: State, reason: str = "") -> None:
        """Give several Scores the same state."""
        for key in keys:
            self.settle(key, state, reason)

    def settle_evaluations(self, evaluations: Iterable[Evaluation], state: State, reason: str = "") -> None:
        """Give a state to those Scores of some Evaluations that are not settled yet."""
        keys = [key_of(score, evaluation) for evaluation in evaluations for score in evaluation.scores]
        self.settle_all([key for key in keys if not self.is_settled(key)], state, reason)

    def warn_if_nothing_arrives(self, *, at_least: int = _ENOUGH) -> None:
        """Log, once, that every Score so far was left out or refused, and what to do about it."""
        counts = self.counts
        reasons = Counter({**counts.left_out}) + Counter(counts.refused)
        reasons += Counter({reason: count for reason, count in counts.lost.items() if reason in ADVICE})
        if counts.written or not reasons.total() >= at_least:
            return
        reason = reasons.most_common(1)[0][0]
        self._warn(
            "nothing arrives",
            "the sink %r has written none of %d scores (%s); %s",
            self._sink,
            reasons.total(),
            ", ".join(f"{name}: {count}" for name, count in reasons.most_common()),
            ADVICE.get(reason, "see docs/reference/results.md"),
        )


def key_of(score: Score, evaluation: Evaluation) -> Key:
    """What tells one Score from another: a record that is judged again gives other Scores."""
    return (evaluation.record_id, score.id or score.metric, evaluation.evaluated_at)
