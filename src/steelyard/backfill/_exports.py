"""What Langfuse, LangSmith and Phoenix stored, as OTLP/JSON with OpenInference's attributes."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote

import urllib3

from steelyard._internal.text import error_words, redacted_url
from steelyard.backfill._rows import Bad, unix_time
from steelyard.errors import ConfigurationError, InvalidRecord
from steelyard.record import Record, TraceRef
from steelyard.recording.reading import contexts_of

_HEX: Final = {16: re.compile(r"[0-9a-f]{32}"), 8: re.compile(r"[0-9a-f]{16}")}
_MOST_NAMED: Final = 5
_OBSERVATIONS: Final = {
    "generation": "LLM",
    "retriever": "RETRIEVER",
    "agent": "AGENT",
    "tool": "TOOL",
    "embedding": "EMBEDDING",
    "guardrail": "GUARDRAIL",
    "evaluator": "EVALUATOR",
}
_RUNS: Final = {
    "retriever": "RETRIEVER",
    "llm": "LLM",
    "chat_model": "LLM",
    "tool": "TOOL",
    "embedding": "EMBEDDING",
}
_PAGE: Final = 500
_SECONDS: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class TracesFound:
    """What came of some spans."""

    records: Sequence[Record]
    """The turns."""
    problems: Sequence[str] = ()
    """What could not be read."""
    without: Mapping[str, int] = field(default_factory=dict)
    """Traces and pieces of traces that gave no turn, by cause."""


TraceReader = Callable[[Iterable[bytes]], TracesFound]
"""Reads lines of traces in any form; `steelyard_opentelemetry` has one."""


class Tracing:
    """Remembers the vendor's ids of spans whose ids had to be made."""

    def __init__(self) -> None:
        self._own: dict[str, TraceRef] = {}
        self.without: Mapping[str, int] = {}
        """Traces that gave no turn, by cause."""

    def line(
        self,
        *,
        trace_id: str,
        span_id: str,
        parent_id: str | None,
        name: str,
        start: object,
        end: object,
        attributes: Mapping[str, Any],
        error: str = "",
        own: TraceRef | None = None,
    ) -> bytes:
        """One span as an export request; `own` is where its scores belong, if not at these ids."""
        if own is not None:
            self._own[as_id(span_id, 8)] = own
        span = {
            "traceId": as_id(trace_id, 16),
            "spanId": as_id(span_id, 8),
            "parentSpanId": as_id(parent_id, 8) if parent_id else "",
            "name": name,
            "startTimeUnixNano": str(nanoseconds(start)),
            "endTimeUnixNano": str(nanoseconds(end)),
            "status": {"code": 2, "message": error} if error else {},
            "attributes": [{"key": key, "value": _value(value)} for key, value in attributes.items()],
        }
        # By its scope the reader takes a span for one of OpenInference's.
        scope = {"scope": {"name": "openinference.instrumentation.backfill"}, "spans": [span]}
        return json.dumps({"resourceSpans": [{"scopeSpans": [scope]}]}).encode()

    def turns(self, lines: Iterable[bytes], read: TraceReader, name: str, bad: Bad) -> Iterator[Record]:
        """The turns in some lines, with the vendor's ids."""
        found = read(lines)
        self.without = found.without
        for problem in found.problems:
            bad(name, problem)
        for record in found.records:
            own = self._own.get(record.trace.span_id or "") if record.trace else None
            if own is None:
                yield record
                continue
            assert record.trace is not None
            trace = replace(own, framework=record.trace.framework)
            # LangChain's recorder gives the same id to a turn that it sees live.
            yield record.replace(trace=trace, id=own.run_id or record.id)


def as_id(text: str, size: int) -> str:
    """An id of so many bytes as hex: the vendor's own where it is one, else one made from it."""
    plain = text.lower().replace("-", "")
    # An id of zeros is invalid in OpenTelemetry and would join spans that have nothing in common.
    if _HEX[size].fullmatch(plain) and any(letter != "0" for letter in plain):
        return plain
    return hashlib.blake2b(text.encode(), digest_size=size).hexdigest()


def nanoseconds(value: object) -> int:
    """A time in nanoseconds; 0 where it is none."""
    try:
        return int((unix_time(value) or 0.0) * 1e9)
    except InvalidRecord:
        return 0


