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
    """Whether one person says it of one thing."""
    mine = (one.metric, one.claim, one.who)
    return mine == (other.metric, other.claim, other.who.strip())


def _has_claim(evaluation: Evaluation, given: Label) -> bool:
    if given.claim is None:
        return True
    return any(
        score.metric == given.metric and given.claim < len(score.verdicts) for score in evaluation.scores
    )
