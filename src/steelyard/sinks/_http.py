"""What sinks for vendors' HTTP APIs share: one delivery for all, from Scores to their states."""

from __future__ import annotations

import asyncio
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from steelyard._internal.bounded import BoundedDict
from steelyard.errors import ConfigurationError, SinkError
from steelyard.record import TraceRef, text_of
from steelyard.results.counts import Key, ScoreCounts, ScoreLedger, State, key_of
from steelyard.scores import Evaluation, Outcome, Score
from steelyard.sinks._attributes import diagnosis_attributes, made_how, written_time
from steelyard.sinks._client import HTTPClient, patiently

REFUSALS: Final = frozenset({"rejected", "not_found", "conflict"})
"""Causes that concern what was sent; all others concern the server and everything that is sent to it."""
_LATE = 300.0
"""Seconds after judging in which a trace may yet come; then its results are refused."""


@dataclass(frozen=True, slots=True)
class Item:
    """One Score on its way to a vendor."""

    key: Key
    """Which Score it is."""
    body: Mapping[str, Any]
    """The Score in the vendor's format."""


class HTTPSink(ABC):
    """A sink that posts JSON. `counts` says what became of each Score.

    A Score that a server refuses is counted and takes no other along. A server that fails altogether is a
    SinkError; what has arrived until then is remembered, and another attempt sends only the rest.
    """

    name: str
    _looked_at: ClassVar[str]
    """A path that a server answers only to a key that it knows, and where reading changes nothing."""
    _wanted: ClassVar[tuple[str, ...]] = ("trace_id",)
    """The ids of what a Score is attached to."""
    _without_value: ClassVar[frozenset[Outcome]] = frozenset({"not_applicable", "failed"})
    """What has no place among the vendor's scores."""
    _most = 1
    """Scores that are sent together."""

    def __init__(
        self,
        name: str,
        url: str,
        *,
        headers: Mapping[str, str],
        timeout: float,
        explanations: bool,
        connections: int = 4,
        patience: float = 2.0,
    ) -> None:
        self.name = name
        self._client = HTTPClient(name, url, headers=headers, timeout=timeout, connections=connections)
        self._request = self._client.request
        self._connections = connections
        self._explanations = explanations
        self._patience = patience
        self._waited_for: BoundedDict[str, None] = BoundedDict(max_items=10_000)
        self._ledger = ScoreLedger(name)

    @property
    def counts(self) -> ScoreCounts:
        """What became of the Scores this sink was given."""
        return self._ledger.counts

    async def check(self) -> None:
        """Ask the server something that changes nothing, with the key."""
        try:
            await self._request("GET", self._looked_at)
        except SinkError as error:
            # Whoever disputes the question has let us in.
            if error.cause != "rejected":
                raise

    async def write(self, evaluations: Sequence[Evaluation]) -> None:
        """Send them, in parallel.

        Raises:
            SinkError: If the server could not be reached or refuses altogether, or does not know a trace yet
                (`trace_not_found`); sending again is safe, and sends only what has not arrived.
        """
        items = [item for evaluation in evaluations for item in self._unsettled(evaluation)]
        try:
            if items:
                await self._send_all(self._groups(items))
        finally:
            self._ledger.warn_if_nothing_arrives()

    async def aclose(self) -> None:
        """Let threads and connections go."""
        self._ledger.warn_if_nothing_arrives(at_least=1)
        await self._client.aclose()

    @abstractmethod
    def _body(self, score: Score, evaluation: Evaluation, trace: TraceRef) -> dict[str, Any]:
        """A Score in the vendor's format; fields without anything in them are left out."""

    @abstractmethod
    async def _send(self, items: Sequence[Item]) -> None:
        """Send some Scores together. A SinkError whose cause concerns the server ends the delivery."""

    def _groups(self, items: Sequence[Item]) -> Iterable[Sequence[Item]]:
        """Scores that are sent together."""
        return [items[start : start + self._most] for start in range(0, len(items), self._most)]

    def _left_out(self, score: Score, trace: TraceRef | None) -> str:
        """Why a Score has no place at the vendor; empty if it has one."""
        if trace is None or not all(getattr(trace, name) for name in self._wanted):
            return "no_trace"
        if not trace.sampled:
            return "unsampled"
        return "no_value" if score.status in self._without_value else ""

    def _unsettled(self, evaluation: Evaluation) -> Iterator[Item]:
        for score in evaluation.scores:
            key = key_of(score, evaluation)
            if self._ledger.is_settled(key):
                continue
            trace = evaluation.trace
            try:
                reason = self._left_out(score, trace)
                body = {} if reason or trace is None else self._body(score, evaluation, trace)
            except Exception:  # noqa: BLE001 - odd values may raise anything, out of their own methods too
                self._ledger.settle(key, "refused", "unstorable")
                continue
            if reason:
                self._ledger.settle(key, "left_out", reason)
            else:
                yield Item(key, {name: value for name, value in body.items() if value is not None})

    async def _send_all(self, groups: Iterable[Sequence[Item]]) -> None:
        """Send groups of Scores side by side, and give each of their Scores its state."""
        failure: SinkError | None = None
        places = asyncio.Semaphore(self._connections)

        async def attempt(group: Sequence[Item]) -> None:
            async with places:
                if failure is not None:
                    raise failure
                await self._send(group)

        async def one(group: Sequence[Item]) -> bool:
            """Send a group; whether its trace may yet come."""
            nonlocal failure
            # Whoever sends it again has waited already.
            patience = 0.0 if group[0].key[0] in self._waited_for else self._patience
            try:
                await patiently(lambda: attempt(group), patience=patience)
                self._settle(group, "written")
            except SinkError as error:
                if error.cause not in REFUSALS:
                    # The first one: those after it are its consequences.
                    failure = failure or error
                    return False
                return self._may_come(group, error.cause)
            return False

        waiting = list(groups)
        try:
            late = any(await asyncio.gather(*map(one, waiting)))
            if late and failure is None:
                failure = SinkError(f"{self.name}: a trace is not there yet", cause="trace_not_found")
            if failure is not None:
                raise failure
        finally:
            cause = failure.cause if failure is not None else "cancelled"
            # Whatever has no state by now has none because the delivery ended; those settled keep theirs.
            self._settle([item for group in waiting for item in group], "lost", cause)

    def _may_come(self, group: Sequence[Item], cause: str) -> bool:
        """Whether a group that was refused is worth another try later; otherwise it is settled."""
        if cause == "not_found" and time.time() - group[0].key[2] < _LATE:
            self._waited_for[group[0].key[0]] = None
            return True
        self._settle(group, "refused", "trace_not_found" if cause == "not_found" else "rejected")
        return False

    async def _taken(self, method: str, path: str, payload: object) -> bool:
        """Whether the server takes a request; a failure of its own is raised."""
        try:
            await self._request(method, path, payload)
        except SinkError as error:
            if error.cause not in REFUSALS:
                raise
            return False
        return True

    def _settle(self, items: Iterable[Item], state: State, reason: str = "") -> None:
        """Give a state to those that have none yet."""
        for item in items:
            if not self._ledger.is_settled(item.key):
                self._ledger.settle(item.key, state, reason)

    def _comment(self, score: Score) -> str | None:
        return text_of(score.explanation) if self._explanations and score.explanation else None


