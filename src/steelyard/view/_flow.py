"""The way of the passages of one turn: retrieved, reranked, shown to the model, used by the answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from steelyard._internal.text import shorten
from steelyard.record import Context, Record
from steelyard.scores import Evaluation

_ROWS = 60
_OF_PASSAGES = frozenset({"useful", "relevant"})
"""Kinds of verdict that speak of a passage itself, whether or not the answer rests on it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FlowRow:
    """One passage, and how far it came."""

    title: str = field(repr=False)
    """Its id, or how its text begins."""
    places: tuple[str, ...]
    """At each step its place there, from 1, with its score if it has one; empty where it is missing."""
    lost: bool
    """Whether the diagnosis names it as found and not shown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Flow:
    """The steps with how many passages each left, and what became of each passage."""

    steps: tuple[tuple[str, int], ...]
    """Name and number of passages, in order."""
    rows: tuple[FlowRow, ...]
    """The first 60 passages, in order of the first step that has them."""
    more: int
    """How many are not among them."""


def flow_of(evaluation: Evaluation) -> Flow | None:
    """The steps of a turn's retrieval; None without a passage."""
    record = evaluation.record
    if record is None or not (record.contexts or record.retrieved or record.stages):
        return None
    steps = _steps(record, used_contexts(evaluation))
    every = list(dict.fromkeys(key for _, found in steps for key in found))
    titles = {_key(one): _title(one) for one in _all(record)}
    lost = _lost(evaluation, record)
    return Flow(
        steps=tuple((name, len(found)) for name, found in steps),
        rows=tuple(
            FlowRow(
                title=titles[key],
                places=tuple(found.get(key, "") for _, found in steps),
                lost=key in lost,
            )
            for key in every[:_ROWS]
        ),
        more=max(len(every) - _ROWS, 0),
    )


def used_contexts(evaluation: Evaluation) -> frozenset[int]:
    """The contexts that hold the evidence of a verdict that speaks for the answer."""
    return frozenset(
        piece.context
        for score in evaluation.scores
        for verdict in score.verdicts
        if verdict.good and verdict.kind not in _OF_PASSAGES
        for piece in verdict.evidence
        if piece.context is not None
    )


_Found = dict[tuple[str, str], str]
"""By passage, its place and score in a step."""


def _steps(record: Record, used: frozenset[int]) -> list[tuple[str, _Found]]:
    steps = _retrieved(record)
    if record.contexts:
        shown = [one for one in record.contexts if one.in_prompt is not False]
        steps.append(("shown" if record.contexts_source == "in_prompt" else "taken as shown", _found(shown)))
        steps.append(("used", _found(one for at, one in enumerate(record.contexts) if at in used)))
    return steps


def _retrieved(record: Record) -> list[tuple[str, _Found]]:
    """What each inner step of the retrieval returned, and all together where that is another thing."""
    stages: dict[str, list[Context]] = {}
    for stage in record.stages:
        stages.setdefault(shorten(stage.name, 40), []).extend(stage.contexts)
    steps = [(name, _found(contexts)) for name, contexts in stages.items()]
    retrieved = _found(record.retrieved or record.contexts)
    # Where a retriever is built out of others, what it returned is what its last one did, or more than that.
    if record.contexts_source != "told" and not any(set(found) == set(retrieved) for _, found in steps):
        is_first = not steps or len(retrieved) >= len(steps[0][1])
        steps.insert(0 if is_first else len(steps), ("retrieved", retrieved))
    return steps


def _found(contexts: Iterable[Context]) -> _Found:
    found: _Found = {}
    for place, one in enumerate(contexts, 1):
        score = "" if one.score is None else f" · {one.score:.3g}"
        found.setdefault(_key(one), f"{place}{score}")
    return found


def _key(context: Context) -> tuple[str, str]:
    return (context.id, "") if context.id else ("", context.text)


def _title(context: Context) -> str:
    return shorten(context.id or context.text, 80)


def _all(record: Record) -> Iterable[Context]:
    yield from record.retrieved
    yield from record.contexts
    for stage in record.stages:
        yield from stage.contexts


def _lost(evaluation: Evaluation, record: Record) -> frozenset[tuple[str, str]]:
    found = evaluation.diagnosis
    if found is None or not found.lost:
        return frozenset()
    of_stage: Sequence[Context] = [
        one for stage in record.stages if stage.name == found.stage for one in stage.contexts
    ]
    places = of_stage if found.stage else record.retrieved
    return frozenset(_key(places[at]) for at in found.lost if at < len(places))
