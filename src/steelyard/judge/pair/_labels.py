"""Which of a pair model's labels means what, found by asking it pairs whose answer is plain."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import NamedTuple

import numpy as np

from steelyard.errors import ConfigurationError
from steelyard.judge.pair._model import PairModel, Shares

_APART = 0.75
"""Share of texts in which the entailed claim must score above the contradicted and the unrelated one."""
_CLEAR = 0.1
"""How much more share a label must get on contradicted claims than on others to mean contradiction."""
_UNKNOWN = 0.3  # the right tokenizer knows nearly all of it, one of another model hardly anything


class _Case(NamedTuple):
    text: str
    entailed: str
    contradicted: str
    unrelated: str


@cache
def _cases() -> list[_Case]:
    """Texts with three claims each; the answer is plain."""
    file = resources.files("steelyard.judge.pair").joinpath("cases.json")
    return [_Case(*case) for case in json.loads(file.read_text(encoding="utf-8"))]


@dataclass(frozen=True, kw_only=True, slots=True)
class PairLabels:
    """What a model's labels mean, by their place among its scores, from 0."""

    entailed: int
    """The text entails the claim."""
    contradicted: int | None = None
    """The text says otherwise; None where no label means that."""
    claim_first: bool = False
    """Whether the model wants the claim before the text."""

    def check(self, columns: int) -> None:
        """Refuse places that the model does not have.

        Raises:
            ConfigurationError: Naming the label.
        """
        for name in ("entailed", "contradicted"):
            place = getattr(self, name)
            if place is not None and not 0 <= place < columns:
                raise ConfigurationError(
                    f"labels: {name}={place!r}, but the model has {columns} labels; give a place below that"
                )
        if self.entailed == self.contradicted:
            raise ConfigurationError(
                "labels: entailed and contradicted are the same label; give each its own place"
            )


def find_labels(model: PairModel, given: PairLabels | None) -> PairLabels:
    """The meaning of a model's labels: as given, or as a self-test shows.

    Raises:
        ConfigurationError: If model and tokenizer do not fit, labels are not there, or the model does not
            tell entailed claims from others.
    """
    texts = [text for case in _cases() for text in case]
    unknown = model.unknown_share(texts)
    if unknown > _UNKNOWN:
        raise ConfigurationError(
            f"the tokenizer {str(model.tokenizer_path)!r} does not know {unknown:.0%} of plain English "
            "words: it is not the model's; "
            "name the right one with tokenizer="
        )
    if given is not None:
        given.check(model.shares([(_cases()[0].text, _cases()[0].entailed)]).shape[1])
        return given
    found = [_tried(model, claim_first=claim_first) for claim_first in (False, True)]
    share, labels = max(found, key=lambda one: (one[0], not one[1].claim_first))
    if share < _APART:
        raise ConfigurationError(
            f"in a self-test the model {str(model.path)!r} told entailed from other claims in only "
            f"{share:.0%} of {len(_cases())} texts: it is not a model of sentence pairs, or the tokenizer is "
            "another one's; name its labels with labels=PairLabels(entailed=...) if you know better"
        )
    return labels


def _tried(model: PairModel, *, claim_first: bool) -> tuple[float, PairLabels]:
    """In what share of the texts the best reading of the labels tells claims apart, and that reading."""
    entailed, contradicted, unrelated = (
        _asked(model, [(case.text, case[place]) for case in _cases()], claim_first=claim_first)
        for place in (1, 2, 3)
    )
    others = (contradicted + unrelated) / 2
    best = int(np.argmax((entailed - others).mean(axis=0)))
    apart = (entailed[:, best] > contradicted[:, best]) & (entailed[:, best] > unrelated[:, best])
    against = (contradicted - (entailed + unrelated) / 2).mean(axis=0)
    against[best] = -1.0
    worst = int(np.argmax(against)) if entailed.shape[1] > 2 else best
    labels = PairLabels(
        entailed=best,
        contradicted=worst if worst != best and against[worst] >= _CLEAR else None,
        claim_first=claim_first,
    )
    return float(apart.mean()), labels


def _asked(model: PairModel, pairs: list[tuple[str, str]], *, claim_first: bool) -> Shares:
    return model.shares([(claim, text) if claim_first else (text, claim) for text, claim in pairs])