async def split(items: Sequence[Item], send: Callable[[Sequence[Item]], Awaitable[None]]) -> Sequence[Item]:
    """Send a batch; where it is refused, its halves, and so on down to the ones that are refused alone."""
    try:
        await send(items)
    except SinkError as error:
        if error.cause not in REFUSALS:
            raise
        if len(items) == 1:
            return items
        half = len(items) // 2
        first = await split(items[:half], send)
        return [*first, *await split(items[half:], send)]
    return ()


def given_or_env(value: str | None, *variables: str, what: str, default: str | None = None) -> str:
    """An option, else the vendor's own environment variable."""
    found = value or next((os.environ[name] for name in variables if os.environ.get(name)), default)
    if not found:
        raise ConfigurationError(f"no {what}: pass it, or set {' or '.join(variables)}")
    return found


def timestamp(seconds: float) -> str:
    return (
        datetime.fromtimestamp(written_time(seconds), UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


def details(score: Score, evaluation: Evaluation) -> dict[str, Any]:
    """How a number was made and weighed, for a vendor's metadata field; no content."""
    given = {
        "steelyard.evaluation.id": score.id,
        "steelyard.record.id": evaluation.record_id,
        "steelyard.evaluation.status": score.status,
        "steelyard.evaluation.cause": score.cause,
        "steelyard.evaluation.threshold": score.threshold,
        "steelyard.evaluation.standard_error": score.standard_error,
        "steelyard.evaluation.inclusion_probability": score.inclusion_probability,
        **diagnosis_attributes(evaluation),
        **made_how(score),
    }
    return {name: item for name, item in given.items() if item not in (None, "")}
