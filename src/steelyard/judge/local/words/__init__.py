"""What the words of a sentence are: stems, weights, names, numbers and quantities."""

from steelyard.judge.local.words._folding import fold
from steelyard.judge.local.words._lists import lists, rule
from steelyard.judge.local.words._stems import stem, weight
from steelyard.judge.local.words._word import Located, Word
from steelyard.judge.local.words._words import located, words

__all__ = ["Located", "Word", "fold", "lists", "located", "rule", "stem", "weight", "words"]
