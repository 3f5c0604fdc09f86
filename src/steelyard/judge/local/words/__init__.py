"""What the words of a sentence are: stems, weights, names, numbers and quantities."""

from steelyard.judge.local.words._lists import fold, lists, rule
from steelyard.judge.local.words._word import Located, Word, stem, weight
from steelyard.judge.local.words._words import located, words

__all__ = ["Located", "Word", "fold", "lists", "located", "rule", "stem", "weight", "words"]
