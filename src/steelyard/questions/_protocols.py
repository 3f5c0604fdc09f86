"""The Judge protocol: a Request goes in, a Reply comes out, and nothing in between is guessed."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from steelyard.questions._answer import Answer
from steelyard.questions._question import PARTS, Part, Question
from steelyard.record import Context, Record
from steelyard.scores import Usage


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """The material that one request shows: a part that is not in view is None."""

    question: str | None = field(default=None, repr=False)
    contexts: tuple[Context, ...] | None = None
    answer: str | None = field(default=None, repr=False)
    reference: str | None = field(default=None, repr=False)
    reference_contexts: tuple[Context, ...] | None = None

    @classmethod
    def of(cls, record: Record, parts: frozenset[Part]) -> View:
        """The parts of a record that a request may show; an empty part is as good as none."""
        return cls(
            question=(record.asked or None) if "question" in parts else None,
            contexts=(record.contexts or None) if "contexts" in parts else None,
            answer=(record.answer or None) if "answer" in parts else None,
            reference=(record.reference or None) if "reference" in parts else None,
            reference_contexts=(record.reference_contexts or None) if "reference_contexts" in parts else None,
        )


def has(record: Record, part: Part) -> bool:
    """Whether a part of a record has something in it."""
    value = record.asked if part == "question" else getattr(record, part)
    texts = (context.text for context in value) if isinstance(value, tuple) else (value,)
    return any(text and text.strip() for text in texts)


def present(record: Record) -> frozenset[Part]:
    """The parts of a record that have something in them."""
    return frozenset(part for part in PARTS if has(record, part))


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One trip to a judge: some material and the questions about it, each under its own key."""

    view: View
    questions: Mapping[str, Question]
    """By key (`s1` for the first statement, `c2` for context 2, `q1`, ...), in the order asked."""
    attempt: int = 1
    """2 where the first reply to these questions had no usable answer: they have to be asked otherwise, or a
    judge at temperature 0 says the same again."""
    tenant: str | None = None
    """Whose record it is about; what is kept of a reply is given to nobody else. Judges do not see it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What a judge sent back. Keys may be missing or extra; the batcher counts both."""

    answers: Mapping[str, Answer]
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, kw_only=True, slots=True)
class Capabilities:
    """What a judge can do; the batcher plans by it."""

    kinds: frozenset[type[Question]]
    """The questions it can answer. All others come back `unsupported` without being sent."""
    independent: bool = False
    """Whether it answers each question of a request by itself, so that independent repeats may share one."""
    max_questions: int = 60
    """Questions in one request."""
    max_characters: int = 400_000
    """Characters of material and questions in one request."""
    max_work: int = sys.maxsize
    """Characters of material times questions in one request: work that grows with both is bounded by it."""
    calibrated: bool = False
    """Whether its probabilities were calibrated against people."""


@runtime_checkable
class Judge(Protocol):
    """Whoever answers questions about a record: a model behind an API, or the embedded local judge.

    A judge is used from one event loop at a time, but may see several in its life.
    """

    @property
    def name(self) -> str:
        """Name with model, as it stands on every Score, e.g. `chat:gpt-4o-mini`."""

    @property
    def prompt_version(self) -> str:
        """Version of the wording it puts to its model."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can do."""

    async def answer(self, request: Request) -> Reply:
        """Answer as many of the questions as possible.

        Raises:
            JudgeError: If the whole request came to nothing.
        """

    async def aclose(self) -> None:
        """Release connections; the judge opens new ones if it is used again."""


@runtime_checkable
class Embedder(Protocol):
    """Whoever turns texts into vectors."""

    @property
    def name(self) -> str:
        """Name with model, as it stands on every Score that used it."""

    async def embed(self, texts: Sequence[str]) -> tuple[Sequence[Sequence[float]], Usage]:
        """One vector per text, in order.

        Raises:
            JudgeError: If there are no vectors.
        """

    async def aclose(self) -> None:
        """Release connections; the embedder opens new ones if it is used again."""
