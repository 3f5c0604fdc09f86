"""What became of every turn, and what judging cost."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from steelyard.report import Scope, remaining_turns
from steelyard.report.looks import Spending
from steelyard.view._site import Site


def coverage(site: Site, request: Request) -> Response:
    """From seen to judged by the ledger, scores without a value, money by day and by metric."""
    everything = Scope()
    with site.open() as results:
        funnel = results.funnel(everything)
        days = results.spending()
        metrics = results.spending_by_metric()
        missing = results.missing(everything)
        totals = results.totals(everything)
    return site.render(
        request,
        "coverage.html",
        f=funnel,
        rest=remaining_turns(funnel) if funnel else [],
        days=days,
        metrics=metrics,
        missing=missing,
        totals=totals,
        charts=[_chart(days)],
    )


def _chart(days: list[Spending]) -> dict[str, Any]:
    """Money by day, or turns where no price is known."""
    is_priced = any(day.cost is not None for day in days)
    at = [datetime.fromisoformat(day.name).replace(tzinfo=UTC).timestamp() for day in days]
    return {
        "kind": "bars",
        "times": at,
        "values": [day.cost if is_priced else day.turns for day in days],
        "unit": "$" if is_priced else "",
    }
