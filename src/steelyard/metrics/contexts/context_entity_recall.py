"""Context entity recall: do the contexts name whom and what the reference names?"""

from __future__ import annotations

import unicodedata
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from steelyard.metrics._formulas import share
from steelyard.metrics._metric import Metric
from steelyard.metrics._steps import name_worst
from steelyard.questions import Answer, Entities, MetricRun, Part, Predicate, Question, Texts, YesNo, require
from steelyard.record import Record
from steelyard.scores import Verdict


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
            explanation=f"{len(lost)} of {len(wanted)} entities of the reference not in the contexts"
            + (f": {name_worst(lost)}" if lost else ""),
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
