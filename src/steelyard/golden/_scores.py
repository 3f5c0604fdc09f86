"""From Scores to what a run keeps of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from steelyard._internal.text import shorten
from steelyard._internal.threads import run_anywhere
from steelyard.engine import evaluate_one
from steelyard.errors import ConfigurationError
from steelyard.golden._results import MetricResult
from steelyard.judge import StaticEmbedder, judge_from
from steelyard.metrics import Metric, Threshold, parse_metrics
from steelyard.questions import (
    Embedder,
    Judge,
    MetricRun,
    Noncommittal,
    Part,
    Predicate,
    Unanswered,
    YesNo,
    require,
)
from steelyard.record import Record
from steelyard.recording import unrecorded
from steelyard.scores import Evaluation, Score, Verdict


@dataclass(frozen=True, kw_only=True)
class Declined(Metric):
    """1 if the answer says that it does not know, or what the question wrongly takes for granted, else 0.

    It is for questions that the documents do not answer. The other metrics would call such an answer evasive
    or without claims; so cases of the kinds `unanswerable` and `false_premise` are measured with this one
    alone. A correction has to agree with the reference where there is one: to make one up is no better than
    to make up an answer. The local judge cannot tell a correction; with it, only declining counts.
    """

    key = "declined"
    version = "2"

    threshold: Threshold = 1.0
    """It declines, or corrects."""

    @property
    def needs(self) -> tuple[Part, ...]:
        return ("question", "answer")

    def questions(self, record: Record) -> MetricRun:
        criterion = "Does the answer say that something which the question takes for granted is not so"
        needs: frozenset[Part] = frozenset({"question", "answer"})
        if record.reference is not None:
            criterion, needs = f"{criterion}, and does the reference say the same", needs | {"reference"}
        declines, corrects = yield [Noncommittal(), Predicate(criterion=f"{criterion}?", needs=needs)]
        (answer,) = require([declines], YesNo)
        if answer.value:
            return self.scored(1.0, explanation=f"the answer declines. {answer.reason}".strip())
        if isinstance(corrects, Unanswered) and corrects.cause == "unsupported":
            return self.scored(0.0, explanation="the answer does not say that it cannot be known")
        (answer,) = require([corrects], YesNo)
        said = "corrects" if answer.value else "neither declines nor corrects"
        return self.scored(
            float(answer.value),
            explanation=f"the answer {said} what the question takes for granted. {answer.reason}".strip(),
        )


_LONGEST = 400


def assert_scores(
    record: Record, *, judge: Judge | str = "local", embedder: Embedder | None = None, **least: float
) -> dict[str, MetricResult]:
    """Fail unless a turn reaches its thresholds.

    Args:
        record: The turn.
        judge: Who answers.
        embedder: Who embeds; local static vectors by default.
        least: For a metric's name the value that it has to reach, or stay under where lower is better.

    Returns:
        What was measured, by metric.

    Raises:
        AssertionError: If a metric misses its threshold or has no value; the message shows the verdicts that
            speak against the answer, with their evidence.
        ConfigurationError: If there is no such metric or judge.

    Example:
        >>> from steelyard.record import Context, Record
        >>> lamp = Record(question="Who?", contexts=(Context(text="Ada lit it."),), answer="Ada lit it.")
        >>> assert_scores(lamp, faithfulness=0.8)["faithfulness"].value
        1.0
    """
    __tracebackhide__ = True  # pytest shows the caller's line
    if not least:
        raise ConfigurationError("assert_scores needs a metric: assert_scores(record, faithfulness=0.8)")
    if not isinstance(record, Record):
        raise ConfigurationError(f"assert_scores takes a Record, not a {type(record).__name__}")
    chosen = judge_from(judge)
    found = measured(run_anywhere(_judged(record, least, chosen, embedder)), least)
    problems = [_problem(name, result) for name, result in found.items() if result.passed is not True]
    if problems:
        asked, said = shorten(record.asked, _LONGEST), shorten(record.answer, _LONGEST)
        raise AssertionError("\n".join([*problems, f"question: {asked}", f"answer: {said}"]))
    return found


async def _judged(
    record: Record, least: Mapping[str, float], judge: Judge, embedder: Embedder | None
) -> Evaluation:
    # Under the name that was asked for, which may be an alias.
    metrics = [replace(parse_metrics([name], judge)[0], name=name) for name in least]
    try:
        with unrecorded():
            return await evaluate_one(record, metrics, judge=judge, embedder=embedder or StaticEmbedder())
    finally:
        # The loop ends here, and connections do not outlive it; a judge that is used again opens new ones.
        await judge.aclose()


def _problem(name: str, result: MetricResult) -> str:
    if result.value is None:
        return f"{name} has no value ({result.cause}): {result.explanation}"
    word = "at least" if result.direction == "higher" else "at most"
    lines = [f"{name} is {result.value:.3f}, must be {word} {result.threshold:g}: {result.explanation}"]
    return "\n".join([*lines, *(f"  {line}" for line in result.against)])


_MOST_VERDICTS = 8
_LONGEST_LINE = 240


def measured(evaluation: Evaluation, thresholds: Mapping[str, float]) -> dict[str, MetricResult]:
    """The Scores of an Evaluation by metric."""
    return {score.metric: _result(score, thresholds.get(score.metric)) for score in evaluation.scores}


def merged(before: Mapping[str, MetricResult], found: Mapping[str, MetricResult]) -> dict[str, MetricResult]:
    """The same results with the values of a repeat; one without a value adds nothing."""
    return {
        name: replace(result, values=(*result.values, *found[name].values)) if name in found else result
        for name, result in before.items()
    }


def _result(score: Score, threshold: float | None) -> MetricResult:
    against = [_line(verdict) for verdict in score.verdicts if verdict.good is False]
    return MetricResult(
        values=() if score.value is None else (score.value,),
        status=score.status,
        cause=score.cause,
        explanation=score.explanation,
        against=tuple(against[:_MOST_VERDICTS]),
        threshold=threshold,
        direction=score.direction,
    )


def _line(verdict: Verdict) -> str:
    """What was judged, what was said of it, and the passage it was checked against."""
    said = f"{verdict.kind.replace('_', ' ')}: {'yes' if verdict.value else 'no'}"
    parts = [f"{shorten(verdict.about, _LONGEST_LINE)!r} ({said})"]
    if verdict.reason:
        parts.append(shorten(verdict.reason, _LONGEST_LINE))
    piece = next((evidence for evidence in verdict.evidence if evidence.text), None)
    if piece is not None:
        where = "" if piece.context is None else f" in context {piece.context + 1}"
        parts.append(f"nearest{where}: {shorten(piece.text, _LONGEST_LINE)!r}")
    return "; ".join(parts)
