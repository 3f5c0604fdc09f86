"""Observations as Langfuse exports them to blob storage, or as its API returns them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from steelyard.backfill._traced import Tracing, as_text, documents, payload
from steelyard.record import TraceRef

_KINDS: Final = {
    "generation": "LLM",
    "retriever": "RETRIEVER",
    "agent": "AGENT",
    "tool": "TOOL",
    "embedding": "EMBEDDING",
    "guardrail": "GUARDRAIL",
    "evaluator": "EVALUATOR",
}


def is_observation(keys: Collection[str]) -> bool:
    """Whether objects with these keys are observations."""
    plain = {key.replace("_", "").lower() for key in keys}
    return {"id", "traceid", "type"} <= plain and bool(plain & {"parentobservationid", "starttime"})


def span_of(row: Mapping[str, Any], tracing: Tracing) -> bytes:
    """An observation as a span; the files write names with underscores, the API without."""
    # Files and API name the same fields in two ways; without marks and case they are one.
    found = {key.replace("_", "").lower(): value for key, value in row.items()}
    trace_id, own_id = str(found.get("traceid")), str(found.get("id"))
    kind = _KINDS.get(str(found.get("type")).lower(), "CHAIN")
    given, made = payload(found.get("input")), payload(found.get("output"))
    attributes: dict[str, Any] = {"openinference.span.kind": kind}
    attributes |= {
        name: as_text(value)
        for name, value in (("input.value", given), ("output.value", made))
        if value not in (None, "")
    }
    if kind == "RETRIEVER":
        attributes |= documents(made)
    named = {"session.id": found.get("sessionid"), "user.id": found.get("userid")}
    attributes |= {name: str(value) for name, value in named.items() if value}
    parent = found.get("parentobservationid") or None
    failed = str(found.get("level") or "").upper() == "ERROR"
    return tracing.line(
        trace_id=trace_id,
        span_id=own_id,
        parent_id=str(parent) if parent else None,
        name=str(found.get("name") or kind.lower()),
        start=found.get("starttime"),
        end=found.get("endtime"),
        attributes=attributes,
        error=str(found.get("statusmessage") or "Error") if failed else "",
        own=TraceRef(trace_id=trace_id, span_id=own_id),
    )
