"""What every metric is: a name, what it needs, and a generator that asks questions and returns a Score.

The formulas (`questions`) do no I/O. What does is here: `Metric.score` and `score_record`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from steelyard.errors import ConfigurationError
from steelyard.judge import StaticEmbedder, judge_from
from steelyard.questions import Embedder, Fuse, Judge, MetricRun, Part, QuestionBatcher, has
from steelyard.record import Record, clean, text_of
from steelyard.scores import Direction, Provenance, Score, Usage, clean_score

Threshold = float | Literal["baseline"] | None
"""A bar that scores are held against, `"baseline"` for one that is learned, or none."""
_MANY = 50
"""Verdicts of a Score after which other records may go on."""
_NOT_OPTIONS = frozenset({"name", "threshold", "judge"})


@dataclass(frozen=True, kw_only=True)
class Metric(ABC):
    """A formula and the questions it asks.

    A metric of your own subclasses this: set `key`, say what it `needs`, and write `questions`. `questions`
    does no I/O: it yields what it wants to know, and the batcher asks. `score` is the short way to one Score;
    it does the I/O, with a judge and an embedder that it opens and closes where none are given.
    """

    key: ClassVar[str]
    """The metric's standard name, in snake case."""
    version: ClassVar[str] = "2"
    """Goes up when the definition changes; part of every result id."""

    name: str = ""
    """The name its Scores carry; the key where none is given. Another one lets a metric run twice."""
    threshold: Threshold = None
    """Scores on the right side of it pass; None for no verdict. A metric has one of its own only if its value
    means one. `"baseline"` learns it: a Monitor takes what 95 % of your own earlier turns reached."""
    judge: Judge | None = None
    """A judge for this metric alone."""

    def __post_init__(self) -> None:
        """Fill in the name, and refuse options that cannot mean anything."""
        if not self.name:
            object.__setattr__(self, "name", self.default_name)
        for option, hint in get_type_hints(type(self)).items():
            value = getattr(self, option, None)
            if get_origin(hint) is Literal and value not in get_args(hint):
                raise ConfigurationError(f"{self.key}: {option}={value!r} is not one of {_words(hint)}")
            if hint == tuple[Part, ...] and not (
                value and isinstance(value, tuple | list) and {*value} <= {*get_args(Part)}
            ):
                raise ConfigurationError(
                    f"{self.key}: {option}={value!r} must be a tuple out of {_words(Part)}"
                )
        if self.threshold not in (None, "baseline") and _number(self.threshold) is None:
            raise ConfigurationError(
                f"{self.key}: threshold={self.threshold!r} is not a number, 'baseline' or None; "
                "give one of these"
            )
        if self.judge is not None and not isinstance(self.judge, Judge):
            raise ConfigurationError(
                f"{self.key}: judge={self.judge!r} is not a Judge; make one with steelyard.judge.judge_from"
            )

    @property
    def default_name(self) -> str:
        """The name where none is given."""
        return self.key

    @property
    def direction(self) -> Direction:
        """Which way is better."""
        return "higher"

    @property
    @abstractmethod
    def needs(self) -> tuple[Part, ...]:
        """Parts of the record without which there is no score."""

    def missing(self, record: Record) -> Part | None:
        """The first part that this metric needs and the record does not have."""
        return next((part for part in self.needs if not has(record, part)), None)

    @property
    def options(self) -> Mapping[str, Any]:
        """What besides the record and the judge decides the value."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _NOT_OPTIONS}

    @property
    def options_text(self) -> str:
        """Its options in words, e.g. `variant=entailment, claims=extracted`; empty if it has none."""
        return ", ".join(f"{name}={value}" for name, value in self.options.items())

    @abstractmethod
    def questions(self, record: Record) -> MetricRun:
        """Ask, round by round, and return the Score. The record has everything that `needs` lists."""

    def ask(self, record: Record) -> MetricRun:
        """`questions`, for a record that may lack what the metric needs."""
        part = self.missing(record)
        if part is not None:
            lack = part.replace("_", " ")
            return Score.not_applicable(
                self.name, cause=f"missing_{part}", explanation=f"the record has no {lack}"
            )
        return (yield from self.questions(record))

    async def score(
        self,
        record: Record,
        *,
        judge: Judge | str | None = None,
        embedder: Embedder | None = None,
        fuse: Fuse = "view",
    ) -> Score:
        """Score one record.

        Args:
            record: The turn; it is cleaned first.
            judge: Who answers, or a name such as `"local"`; the metric's own judge wins.
            embedder: Who embeds; local static vectors by default.
            fuse: How questions share requests.

        Raises:
            ConfigurationError: If there is no judge, or an option cannot mean what was given.
        """
        given = self.judge or judge
        if given is None:
            raise ConfigurationError(f"{self.name!r} has no judge; pass judge=LocalJudge() or another")
        chosen = judge_from(given)
        vectors = embedder if embedder is not None else StaticEmbedder()
        try:
            made = await score_record(clean(record), [self], judge=chosen, embedder=vectors, fuse=fuse)
        finally:
            if chosen is not given:
                await chosen.aclose()
            if vectors is not embedder:
                await vectors.aclose()
        return made.scores[0]

    def scored(self, value: float, *, expected: float | None = None, **details: Any) -> Score:
        """A Score with a value, for `questions` to return.

        Args:
            value: What the formula comes to on the judge's verdicts.
            expected: Its expectation under the judge's probabilities, if it gave any: then this is the
                value, and the other the `hard_value`.
            details: Further fields of the Score.
        """
        if expected is not None:
            details["hard_value"] = value
        return Score(
            metric=self.name, status="scored", value=value if expected is None else expected, **details
        )

    def not_applicable(self, cause: str, explanation: str) -> Score:
        """A Score without a value, for `questions` to return if the formula has nothing to work on."""
        return Score.not_applicable(self.name, cause=cause, explanation=explanation)


def _words(hint: Any) -> str:
    return ", ".join(map(repr, get_args(hint)))


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordScores:
    """What scoring one record with one judge came to."""

    scores: tuple[Score, ...]
    """One finished Score per metric, in order."""
    usage: Usage
    """What they cost together."""
    retry_after: float | None = None
    """The longest wait in seconds that a server asked for when it failed; None where none did."""


async def score_record(
    record: Record,
    metrics: list[Metric],
    *,
    judge: Judge,
    embedder: Embedder | None = None,
    fuse: Fuse = "view",
    deadline: float | None = None,
) -> RecordScores:
    """Score one record with metrics that share a judge."""
    batcher = QuestionBatcher(judge=judge, embedder=embedder, fuse=fuse, deadline=deadline)
    scores = await batcher.run(record, metrics)
    provenance = _provenance(judge, embedder, fuse)
    company = sorted({part for metric in metrics for part in metric.needs}) if fuse == "record" else []
    finished: list[Score] = []
    for score, metric in zip(scores, metrics, strict=True):
        finished.append(_finish(score, metric, record, provenance, company))
        if len(finished[-1].verdicts) > _MANY:
            await asyncio.sleep(0)
    return RecordScores(scores=tuple(finished), usage=batcher.usage, retry_after=batcher.retry_after)


def metric_provenance(
    metric: Metric, *, judge: Judge, embedder: Embedder | None = None, fuse: Fuse = "view"
) -> Provenance:
    """How a Score will have been made, known before anything is asked: who has it need not ask again."""
    return replace(_provenance(metric.judge or judge, embedder, fuse), metric_version=metric.version)


def _provenance(judge: Judge, embedder: Embedder | None, fuse: Fuse) -> Provenance:
    return Provenance(
        judge=judge.name,
        embedder=embedder.name if embedder else None,
        prompt_version=judge.prompt_version,
        fuse=fuse,
        calibrated=judge.capabilities.calibrated,
    )


def _finish(
    score: Score, metric: Metric, record: Record, provenance: Provenance, company: list[Part]
) -> Score:
    """Give a raw Score its identity: how it was made, its id, and whether it passes."""
    value = None if score.value is None else _number(score.value)
    if value is None and (score.status == "scored" or score.value is not None):
        score = Score.failed(
            metric.name, cause="metric_error", explanation=f"the value is {text_of(score.value)!r}"
        )
    score = clean_score(score)
    named = replace(
        score,
        metric=metric.name,
        value=value,
        options=metric.options_text,
        direction=metric.direction,
        provenance=replace(provenance, metric_version=metric.version),
        id=_result_id(metric, record, provenance, [company, score.also_seen if not company else {}]),
    )
    return held_against(named, None if isinstance(metric.threshold, str) else metric.threshold)


def held_against(score: Score, threshold: float | None) -> Score:
    """The Score with a bar, and whether it passes."""
    value, passed = score.value, None
    # A bar that asks for all of it is about the verdicts: no expectation under probabilities reaches it.
    if threshold == (1.0 if score.direction == "higher" else 0.0) and score.hard_value is not None:
        value = score.hard_value
    if value is not None and threshold is not None:
        passed = value >= threshold if score.direction == "higher" else value <= threshold
    label = score.label if passed is None or score.label else ("pass" if passed else "fail")
    return replace(score, threshold=threshold, passed=passed, label=label)


def _number(value: object) -> float | None:
    """What a metric gave as its value as a plain float; None for what is not a number, or is not finite."""
    if isinstance(value, str):
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _result_id(metric: Metric, record: Record, made: Provenance, view: list[Any]) -> str:
    """The same record, metric, options and way of judging give the same id, so that sinks upsert.

    In view mode what company added to a view is in it: only questions of the first round admit anything, so
    it is known whatever fails later. In record mode what the metrics need together is: it decides the views.
    """
    options = json.dumps(metric.options, sort_keys=True, default=repr)
    parts = [
        *(record.id, metric.name, metric.key, metric.version, options),
        *(made.judge, made.embedder, made.prompt_version, made.fuse, view),
    ]
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()
