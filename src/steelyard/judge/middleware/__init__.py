"""Traffic to a judge: wrappers with one concern each, every one a judge around a judge.

`ChatJudge` and `DecisionsJudge` bring `Retry` around `AdaptiveConcurrency` along. The others go around a
judge, from the inside out: `RateLimit`, `CircuitBreaker`, `Cache`.

    judge = Cache(Breaker(RateLimit(ChatJudge("gpt-4o-mini"), requests_per_minute=500)), path="replies.db")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from steelyard.judge.middleware._adaptive import AdaptiveConcurrency
from steelyard.judge.middleware._circuit_breaker import CircuitBreaker, CircuitState
from steelyard.judge.middleware._limit import Limit
from steelyard.judge.middleware._wrapper import Wrapper, layers

if TYPE_CHECKING:
    from steelyard.judge.middleware._cache import Cache
    from steelyard.judge.middleware._rate import RateLimit
    from steelyard.judge.middleware._retry import Retry, RetryPolicy

__all__ = [
    "AdaptiveConcurrency",
    "CircuitBreaker",
    "CircuitState",
    "Cache",
    "Limit",
    "RetryPolicy",
    "RateLimit",
    "Retry",
    "Wrapper",
    "layers",
]

_LAZY = {"Cache": "_cache", "RetryPolicy": "_retry", "RateLimit": "_rate", "Retry": "_retry"}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'steelyard.judge.middleware' has no attribute {name!r}")
    return getattr(import_module(f"steelyard.judge.middleware.{_LAZY[name]}"), name)
