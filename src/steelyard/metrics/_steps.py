"""Steps that several metrics take in the same way: getting at claims, turning answers into verdicts."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from typing import Literal

from steelyard.judge.overlap import locate, locate_all
from steelyard.metrics._formulas import chances, expected_share, share, share_error
from steelyard.metrics._metric import Metric
from steelyard.questions import Answer, Claims, Question, Texts, YesNo, require
from steelyard.record import Record
from steelyard.scores import Evidence, Score, Verdict
from steelyard.text import Sentence, iter_sentences, iter_statements, spread

ClaimsFrom = Literal["extracted", "sentences", "whole"]
"""Whether the judge extracts claims, each sentence is one, or the whole text is a single one."""

MOST_JUDGED = 200
"""Claims or sentences of a text that are judged at most, evenly spread over it if there are more."""
_SLICE = 0.002
"""Seconds of reading after which other records may go on."""

Step = Generator[Sequence[Question], Sequence[Answer], list[str]]
"""A part of a metric that asks and comes back with texts."""


def claims_of(record: Record, of: Literal["answer", "reference"], how: ClaimsFrom) -> Step:
    """The claims of the answer or the reference; use with `yield from`."""
    text = record.answer if of == "answer" else record.reference or ""
    if how != "extracted":
        # Questions, headings and refusals claim nothing, and would be judged unsupported.
        stated = yield from _in_steps(iter_statements(text, record.asked, most=2 * MOST_JUDGED))
        return stated if how == "sentences" or not stated else [text.strip()]
    (found,) = require((yield [Claims(of=of)]), Texts)
    return _each_once(found)


def sentences_of(texts: Iterable[str]) -> Step:
    """The sentences of some texts; use with `yield from`."""
    return (yield from _in_steps(iter_sentences("\n\n".join(texts))))


def _in_steps(found: Iterable[Sentence | None]) -> Step:
    """Their texts, with pauses: a round without questions is one."""
    kept: list[str] = []
    begun = time.perf_counter()
    for sentence in found:
        if time.perf_counter() - begun > _SLICE:
            yield ()
            begun = time.perf_counter()
        if sentence is not None:
            kept.append(sentence.text)
    return spread(kept, MOST_JUDGED)


def _each_once(found: Texts) -> list[str]:
    return spread(list(dict.fromkeys(found.items)), MOST_JUDGED)


def both_claims() -> Generator[Sequence[Question], Sequence[Answer], tuple[list[str], list[str]]]:
    """The claims of the answer and of the reference, in one round; use with `yield from`."""
    ours, theirs = require((yield [Claims(of="answer"), Claims(of="reference")]), Texts)
    return _each_once(ours), _each_once(theirs)


def verdicts(
    kind: str,
    about: Sequence[str],
    answers: Iterable[YesNo],
    *,
    record: Record | None = None,
    of_answer: bool = False,
    located: bool = True,
) -> tuple[Verdict, ...]:
    """One Verdict per judged text.

    With `record`, evidence points into its contexts: at the sentence that has most of the judged text.
    """
    # All at once, so that a sentence that stands twice is not pointed at twice.
    spans = locate_all(about, record.answer) if of_answer and record else [None] * len(about)
    return tuple(
        Verdict(
            about=text,
            kind=kind,
            value=answer.value,
            probability=answer.probability,
            reason=answer.reason,
            evidence=tuple(_narrowed(piece, text, record if located else None) for piece in answer.evidence),
            span=span,
        )
        for text, answer, span in zip(about, answers, spans, strict=True)
    )


def _narrowed(evidence: Evidence, about: str, record: Record | None) -> Evidence:
    """A pointer at a whole context as a pointer at a sentence of it, where that can be told."""
    rank = evidence.context
    if record is None or rank is None or evidence.start is not None or rank >= len(record.contexts):
        return evidence
    text = record.contexts[rank].text
    place = locate(about, text)
    if place is None:
        return evidence
    start, end = place
    return replace(evidence, start=start, end=end, text=text[start:end], located=True)


def share_score(
    metric: Metric,
    kind: str,
    about: Sequence[str],
    answers: Sequence[YesNo],
    *,
    what: str,
    of: bool = True,
    record: Record | None = None,
    of_answer: bool = False,
    located: bool = True,
) -> Score:
    """The share of yes among some verdicts as a Score, with its expectation and its standard error.

    `what` is counted in the explanation, as in "2 of 3 claims not supported"; `of` is whose share it is.
    """
    counted = of if metric.direction == "lower" else not of
    named = [text for text, answer in zip(about, answers, strict=True) if answer.value == counted]
    return metric.scored(
        share(answer.value == of for answer in answers),
        expected=expected_share(chances(answers), of=of),
        verdicts=verdicts(kind, about, answers, record=record, of_answer=of_answer, located=located),
        standard_error=share_error([answer.probability for answer in answers]),
        explanation=explain(named, len(about), what),
    )


def explain(named: Sequence[str], total: int, what: str) -> str:
    """How many of a number of texts are meant, and the first of them."""
    return f"{len(named)} of {total} {what}" + (f": {name_worst(named)}" if named else "")


def name_worst(items: Sequence[str]) -> str:
    """Two items for an explanation, quoted and shortened, and how many more there are."""
    shown = ", ".join(f'"{item[:120]}"' for item in items[:2])
    return f"{shown} and {len(items) - 2} more" if len(items) > 2 else shown
