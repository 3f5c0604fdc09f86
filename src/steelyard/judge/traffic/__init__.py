"""Traffic to a judge: wrappers with one concern each, every one a judge around a judge.

They nest in any order; `ChatJudge` and `DecisionsJudge` bring `Retry` and `Limit` along.
"""

from steelyard.judge.traffic._limit import Limit
from steelyard.judge.traffic._retry import Patience, Retry
from steelyard.judge.traffic._wrapper import Wrapper

__all__ = ["Limit", "Patience", "Retry", "Wrapper"]
