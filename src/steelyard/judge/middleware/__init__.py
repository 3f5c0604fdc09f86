"""Traffic to a judge: wrappers with one concern each, every one a judge around a judge.

`ChatJudge` and `DecisionsJudge` bring `Retry` around `AdaptiveConcurrency` along. The others go around a
judge, from the inside out: `RateLimit`, `CircuitBreaker`, `Cache`.

    judge = Cache(Breaker(RateLimit(ChatJudge("gpt-4o-mini"), requests_per_minute=500)), path="replies.db")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard._internal.lazy import lazy_exports
from steelyard.judge.middleware._circuit_breaker import CircuitBreaker, CircuitState
from steelyard.judge.middleware._concurrency import AdaptiveConcurrency
from steelyard.judge.middleware._wrapper import Wrapper, layers

if TYPE_CHECKING:
    from steelyard.judge.middleware._cache import Cache, uncached
    from steelyard.judge.middleware._rate import RateLimit
    from steelyard.judge.middleware._retry import Retry, RetryPolicy

__all__ = [
    "AdaptiveConcurrency",
    "CircuitBreaker",
    "CircuitState",
    "Cache",
    "RetryPolicy",
    "RateLimit",
    "Retry",
    "Wrapper",
    "layers",
    "uncached",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "Cache": "steelyard.judge.middleware._cache",
        "RetryPolicy": "steelyard.judge.middleware._retry",
        "RateLimit": "steelyard.judge.middleware._rate",
        "Retry": "steelyard.judge.middleware._retry",
        "uncached": "steelyard.judge.middleware._cache",
    },
)
