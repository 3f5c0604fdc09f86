"""Runs as LangSmith exports them: Parquet of a bulk export, or JSON lines of its client's `list_runs`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from steelyard.backfill._traced import Tracing, as_text, documents, payload
from steelyard.record import TraceRef

_KINDS: Final = {
    "retriever": "RETRIEVER",
    "llm": "LLM",
    "chat_model": "LLM",
    "tool": "TOOL",
    "embedding": "EMBEDDING",
}


def is_run(keys: Collection[str]) -> bool:
    """Whether objects with these keys are runs."""
    return "run_type" in keys and "id" in keys


def span_of(row: Mapping[str, Any], tracing: Tracing) -> bytes:
    """A run as a span."""
    run_id = str(row.get("id"))
    given, made = payload(row.get("inputs")), payload(row.get("outputs"))
    kind = _KINDS.get(str(row.get("run_type")), "CHAIN")
    attributes: dict[str, Any] = {"openinference.span.kind": kind}
    if given is not None:
        attributes |= {"input.value": as_text(given), "input.mime_type": "application/json"}
    if made is not None:
        attributes |= {"output.value": as_text(made), "output.mime_type": "application/json"}
    if kind == "RETRIEVER":
        attributes |= documents(made)
    if session := row.get("session_id") or row.get("session_name"):
        attributes["metadata"] = as_text({"project": str(session)})
    parent = row.get("parent_run_id") or None
    return tracing.line(
        trace_id=str(row.get("trace_id") or run_id),
        span_id=_short(run_id),
        parent_id=_short(str(parent)) if parent else None,
        name=str(row.get("name") or kind.lower()),
        start=row.get("start_time"),
        end=row.get("end_time"),
        attributes=attributes,
        error=as_text(row.get("error") or ""),
        own=TraceRef(run_id=run_id),
    )


def _short(run_id: str) -> str:
    """What a span id is made from: a UUID has twice as many bytes, so it is hashed."""
    return f"langsmith:{run_id}"
