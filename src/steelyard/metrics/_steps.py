"""Steps that several metrics take in the same way: getting at claims, turning answers into verdicts."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import Literal

from steelyard.questions import Answer, Claims, Part, Question, Texts, YesNo, require
from steelyard.record import Record
from steelyard.scores import Verdict
from steelyard.text import statements

ClaimsFrom = Literal["extracted", "sentences"]
"""Whether the judge extracts claims, or each sentence is one."""

Step = Generator[Sequence[Question], Sequence[Answer], list[str]]
"""A part of a metric that asks and comes back with texts."""


def needs_of(shown: Sequence[Part]) -> tuple[Part, ...]:
    """What a criterion of the user's own needs: the answer, or or all that is shown where no answer is."""
    return ("answer",) if "answer" in shown else tuple(shown)


def claims_of(record: Record, of: Literal["answer", "reference"], how: ClaimsFrom) -> Step:
    """The claims of the answer or the reference; use with `yield from`.

    Args:
        record: The turn.
        of: Which text.
        how: Extracted by the judge with the question in view, or one claim a sentence that states
            something, without asking.
    """
    text = record.answer if of == "answer" else record.reference or ""
    if how == "sentences":
        return [sentence.text for sentence in statements(text)]
    (found,) = require((yield [Claims(of=of)]), Texts)
    return list(dict.fromkeys(found.items))


def both_claims() -> Generator[Sequence[Question], Sequence[Answer], tuple[list[str], list[str]]]:
    """The claims of the answer and of the reference, in one round; use with `yield from`."""
    ours, theirs = require((yield [Claims(of="answer"), Claims(of="reference")]), Texts)
    return list(dict.fromkeys(ours.items)), list(dict.fromkeys(theirs.items))


def verdicts(kind: str, about: Iterable[str], answers: Iterable[YesNo]) -> tuple[Verdict, ...]:
    """One Verdict per judged text.

    Args:
        kind: What was asked.
        about: The judged texts.
        answers: The judge's answers, in the same order.
    """
    return tuple(
        Verdict(
            about=text,
            kind=kind,
            value=answer.value,
            probability=answer.probability,
            reason=answer.reason,
            evidence=answer.evidence,
        )
        for text, answer in zip(about, answers, strict=True)
    )


def name_worst(items: Sequence[str], *, most: int = 2) -> str:
    """Up to a few items for an explanation, quoted and shortened."""
    shown = ", ".join(f'"{item[:120]}"' for item in items[:most])
    return f"{shown} and {len(items) - most} more" if len(items) > most else shown
