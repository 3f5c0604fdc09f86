"""A Monitor's statistics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from steelyard.judge.middleware import Cache, CircuitBreaker, CircuitState, layers
from steelyard.online.canaries._options import CanaryReading
from steelyard.online.delivery._sink_counts import SinkCounts
from steelyard.online.queue._protocol import QueueCounts
from steelyard.questions import Judge
from steelyard.scores import Usage

_SEVERITY: tuple[CircuitState, ...] = ("closed", "half_open", "open", "rejected")


@dataclass(frozen=True, kw_only=True, slots=True)
class Stats:
    """A Monitor at one moment: seen = skipped + accepted; accepted = pending + evaluated + dead + abandoned
    (+ spooled, with a spool).
    """  # noqa: D205 - the two equations are the summary

    seen: int
    """Turns handed to `submit`."""
    accepted: int
    """Turns that were not skipped."""
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
    queued: int
    """Of the pending ones, those that wait in memory."""
    queued_bytes: int
    """Roughly how many bytes they keep alive."""
    sinks: Mapping[str, SinkCounts]
    """By sink: what was written, what was lost and why."""
    restarts: int
    """How often code in a judge or sink would have ended one of our threads (SystemExit, say); they go on."""
    callbacks_missed: int
    """Evaluations that came too fast for the `on_evaluation` callbacks."""
    spool: QueueCounts | None
    """The spool's own ledger, over all processes; None without a spool, or before the first turn."""
    usage: Usage
    """What judging has cost since the start."""
    breakers: Mapping[str, CircuitState]
    """By judge: what its breaker does with the next request; the worst state where one name has several."""
    cache_hits: int
    """Replies that came out of the judges' caches instead of from a judge."""
    fallback: QueueCounts | None = None
    """The ledger of the file beside a broker: `pending` turns wait there until the broker can be used."""
    canaries: CanaryReading | None = None
    """What probes with a known answer say of the judge; None where none are asked."""


def breakers_of(judges: Iterable[Judge]) -> dict[str, CircuitState]:
    """The states of the breakers that are around some judges."""
    found: dict[str, CircuitState] = {}
    for breaker in (
        layer for judge in judges for layer in layers(judge) if isinstance(layer, CircuitBreaker)
    ):
        states = (found.get(breaker.name, "closed"), breaker.state)
        found[breaker.name] = max(states, key=_SEVERITY.index)
    return found


def cache_hits_of(judges: Iterable[Judge]) -> int:
    """The hits of the caches that are around some judges, each counted once."""
    caches = {id(layer): layer for judge in judges for layer in layers(judge) if isinstance(layer, Cache)}
    return sum(cache.hits for cache in caches.values())
