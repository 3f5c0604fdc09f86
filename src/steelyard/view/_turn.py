"""The page of a turn: its passages' way, its claims, and the turns before and after it in its list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response

from steelyard._internal.text import shorten
from steelyard.diagnosis import MENDS
from steelyard.record import Context, Record
from steelyard.recording.explaining import explain
from steelyard.report.turn import ClaimView, claim, in_answer, in_context, passage, words_of
from steelyard.results import ResultsReader
from steelyard.results.labels import Label
from steelyard.results.queries import of_session
from steelyard.scores import Evaluation, Score, Verdict
from steelyard.view._list import FIRST, number_of, order_of
from steelyard.view._requests import LONGEST, filter_of, pairs_of
from steelyard.view._site import Site

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
    titles = {_key(one): shorten(one.id or one.text, 80) for one in _all(record)}
    lost = _lost(evaluation, record)
    return Flow(
        steps=tuple((name, len(found)) for name, found in steps),
        rows=tuple(
            FlowRow(
                title=titles[key], places=tuple(found.get(key, "") for _, found in steps), lost=key in lost
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


_ANSWER = 20_000
_CONTEXT = 6_000
_CONTEXTS = 30
_CLAIMS = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledClaim:
    """One verdict, and what people said of it."""

    index: int
    """Its place among the metric's verdicts."""
    claim: ClaimView
    probability: float | None
    """The judge's probability of yes."""
    words: tuple[str, str]
    """What a person may say of it: for it, and against it."""
    labels: tuple[Label, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreView:
    """One metric's score with its claims."""

    score: Score
    claims: tuple[LabelledClaim, ...]
    """The first 60 verdicts."""
    more: int


def turn_page(
    evaluation: Evaluation, labels: Sequence[Label], *, metric: str = "", focus: int | None = None
) -> dict[str, Any]:
    """What the page of a turn shows; all texts made harmless and cut to size.

    The claims of a metric are on the texts: of what weighs most against the turn if it is not one of its
    metrics. One claim is lit: the first that speaks against the turn unless `focus` says which.
    """
    record, found = evaluation.record, evaluation.diagnosis
    contexts = record.contexts if record else ()
    scores = tuple(_score(score, len(contexts), labels) for score in evaluation.scores)
    shown = _shown(evaluation, scores, metric)
    verdicts = shown.score.verdicts[:_CLAIMS] if shown else ()
    return {
        "evaluation": evaluation,
        "scores": scores,
        "shown": shown,
        "focus": _focus(evaluation, shown, focus),
        "texts": texts_of(record, verdicts) if record else (),
        "contexts": contexts_of(evaluation, verdicts),
        "more_contexts": max(len(contexts) - _CONTEXTS, 0),
        "flow": flow_of(evaluation),
        "labels": [label for label in labels if label.claim is None],
        "doubts": explain(record).doubts if record else (),
        "mend": MENDS[found.cause] if found is not None and found.cause else "",
    }


def texts_of(record: Record, verdicts: Sequence[Verdict] = ()) -> list[dict[str, Any]]:
    """Question, answer and reference, as far as they are there."""
    found = explain(record)
    texts = [
        ("Question", record.question, [], found.question.how),
        ("Answer", record.answer, in_answer(record.answer, verdicts), found.answer.how),
        ("Reference", record.reference or "", [], ""),
    ]
    return [
        {"passage": passage(title, text, spans, _ANSWER), "how": how}
        for title, text, spans, how in texts
        if text
    ]


def contexts_of(evaluation: Evaluation, verdicts: Sequence[Verdict] = ()) -> list[dict[str, Any]]:
    """The passages that the model was given, in pieces, with all that is known of each."""
    if (record := evaluation.record) is None:
        return []
    found = explain(record).passages
    used = used_contexts(evaluation)
    named = evaluation.diagnosis.contexts if evaluation.diagnosis else ()
    return [
        {
            "passage": passage(f"Context {at + 1}", one.text, in_context(at, one.text, verdicts), _CONTEXT),
            "name": one.id or "",
            "rank": None if one.rank is None else one.rank + 1,
            "score": one.score,
            "seen": one.seen,
            "how": found[at].how,
            "is_used": at in used,
            "is_named": at in named,
        }
        for at, one in enumerate(record.contexts[:_CONTEXTS])
    ]


def _score(score: Score, contexts: int, labels: Sequence[Label]) -> ScoreView:
    own = [label for label in labels if label.metric == score.metric]
    return ScoreView(
        score=score,
        claims=tuple(
            LabelledClaim(
                index=index,
                claim=claim(verdict, contexts),
                probability=verdict.probability,
                words=("good", "bad") if verdict.good is None else words_of(verdict.kind),
                labels=tuple(label for label in own if label.claim == index),
            )
            for index, verdict in enumerate(score.verdicts[:_CLAIMS])
        ),
        more=max(len(score.verdicts) - _CLAIMS, 0),
    )


def _shown(evaluation: Evaluation, scores: Sequence[ScoreView], metric: str) -> ScoreView | None:
    """The metric that was asked for, that the diagnosis goes by, or the first that has not passed."""
    decided = evaluation.diagnosis.metric if evaluation.diagnosis else ""
    for name in (metric, decided):
        if found := next((one for one in scores if one.score.metric == name), None):
            return found
    with_claims = [one for one in scores if one.claims]
    bad = [one for one in with_claims if one.score.passed is False]
    return next(iter([*bad, *with_claims, *scores]), None)


def _focus(evaluation: Evaluation, shown: ScoreView | None, asked: int | None) -> int | None:
    if shown is None or not shown.claims:
        return None
    if asked is not None:
        return asked if 0 <= asked < len(shown.claims) else None
    found = evaluation.diagnosis
    if found and found.metric == shown.score.metric and found.claim is not None:
        return found.claim if found.claim < len(shown.claims) else None
    return next((one.index for one in shown.claims if one.claim.good is False), None)


_SESSION: Final = 50
_OWN: Final = ("id", "show", "claim", "at")
"""What an address says of the turn itself; the rest is the list it was opened from."""


def turn(site: Site, request: Request) -> Response:
    """One turn, with its claims, evidence and labels."""
    given = request.query_params
    record_id = given.get("id", "")
    with site.open() as results:
        found = results.evaluation(record_id)
        if found is None:
            return site.say(request, "There is no turn of this id.", 404)
        beside = _beside(results, found, request)
    focus = None
    with suppress(ValueError):
        focus = int(given["claim"]) if "claim" in given else None
    page = turn_page(
        found,
        site.labels.of(record_id),
        metric=given.get("show", given.get("metric", ""))[:LONGEST],
        focus=focus,
    )
    listed = [pair for pair in pairs_of(request) if pair[0] not in _OWN]
    return site.render(
        request,
        "turn.html",
        page=page,
        beside=beside,
        listed=urlencode(listed),
        trace=_link(site.trace_url, found),
    )


def _link(template: str, evaluation: Evaluation) -> str:
    """Where the turn's trace is; empty if nobody said, or it has none."""
    if not template or not (evaluation.trace and evaluation.trace.trace_id):
        return ""
    ids = {"trace_id": evaluation.trace.trace_id, "span_id": evaluation.trace.span_id or ""}
    for name, value in {**ids, "record_id": evaluation.record_id}.items():
        template = template.replace(f"{{{name}}}", quote(value, safe=""))
    return template


def _beside(results: ResultsReader, evaluation: Evaluation, request: Request) -> dict[str, Any]:
    """The turns above and below it in the list, and those of its conversation, in order, if it has others."""
    wanted, (by, reverse) = filter_of(request), order_of(request)
    # From the first one on; a page that begins at a place is newest first all the same.
    named = of_session(evaluation.session or "", evaluation.tenant or "")
    session = results.turns(named, after=FIRST, limit=_SESSION + 1)[::-1] if named.session else []
    own = session[:_SESSION] if len(session) > 1 else []
    if by:
        at = number_of(request, "at")
        near = results.ranked(wanted, by, reverse=reverse, offset=max(at - 1, 0), limit=3)
        ids = [row.record_id for row in near]
        place = ids.index(evaluation.record_id) if evaluation.record_id in ids else -1
        above = near[place - 1] if place > 0 else None
        below = near[place + 1] if 0 <= place < len(near) - 1 else None
        return {"above": above, "below": below, "at": at, "session": own}
    key = (evaluation.at, evaluation.record_id)
    newer = next(iter(results.turns(wanted, after=key, limit=1)), None)
    older = next(iter(results.turns(wanted, before=key, limit=1)), None)
    if reverse:
        newer, older = older, newer
    return {"above": newer, "below": older, "at": None, "session": own}
