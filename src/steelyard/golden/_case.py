"""One case of a golden set: a question, what is known about its answer, and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

from steelyard.record import Context, Record

Source = Literal["person", "synthetic", "production"]
"""Who thought of a case: a person, a model, or the users of the application."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One earlier message of a conversation."""

    role: Literal["user", "assistant"]
    """Who said it."""
    text: str = field(repr=False)
    """What was said."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A question with what a good answer to it must hold against.

    Example:
        >>> Case(question="When was it built?", reference="In 1811.").id
        '4ca32e3e2637a27f'
    """

    question: str = field(repr=False)
    """What is asked."""
    id: str = ""
    """Unique in its set; made from the question and the history where none is given."""
    history: tuple[Message, ...] = ()
    """The conversation before the question, oldest first."""
    reference: str | None = field(default=None, repr=False)
    """The expected answer."""
    reference_contexts: tuple[str, ...] = field(default=(), repr=False)
    """The passages that a good answer rests on."""
    contexts: tuple[str, ...] = field(default=(), repr=False)
    """What was retrieved, for a case whose retrieval is part of it."""
    answer: str | None = field(default=None, repr=False)
    """What was answered, for a case from production or an earlier run."""
    tags: tuple[str, ...] = ()
    """Words to slice by."""
    source: Source = "person"
    """Who thought of it."""
    kind: str = ""
    """What sort of question it is, such as `single_passage`, `comparison` or `unanswerable`."""
    inclusion_probability: float | None = None
    """For a case that was drawn: the probability with which it was; its inverse is the weight of the case."""
    reviewed_by: str | None = None
    """The person who has looked at it; None: nobody yet."""
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Anything else; plain JSON values."""

    def __post_init__(self) -> None:
        if not self.id:
            told = "\x1f".join(
                [*(f"{message.role}:{message.text}" for message in self.history), self.question]
            )
            object.__setattr__(self, "id", sha256(told.encode("utf-8", "replace")).hexdigest()[:16])

    @property
    def weight(self) -> float:
        """How many turns of production it stands for; 1 where it was not drawn."""
        return 1 / self.inclusion_probability if self.inclusion_probability else 1.0

    @property
    def unanswerable(self) -> bool:
        """Whether a good answer says that it cannot be answered."""
        return self.kind in ("unanswerable", "false_premise")

    def record(self, *, answer: str | None = None, contexts: tuple[Context, ...] | None = None) -> Record:
        """The case as a Record, with an application's answer and contexts where they are given."""
        found = tuple(Context(text=text, rank=rank) for rank, text in enumerate(self.contexts))
        expected = tuple(Context(text=text, rank=rank) for rank, text in enumerate(self.reference_contexts))
        return Record(
            id=self.id,
            question=self.question,
            contexts=found if contexts is None else contexts,
            answer=(self.answer or "") if answer is None else answer,
            reference=self.reference,
            reference_contexts=expected,
            tags=self.tags,
        )
