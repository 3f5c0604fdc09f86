"""The embedded judge: no key, no network, no model; words, word vectors and evidence."""

from steelyard.judge.local._judge import LocalJudge

__all__ = ["LocalJudge"]
