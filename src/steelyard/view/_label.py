"""Labels that come in from the pages."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from steelyard.errors import ConfigurationError, InvalidRecord
from steelyard.report import Label
from steelyard.scores import Evaluation
from steelyard.view._guard import read_body
from steelyard.view._site import Site

_LONGEST = 16_384


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
        names = ("record_id", "metric", "claim", "who")
        what = {name: data.get(name) for name in names}
        taken_back = data.get("value") == "none"
        value: Any = data.get("value")
        if taken_back:
            # Any valid value: what is taken back is told by record, claim and person alone.
            value = "good" if what["claim"] is None else "supported"
        given = Label(**what, value=value, note=data.get("note", ""), labelled_at=time.time())
        found = site.evaluation(given.record_id)
        if found is None or not _has_claim(found, given):
            return PlainTextResponse("there is no such turn or claim", status_code=404)
        if taken_back:
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
    return JSONResponse({"labels": [asdict(one) for one in stored]})


def _has_claim(evaluation: Evaluation, given: Label) -> bool:
    if given.claim is None:
        return True
    return any(
        score.metric == given.metric and given.claim < len(score.verdicts) for score in evaluation.scores
    )
