"""Scripted answers that the metric tests share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from steelyard.questions import (
    Answer,
    Claims,
    Contradicted,
    Entities,
    GeneratedQuestions,
    Level,
    Noncommittal,
    Question,
    Rating,
    Relevant,
    Request,
    Same,
    Supported,
    Texts,
    Unanswered,
    Useful,
    YesNo,
)
from steelyard.scores import Usage
from steelyard.testing import ScriptedJudge


@dataclass(frozen=True, kw_only=True)
class Script:
    """What a scripted judge believes; every text in `true` gets a yes, everything else a no."""

    answer_claims: tuple[str, ...] = ()
    reference_claims: tuple[str, ...] = ()
    true: frozenset[str] = frozenset()
    useful: frozenset[int] = frozenset()
    entities: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    questions: tuple[str, ...] = ()
    evasive: bool = False
    ratings: Mapping[int, float | None] = field(default_factory=dict)
    by_passage: frozenset[tuple[str, int]] = frozenset()

    def judge(self) -> ScriptedJudge:
        """A judge that answers from this script."""
        return ScriptedJudge(self._answer)

    def _answer(self, question: Question, _: Request) -> Answer | None:
        match question:
            case Claims(of=of):
                return Texts(items=self.answer_claims if of == "answer" else self.reference_claims)
            case Entities(of=of):
                return Texts(items=self.entities.get(of, ()))
            case GeneratedQuestions(count=count):
                return Texts(items=self.questions[:count])
            case Supported(claim=claim, passage=int() as passage):
                return YesNo(value=(claim, passage) in self.by_passage)
            case Supported(claim=text) | Contradicted(claim=text) | Same(claim=text) | Relevant(text=text):
                return YesNo(value=text in self.true)
            case Useful(context=context):
                return YesNo(value=context in self.useful)
            case Noncommittal():
                return YesNo(value=self.evasive)
            case Rating(sample=sample):
                value = self.ratings.get(sample)
                return (
                    Unanswered(cause="refused") if value is None else Level(value=value, reason="as scripted")
                )
        raise AssertionError(f"nothing scripted for {question!r}")


@dataclass
class FixedEmbedder:
    """Embeds by a function."""

    embedding: Callable[[str], Sequence[float]]
    name: str = "fixed"
    texts: list[str] = field(default_factory=list)

    async def embed(self, texts: Sequence[str]) -> tuple[Sequence[Sequence[float]], Usage]:
        """One vector per text."""
        self.texts += texts
        return [self.embedding(text) for text in texts], Usage(requests=1)

    async def aclose(self) -> None:
        """Nothing to release."""
