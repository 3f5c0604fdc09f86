"""Context recall, entity recall and sufficiency: do the contexts hold what the answer needs?"""

from __future__ import annotations

import unicodedata
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from steelyard.metrics._formulas import expected_level, share
from steelyard.metrics._metric import Metric, Threshold
from steelyard.metrics._steps import ClaimsFrom, claims_of, explain, share_score
from steelyard.questions import (
    Answer,
    Entities,
    Level,
    MetricRun,
    Part,
    Predicate,
    Question,
    Sufficient,
    Supported,
    Texts,
    YesNo,
    require,
)
from steelyard.record import Record
from steelyard.scores import Verdict


@dataclass(frozen=True, kw_only=True)
class ContextRecall(Metric):
    """Claims of the reference that the contexts support / all claims of the reference, in 0..1.

    Source: Ragas' `ContextRecall` (and DeepEval's contextual recall, which counts sentences:
    `claims="sentences"`). The answer stays hidden from the judge.
    """

    key = "context_recall"
    needs: ClassVar[tuple[Part, ...]] = ("contexts", "reference")

    threshold: Threshold = 1.0
    """Every claim of the reference is supported."""
    claims: ClaimsFrom = "extracted"
    """Whether the judge extracts the claims, or each sentence of the reference is one."""

    def questions(self, record: Record) -> MetricRun:
        """Claims first, then one verdict each."""
        claims = yield from claims_of(record, "reference", self.claims)
        if not claims:
            return self.not_applicable("no_claims", "the reference makes no claim")
        answers = require((yield [Supported(claim=claim, of="reference") for claim in claims]), YesNo)
        what = "claims of the reference not retrieved"
        return share_score(self, "supported", claims, answers, what=what, record=record)


@dataclass(frozen=True, kw_only=True)
class ContextEntityRecall(Metric):
    """Entities of the reference that the contexts name too / entities of the reference, in 0..1.

    Source: Ragas' `ContextEntityRecall`, |E(contexts) & E(reference)| / |E(reference)|, over sets. Entities
    are compared without case, width or spacing; with `aliases="judged"` the judge is asked about those that
    were not found, so that "UK" can be found as "United Kingdom".
    """

    key = "context_entity_recall"
    needs: ClassVar[tuple[Part, ...]] = ("contexts", "reference")

    aliases: Literal["exact", "judged"] = "exact"
    """Whether other names of an entity count."""

    def questions(self, record: Record) -> MetricRun:
        """Both extractions in one round; with `aliases="judged"` one question per entity not found."""
        asked = [Entities(of="reference"), Entities(of="contexts")]
        expected, present = require((yield asked), Texts)
        wanted = {_normal(name): name for name in expected.items}
        if not wanted:
            return self.not_applicable("no_entities", "the reference names no entity")
        found = {_normal(name) for name in present.items} & wanted.keys()
        if self.aliases == "judged":
            found |= yield from _judged({key: name for key, name in wanted.items() if key not in found})
        lost = [name for key, name in wanted.items() if key not in found]
        return self.scored(
            share(key in found for key in wanted),
            verdicts=tuple(
                Verdict(about=name, kind="named", value=key in found) for key, name in wanted.items()
            ),
            explanation=explain(lost, len(wanted), "entities of the reference not in the contexts"),
        )


def _judged(missing: dict[str, str]) -> Generator[Sequence[Question], Sequence[Answer], set[str]]:
    """Which of the missing entities the judge finds in the contexts under another name."""
    if not missing:
        return set()
    criterion = "Is this named in the contexts, under whatever name: "
    asked = [
        Predicate(criterion=criterion + name, needs=frozenset({"contexts"})) for name in missing.values()
    ]
    answers = require((yield asked), YesNo)
    return {key for key, answer in zip(missing, answers, strict=True) if answer.value}


def _normal(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


_VALUES = {0.0: 0.0, 1.0: 0.0, 2.0: 0.5, 3.0: 1.0}
"""What the levels of the question are worth: nothing, part, all."""


@dataclass(frozen=True, kw_only=True)
class ContextSufficiency(Metric):
    """How much of the question could be answered from the contexts alone: 0 none, .5 part, 1 all of it.

    Source: sufficient context (Joren et al. 2025, arXiv:2411.06037), with "in part" between its two labels.
    One question to the judge, who does not see the answer. The explanation says what is missing.

    It tells what other metrics mix up: a bad answer from too little was the retrieval's, a bad answer from
    enough the model's; a good answer from too little was luck, or what the model had learnt.
    """

    key = "context_sufficiency"
    needs: ClassVar[tuple[Part, ...]] = ("question", "contexts")

    threshold: Threshold = 0.75
    """All of it, rather than part of it."""

    def questions(self, record: Record) -> MetricRun:
        """One question."""
        question = Sufficient()
        (answer,) = require((yield (question,)), Level)
        words = dict(question.levels)[answer.value]
        missing = f"; missing: {answer.reason}" if answer.reason else ""
        return self.scored(
            _VALUES[answer.value],
            expected=expected_level([answer], _VALUES),
            verdicts=(Verdict(about=words, kind=question.kind, value=answer.value, reason=answer.reason),),
            explanation=f"{words}{missing}",
        )
