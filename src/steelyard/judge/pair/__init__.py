"""A judge on a sentence-pair model of your own; see `docs/pair-models.md`."""

from steelyard.judge.pair._judge import PairJudge
from steelyard.judge.pair._labels import PairLabels

__all__ = ["PairJudge", "PairLabels"]
