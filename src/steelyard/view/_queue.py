"""Labelling one turn after the other: those whose labels tell the most, and what labels have told so far."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from steelyard.errors import ConfigurationError
from steelyard.report import Scope, build_figures, human_agreement
from steelyard.view._agreement import agreement_of
from steelyard.view._pages import environment
from steelyard.view._site import Site
from steelyard.view._turn_view import contexts_of, texts_of
from steelyard.view.labelling import turns_to_label

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
