"""The text room: what a sentence is and whether it states something, the same for metrics and judges."""

from steelyard.text._sentences import Sentence, iter_sentences, sentences
from steelyard.text._statements import evades, statements, states

__all__ = ["Sentence", "evades", "iter_sentences", "sentences", "statements", "states"]
