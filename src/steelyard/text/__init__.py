"""What a sentence is and whether it states something, the same for metrics and judges."""

from steelyard.text._evasions import asserted, evades, unhedged
from steelyard.text._sentences import Sentence, iter_sentences, sentences
from steelyard.text._statements import affirms, is_polar, iter_statements, spread, statements, states

__all__ = [
    "Sentence",
    "affirms",
    "asserted",
    "evades",
    "is_polar",
    "iter_sentences",
    "iter_statements",
    "sentences",
    "spread",
    "statements",
    "states",
    "unhedged",
]