def as_text(value: object) -> str:
    """A payload as an attribute holds it: text, or JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def payload(value: object) -> Any:
    """A payload that may be written as JSON."""
    # Only what can be JSON of use: a plain text may happen to be a number.
    if isinstance(value, str) and value[:1] in '[{"':
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def documents(value: object) -> dict[str, Any]:
    """Retrieved documents as attributes, in whichever list the payload holds them."""
    # LangChain writes its objects with what they were made of inside.
    given = [
        one.get("kwargs") or one if isinstance(one, dict) else str(one) for one in _listed(payload(value))
    ]
    found: dict[str, Any] = {}
    for context in contexts_of(given):
        prefix = f"retrieval.documents.{context.rank}.document."
        told = {"content": context.text, "id": context.id, "score": context.score}
        found |= {prefix + name: one for name, one in told.items() if one is not None}
    return found


def _listed(value: object, depth: int = 3) -> list[Any]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict) and depth:
        for key in ("documents", "output", "outputs", "nodes", "results", "data"):
            if key in value and (found := _listed(payload(value[key]), depth - 1)):
                return found
    return []


def _value(value: object) -> dict[str, Any]:
    # Before int, which True is too.
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        # OTLP/JSON writes 64-bit numbers as strings, since JavaScript has no such numbers.
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list | tuple):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": as_text(value)}


def is_observation(keys: Collection[str]) -> bool:
    """Whether objects with these keys are observations."""
    plain = {key.replace("_", "").lower() for key in keys}
    return {"id", "traceid", "type"} <= plain and bool(plain & {"parentobservationid", "starttime"})


def span_of_observation(row: Mapping[str, Any], tracing: Tracing) -> bytes:
    """An observation as a span; the files write names with underscores, the API without."""
    # Files and API name the same fields in two ways; without marks and case they are one.
    found = {key.replace("_", "").lower(): value for key, value in row.items()}
    trace_id, own_id = str(found.get("traceid")), str(found.get("id"))
    kind = _OBSERVATIONS.get(str(found.get("type")).lower(), "CHAIN")
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


def is_run(keys: Collection[str]) -> bool:
    """Whether objects with these keys are runs."""
    return "run_type" in keys and "id" in keys


def span_of_run(row: Mapping[str, Any], tracing: Tracing) -> bytes:
    """A run as a span."""
    run_id = str(row.get("id"))
    given, made = payload(row.get("inputs")), payload(row.get("outputs"))
    kind = _RUNS.get(str(row.get("run_type")), "CHAIN")
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


class PhoenixServer:
    """A project of a Phoenix server; the key is `PHOENIX_API_KEY`, where the server asks for one."""

    def __init__(self, url: str, *, project: str) -> None:
        self.name = f"{redacted_url(url).rstrip('/')} project {project!r}"
        self._address = f"{url.rstrip('/')}/v1/projects/{quote(project, safe='')}/spans"
        key = os.environ.get("PHOENIX_API_KEY")
        self._headers = {"accept": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})

    def lines(self) -> Iterator[bytes]:
        """Every span, one a line."""
        cursor: str | None = None
        # Without redirects, which would send the key to another server.
        with urllib3.PoolManager(timeout=_SECONDS, retries=urllib3.Retry(3, redirect=0)) as pool:
            while True:
                page = self._page(pool, cursor)
                spans = page.get("data")
                yield from (line_of_span(span) for span in spans or () if isinstance(span, dict))
                before, cursor = cursor, page.get("next_cursor")
                # A server that gives the same cursor again would be asked for ever.
                if not cursor or cursor == before:
                    return

    def _page(self, pool: urllib3.PoolManager, cursor: str | None) -> dict[str, Any]:
        query = {"limit": str(_PAGE), **({"cursor": cursor} if cursor else {})}
        try:
            reply = pool.request("GET", self._address, fields=query, headers=self._headers)
        except urllib3.exceptions.HTTPError as error:
            raise ConfigurationError(
                f"{self.name} cannot be reached: {error_words(error)}; check its address, and that it runs"
            ) from None
        if reply.status != 200:
            raise ConfigurationError(
                f"{self.name}: HTTP {reply.status} instead of spans; check its address and key"
            )
        try:
            page = reply.json()
        except (ValueError, RecursionError):
            page = None
        if not isinstance(page, dict):
            raise ConfigurationError(
                f"{self.name}: the reply is not Phoenix's list of spans; "
                "check that its address is a Phoenix server"
            )
        return page


def is_jaeger_reply(data: Mapping[str, Any]) -> bool:
    """Whether an object holds traces as Jaeger returns them."""
    traces = data.get("data")
    return isinstance(traces, list) and any(isinstance(one, dict) and "spans" in one for one in traces)


def is_printed_span(keys: Collection[str]) -> bool:
    """Whether objects with these keys are spans, as SDKs and exporters print or Phoenix returns them."""
    told = {key.replace("_", "").lower() for key in keys}
    has_ids = bool(told & {"context", "spancontext"}) or {"traceid", "spanid"} <= told
    return has_ids and "attributes" in told and any(key.startswith("start") for key in told)


def line_of_span(span: Mapping[str, Any]) -> bytes:
    """Such a span as a line; its kind is an attribute if Phoenix tells it beside them."""
    if span.get("span_kind"):
        attributes = span["attributes"] if isinstance(span.get("attributes"), dict) else {}
        span = {**span, "attributes": {"openinference.span.kind": span["span_kind"], **attributes}}
    return json.dumps(span).encode()
