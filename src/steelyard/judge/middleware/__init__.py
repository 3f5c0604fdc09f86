"""Traffic to a judge: wrappers with one concern each, every one a judge around a judge.

`ChatJudge` and `DecisionsJudge` bring `Retry` around `AdaptiveConcurrency` along. The others go around a
judge, from the inside out: `RateLimit`, `CircuitBreaker`, `Cache`.

    limited = RateLimit(ChatJudge("gpt-4o-mini"), requests_per_minute=500)
    judge = Cache(CircuitBreaker(limited), path="replies.db")
"""

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.judge.middleware._cache import Cache
from steelyard.judge.middleware._cache import uncached as uncached
from steelyard.judge.middleware._failures import CircuitBreaker, Retry, RetryPolicy, Wrapper
from steelyard.judge.middleware._failures import CircuitState as CircuitState
from steelyard.judge.middleware._failures import layers as layers
from steelyard.judge.middleware._pacing import AdaptiveConcurrency, RateLimit

__all__ = ["AdaptiveConcurrency", "Cache", "CircuitBreaker", "RateLimit", "Retry", "RetryPolicy", "Wrapper"]
