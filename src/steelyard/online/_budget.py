"""Throttle and budget: limits on what judging may use up, kept by lowering the rate before they bind.

Each limit knows its window, what was used in it and what is reserved for turns under way. From the turns that
arrive and what one costs, it works out which share of them the rest of the window can carry; rates are
multiplied by the smallest such share. So a budget that binds thins the sample evenly over the window, at a
probability that is known and stored. Only where that fails (the first turns, a sudden rush) is a turn cut
off by name, which leaves a gap in coverage that the ledger shows.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Self

from steelyard._internal.bounded import BoundedDict
from steelyard._internal.text import redacted_url
from steelyard.errors import ConfigurationError, MissingDependency, SkipReason
from steelyard.online._shared_budget import UNKNOWN_PAUSE, Claim, SharesBudget, Standing
from steelyard.online.queue._protocol import QueueFailed, TurnQueue
from steelyard.online.queue._turns import Leased
from steelyard.scores import Usage


@dataclass(frozen=True, kw_only=True, slots=True)
class Price:
    """US dollars for a million tokens, as price lists state them."""

    input: float
    """For tokens sent."""
    output: float
    """For tokens received."""
    cached: float | None = None
    """For tokens sent that the server had cached; like all others where there is no such price."""

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached"):
            value = getattr(self, name)
            if name == "cached" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
                raise ConfigurationError(f"the {name} price must be a number of dollars, not {value!r}")

    @classmethod
    def named(cls, model: str, *, base_url: str | None = None) -> Self:
        """A model's price from the list in the package genai-prices, which needs no network.

        Args:
            model: The model's name.
            base_url: The server; OpenAI's own where none is given.

        Raises:
            MissingDependency: If genai-prices is not installed.
            ConfigurationError: If it does not know the model.
        """

        def price(usage: Usage) -> float:
            # A thousand tokens at a time: some models cost more by the token in long requests.
            return cls.listed(usage, model=model, base_url=base_url)[0] * 1000

        return cls(
            input=price(Usage(prompt_tokens=1000)),
            output=price(Usage(completion_tokens=1000)),
            cached=price(Usage(prompt_tokens=1000, cached_tokens=1000)),
        )

    @staticmethod
    def listed(usage: Usage, *, model: str, base_url: str | None = None) -> tuple[float, str]:
        """What some usage costs by the list in the package genai-prices, and which entry of the list says so.

        Args:
            usage: Tokens sent and received in one request.
            model: The model's name.
            base_url: The server; OpenAI's own where none is given.

        Raises:
            MissingDependency: If genai-prices is not installed.
            ConfigurationError: If it does not know the model.
        """
        try:
            from genai_prices import Usage as Tokens
            from genai_prices import calc_price
        except ImportError:
            raise MissingDependency("genai-prices", extra="prices") from None
        tokens = Tokens(
            input_tokens=usage.prompt_tokens,
            output_tokens=usage.completion_tokens,
            cache_read_tokens=usage.cached_tokens,
        )
        try:
            if base_url:
                found = calc_price(tokens, model, provider_api_url=base_url)
            else:
                found = calc_price(tokens, model, provider_id="openai")
        except LookupError:
            known = f"no price is known for {model!r} at {redacted_url(base_url) if base_url else 'OpenAI'}"
            raise ConfigurationError(f"{known}; give it as Price(input=..., output=...)") from None
        source = f"prices of {found.model.name or model} at {found.provider.name} in genai-prices"
        return float(found.total_price), f"{source} {version('genai-prices')}"

    def of(self, usage: Usage) -> float:
        """What this usage costs."""
        fresh = usage.prompt_tokens - usage.cached_tokens
        cached = self.input if self.cached is None else self.cached
        dollars = fresh * self.input + usage.cached_tokens * cached + usage.completion_tokens * self.output
        return dollars / 1e6


_RESERVED = 100_000
_SECONDS = {"minute": 60.0, "hour": 3600.0, "day": 86400.0}


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What judging may use up. Windows follow each other without overlap, from the first turn on."""

    cost_per_hour: float | None = None
    """US dollars."""
    cost_per_day: float | None = None
    """US dollars."""
    tokens_per_hour: int | None = None
    """Tokens sent and received."""
    tokens_per_day: int | None = None
    """Tokens sent and received."""
    requests_per_hour: int | None = None
    """Requests to judges and embedders."""
    requests_per_day: int | None = None
    """Requests to judges and embedders."""
    price: Price | None = None
    """What tokens cost, for judges that do not say it themselves; needed by the limits in dollars then."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name != "price" and value is not None and (isinstance(value, bool) or not value > 0):
                raise ConfigurationError(f"{name} must be more than 0, not {value!r}")

    def used(self, usage: Usage) -> dict[str, float]:
        """What an evaluation has used up, by kind."""
        cost = usage.cost if usage.cost is not None or self.price is None else self.price.of(usage)
        tokens = usage.prompt_tokens + usage.completion_tokens
        return {"cost": cost or 0.0, "tokens": float(tokens), "requests": float(usage.requests)}

    def windows(self) -> list[RateWindow]:
        """One for each limit that is set."""
        found = []
        for name, limit in vars(self).items():
            kind, _, length = name.partition("_per_")
            if length and limit is not None:
                found.append(RateWindow(kind, limit, _SECONDS[length], reason="over_budget"))
        return found


class RateWindow:
    """One limit on one kind of use, in windows of one length."""

    def __init__(self, kind: str, limit: float, seconds: float, *, reason: SkipReason) -> None:
        self.kind = kind
        self.limit = limit
        self.reason = reason
        self.seconds = seconds
        self._started: float | None = None
        self._used = 0.0
        self._reserved = 0.0
        self._elsewhere = 0.0
        # A quarter of the window: long enough to be steady, short enough to follow a rush.
        self._arrivals = Arrivals(seconds / 4)

    def arrived(self, now: float) -> None:
        """A turn has arrived that would be judged if there were no limit."""
        self.roll(now)
        self._arrivals.add(now)

    def roll(self, now: float) -> None:
        """Begin a new window if the last one is over."""
        if self._started is None or now - self._started >= self.seconds:
            # Reservations stay: their turns are judged in the new window, and are paid there.
            self._started, self._used = now, 0.0

    def adopt(self, standing: Standing, now: float) -> None:
        """What all processes together have used and set aside, as a file that they share tells it."""
        self._started = now - standing.age
        self._used, self._elsewhere = standing.used, standing.reserved

    @property
    def left(self) -> float:
        """What is neither used nor reserved."""
        return self.limit - self._used - self._reserved - self._elsewhere

    def remaining(self, now: float) -> float:
        """Seconds until the next window."""
        return 0.0 if self._started is None else max(0.0, self._started + self.seconds - now)

    def share(self, now: float, cost: float) -> float:
        """The share of what arrives that the rest of the window can carry, at this cost of one turn."""
        need = cost * self._arrivals.per_second(now) * self.remaining(now)
        return 1.0 if need <= self.left else max(0.0, self.left / need)

    def reserve(self, amount: float) -> None:
        self._reserved += amount

    def correct(self, reserved: float, used: float) -> None:
        """The turn is through: what was reserved is free again, and this was used."""
        self._reserved = max(0.0, self._reserved - reserved)
        self._used += used


class Arrivals:
    """How many turns come in a second: a count in which older ones weigh ever less."""

    def __init__(self, memory: float) -> None:
        self._memory = memory
        self._first = self._last = self._count = 0.0

    def add(self, now: float) -> None:
        if not self._count:
            self._first = self._last = now
        # Aged when the next one comes, so that nothing has to tick while none come.
        self._count = 1 + self._count * math.exp((self._last - now) / self._memory)
        self._last = now

    def per_second(self, now: float) -> float:
        """The rate now; at first, before there is enough to go by, rather too low than too high."""
        # At least a quarter, for one turn alone would look like an endless stream.
        seen = 1 - math.exp(-max(0.25, (now - self._first) / self._memory))
        return self._count * math.exp((self._last - now) / self._memory) / (self._memory * seen)


class BudgetControl:
    """All limits of a Monitor together; used in the background thread only.

    Args:
        turns_per_minute: The throttle.
        budget: What judging may use up.
        shared: Whether there is a queue that counts for several processes. What is judged past it, because
            it has failed, is entered there as soon as it works again.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        *,
        turns_per_minute: float | None = None,
        budget: Budget | None = None,
        shared: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._budget = budget or Budget()
        self._shared = shared
        self._owed: dict[str, float] = {}
        self._windows = self._budget.windows()
        if turns_per_minute is not None:
            self._windows.insert(0, RateWindow("turns", turns_per_minute, 60.0, reason="throttled"))
        self._clock = clock
        self._typical: dict[str, float] = {"turns": 1.0}
        # Where another process judges a turn, nobody here hears of it again: the oldest are released.
        self._reserved: BoundedDict[str, dict[str, float]] = BoundedDict(
            max_items=_RESERVED, forgotten=lambda _, amounts: self._hand_back(amounts, {})
        )

    def share(self, *, arrived: bool = True) -> float:
        """The share that the limits can carry of the turns that selection wants."""
        if not self._windows:
            return 1.0
        # One clock for all windows, or the shares would be of different moments.
        now = self._clock()
        for window in self._windows:
            window.arrived(now) if arrived else window.roll(now)
        return min(window.share(now, self._typical.get(window.kind, 0.0)) for window in self._windows)

    def reserve(self, turn_id: str, *, forced: bool = False) -> SkipReason | None:
        """Set aside what a turn typically uses; or the reason why it cannot be judged."""
        lacking = self._lacking(self._windows)
        if lacking is not None and not forced:
            return lacking.reason
        if self._windows:
            self.release(turn_id)
            self._set_aside(turn_id, self._windows)
        return None

    def _lacking(self, windows: Sequence[RateWindow]) -> RateWindow | None:
        """The first limit that has no room for what a turn typically uses."""
        now = self._clock()
        for window in windows:
            window.roll(now)
        # As long as it is not known what a turn uses, any room at all is enough for one.
        return next((one for one in windows if one.left < self._typical.get(one.kind, 1e-12)), None)

    def _set_aside(self, turn_id: str, windows: Sequence[RateWindow]) -> None:
        amounts = {window.kind: self._typical.get(window.kind, 0.0) for window in windows}
        for window in windows:
            window.reserve(amounts[window.kind])
        self._reserved[turn_id] = amounts

    def hand_over(self, turn_id: str) -> None:
        """The turn goes into a queue that others may work on: it counts, and is asked for later."""
        if turn_id in self._reserved:
            self._hand_back(self._reserved.pop(turn_id), {"turns": 1.0})

    async def ask(self, queue: TurnQueue, leased: Leased) -> float:
        """Set aside what a turn out of a queue uses; or the seconds until there may be enough, more than 0.

        The throttle is not asked: it limits what is put into the queue. Where the queue counts for several
        processes, all of them together keep within the budget.
        """
        turn_id, windows = leased.turn.record.id, self._lasting()
        if turn_id in self._reserved or not windows:
            return 0.0
        if isinstance(queue, SharesBudget):
            return await self._ask_all(queue, leased, windows)
        if (lacking := self._lacking(windows)) is not None:
            return lacking.remaining(self._clock())
        self._set_aside(turn_id, windows)
        return 0.0

    async def _ask_all(self, queue: SharesBudget, leased: Leased, windows: Sequence[RateWindow]) -> float:
        claims = [
            Claim(window.kind, window.seconds, window.limit, self._typical.get(window.kind))
            for window in windows
        ]
        while True:
            # Taken out before the call, since another turn may owe something while it waits.
            owed, self._owed = self._owed, {}
            try:
                granted = await queue.claim(leased, claims, owed)
            except QueueFailed:
                self._owed = owed
                raise
            known = {(one.kind, one.seconds): one for one in granted.windows}
            for window in windows:
                window.adopt(known[window.kind, window.seconds], self._clock())
            self._typical |= {one.kind: one.typical for one in granted.windows if one.typical is not None}
            if not 0 < granted.wait <= UNKNOWN_PAUSE:
                return granted.wait
            await asyncio.sleep(granted.wait)

    async def settle(self, queue: TurnQueue, leased: Leased, usage: Usage) -> None:
        """A leased turn is through: enter what it used, where what it uses was set aside."""
        turn_id = leased.turn.record.id
        # In this order: a look into a Protocol costs more than the rest of a turn without budgets.
        if turn_id not in self._reserved and self._lasting() and isinstance(queue, SharesBudget):
            with contextlib.suppress(QueueFailed):
                return await queue.bill(leased, self._budget.used(usage))
            # Remembered as reserved, so that what was used is entered below and owed to the queue.
            self._reserved[turn_id] = {}
        if turn_id in self._reserved:
            self._owe(self._budget.used(usage))
        self.correct(turn_id, usage)

    def correct(self, turn_id: str, usage: Usage) -> None:
        """The turn is through: hold what it used against what was set aside for it, if anything was."""
        if (amounts := self._reserved.pop(turn_id, None)) is None:
            return
        used = self._budget.used(usage)
        if "turns" in amounts:
            used["turns"] = 1.0
        for kind, amount in used.items():
            # A turn out of a cache says nothing about what the next one uses.
            if kind != "turns" and usage.requests:
                before = self._typical.get(kind, amount)
                # A tenth of each turn: a single huge record does not close the budget for an hour.
                self._typical[kind] = before + (amount - before) / 10
        self._hand_back(amounts, used)

    def spend(self, usage: Usage) -> None:
        """Something was used for a turn that may never be judged, as a screen does."""
        used = self._budget.used(usage)
        for window in self._lasting():
            window.correct(0.0, used[window.kind])
        if usage.requests and self._lasting():
            self._owe(used)

    def _owe(self, used: Mapping[str, float]) -> None:
        """A queue that counts for several processes has its own sums; it is told with the next claim."""
        for kind, amount in used.items() if self._shared else ():
            self._owed[kind] = self._owed.get(kind, 0.0) + amount

    async def give_up(self, queue: TurnQueue, leased: Leased) -> None:
        """A leased turn cannot be judged: what was set aside for it is free again."""
        self.release(leased.turn.record.id)
        if isinstance(queue, SharesBudget) and self._lasting():
            await queue.bill(leased, None)

    def _lasting(self) -> list[RateWindow]:
        """All limits but the throttle."""
        return [window for window in self._windows if window.kind != "turns"]

    def release(self, turn_id: str) -> None:
        """The turn is not judged after all: nothing was used."""
        self._hand_back(self._reserved.pop(turn_id, {}), {})

    def _hand_back(self, amounts: Mapping[str, float], used: Mapping[str, float]) -> None:
        for window in self._windows:
            window.correct(amounts.get(window.kind, 0.0), used.get(window.kind, 0.0))
