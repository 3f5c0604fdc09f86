"""Labelling one turn after the other: those whose labels tell the most, and what labels have told so far."""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import combinations, starmap
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from steelyard.errors import ConfigurationError, InvalidRecord
from steelyard.report import build_figures, human_agreement
from steelyard.results.labels import Label
from steelyard.results.queries import Scope
from steelyard.scores import Evaluation
from steelyard.stats import cohen_kappa
from steelyard.view._requests import read_body
from steelyard.view._site import Site, environment
from steelyard.view._turn import contexts_of, texts_of
from steelyard.view.labelling import turns_to_label

_LONGEST = 16_384
_BACK = "none"
"""The value that takes a label back."""


async def label(site: Site, request: Request) -> Response:
    """Store a label, or take one back (with the value `none`)."""
    if site.read_only:
        return PlainTextResponse("labels are not taken here", status_code=403)
    body = await read_body(request, _LONGEST)
    if body is None:
        return PlainTextResponse("this is too long for a label", status_code=413)
    return await run_in_threadpool(_store, site, body)


def _store(site: Site, body: bytes) -> Response:
    try:
        data = json.loads(body)
        given = _label(data)
        found = site.evaluation(given.record_id)
        if found is None or not _has_claim(found, given):
            return PlainTextResponse("there is no such turn or claim", status_code=404)
        before = next((one for one in site.labels.of(given.record_id) if _is_same(one, given)), None)
        if data.get("value") == _BACK:
            site.labels.remove(given.record_id, metric=given.metric, claim=given.claim, who=given.who.strip())
        else:
            site.labels.put([given])
        stored = site.labels.of(given.record_id)
    except InvalidRecord as error:
        return PlainTextResponse(str(error), status_code=400)
    except ConfigurationError as error:
        return PlainTextResponse(str(error), status_code=503)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return PlainTextResponse("this is not a label", status_code=400)
    return JSONResponse(
        {
            "labels": [asdict(one) for one in stored],
            "before": before and asdict(before),
            "judge": [(score.metric, score.value) for score in found.scores if score.value is not None],
        }
    )


def _label(data: dict[str, Any]) -> Label:
    """The label that was sent; of one that is taken back only record, claim and person count."""
    value: Any = data.get("value")
    if value == _BACK:
        value = "good" if data.get("claim") is None else "supported"
    given: dict[str, Any] = {name: data.get(name) for name in ("record_id", "metric", "claim", "who")}
    return Label(
        **given,
        value=value,
        note=data.get("note", ""),
        labelled_at=time.time(),
        # The queue says with which probability it drew the turn; who picks one says nothing.
        drawn=data.get("drawn"),
    )


def _is_same(one: Label, other: Label) -> bool:
    mine = (one.metric, one.claim, one.who)
    return mine == (other.metric, other.claim, other.who.strip())


def _has_claim(evaluation: Evaluation, given: Label) -> bool:
    if given.claim is None:
        return True
    return any(
        score.metric == given.metric and given.claim < len(score.verdicts) for score in evaluation.scores
    )


_SHOWN = 40


def agreement_of(labels: Iterable[Label]) -> dict[str, Any]:
    """Who labelled how much, who agrees with whom, and what people differ on."""
    things: defaultdict[tuple[str, str | None, int | None], dict[str, Label]] = defaultdict(dict)
    counts: Counter[str] = Counter()
    for label in labels:
        things[label.record_id, label.metric, label.claim][label.who] = label
        counts[label.who] += 1
    answers: defaultdict[tuple[str, str], list[tuple[str, str, str]]] = defaultdict(list)
    disputes: list[tuple[float, dict[str, Any]]] = []
    for (record, metric, claim), said in things.items():
        for one, other in combinations(sorted(said), 2):
            answers[one, other].append((said[one].value, said[other].value, record))
        if len({label.value for label in said.values()}) > 1:
            values = [(who, label.value) for who, label in sorted(said.items())]
            latest = max(label.labelled_at for label in said.values())
            named = {"record_id": record, "metric": metric, "claim": claim}
            disputes.append((latest, {**named, "said": values}))
    pairs = sorted(starmap(_pair, answers.items()), key=lambda one: (one["same"] - one["both"], one["first"]))
    return {
        "people": counts.most_common(_SHOWN),
        "pairs": pairs[:_SHOWN],
        "disputes": [one for _, one in sorted(disputes, key=lambda pair: -pair[0])][:_SHOWN],
    }


def _pair(names: tuple[str, str], given: Sequence[tuple[str, str, str]]) -> dict[str, Any]:
    """Two people who labelled the same things; no kappa where they all say the same."""
    first, second, records = zip(*given, strict=True)
    kappa = None
    if len({*first, *second}) > 1:
        # What is said of several claims of one turn counts together.
        kappa = cohen_kappa(first, second, sessions=records)
    same = sum(one == other for one, other, _ in given)
    return {"first": names[0], "second": names[1], "both": len(given), "same": same, "kappa": kappa}


_DRAWN = 20


def queue(site: Site, request: Request) -> Response:
    """The page; its script asks for the turns."""
    return site.render(request, "label.html")


def drawn(site: Site, _request: Request) -> Response:
    """The turns to label next, each with the probability with which it was drawn."""
    try:
        found = turns_to_label(site.address, limit=_DRAWN)
    except ConfigurationError as error:
        return PlainTextResponse(str(error), status_code=404)
    turns = [{"id": one.record_id, "drawn": chance} for one, chance in found.turns]
    return JSONResponse({"turns": turns, "labelled": found.labelled, "metric": found.metric})


def drawn_turn(site: Site, request: Request) -> Response:
    """One turn without a word of the judge, which must not sway anybody; and who labelled it meanwhile."""
    record_id = request.query_params.get("id", "")
    found = site.evaluation(record_id)
    if found is None:
        return PlainTextResponse("there is no such turn", status_code=404)
    html = ""
    if found.record is not None:
        html = (
            environment()
            .get_template("label-turn.html")
            .render(
                texts=texts_of(found.record),
                contexts=contexts_of(found),
                more=max(len(found.record.contexts) - len(contexts_of(found)), 0),
            )
        )
    said = [one for one in site.labels.of(record_id) if one.claim is None and one.drawn is not None]
    return JSONResponse({"html": html, "who": [label.who for label in said]})


def so_far(site: Site, request: Request) -> Response:
    """Who labelled how much, who differs from whom, and what the labels say of each metric."""
    with site.open() as results:
        metrics = build_figures(results, Scope(), brief=True).metrics
        people = human_agreement(results, site.labels, Scope(), metrics)
    return site.render(request, "label-so-far.html", agreement=agreement_of(site.labels), people=people)
