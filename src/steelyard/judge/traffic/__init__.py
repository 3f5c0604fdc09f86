"""Traffic to a judge: wrappers with one concern each, every one a judge around a judge.

`ChatJudge` and `DecisionsJudge` bring `Retry` around `AdaptiveConcurrency` along. The others go around a
judge, from the inside out: `RateLimit`, `Breaker`, `Cache`.

    judge = Cache(Breaker(RateLimit(ChatJudge("gpt-4o-mini"), requests_per_minute=500)), path="replies.db")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from steelyard.judge.traffic._adaptive import AdaptiveConcurrency
from steelyard.judge.traffic._breaker import Breaker, BreakerState
from steelyard.judge.traffic._limit import Limit
from steelyard.judge.traffic._wrapper import Wrapper, layers

if TYPE_CHECKING:
    from steelyard.judge.traffic._cache import Cache
    from steelyard.judge.traffic._rate import RateLimit
    from steelyard.judge.traffic._retry import Patience, Retry

__all__ = [
    "AdaptiveConcurrency",
    "Breaker",
    "BreakerState",
    "Cache",
    "Limit",
    "Patience",
    "RateLimit",
    "Retry",
    "Wrapper",
    "layers",
]

_LAZY = {"Cache": "_cache", "Patience": "_retry", "RateLimit": "_rate", "Retry": "_retry"}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'steelyard.judge.traffic' has no attribute {name!r}")
    return getattr(import_module(f"steelyard.judge.traffic.{_LAZY[name]}"), name)
