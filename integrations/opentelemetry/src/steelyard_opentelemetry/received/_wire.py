"""OTLP over HTTP: what a request holds of each trace, and how it is answered.

A request's body is cut into one piece for each trace, in the encoding it came in. So a piece can be stored,
and forgotten, with its trace, and reading it can wait. Of log records, only those with a model call's content
are kept: the others may hold anything, and nothing here needs them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, Final, Literal

from steelyard.errors import InvalidRecord, MissingDependency
from steelyard_opentelemetry.building._identity import SESSION
from steelyard_opentelemetry.spans._logs import ContentEvent, is_content
from steelyard_opentelemetry.spans._otlp import log_name, read_id, read_logs, read_otlp
from steelyard_opentelemetry.spans._span import Span

Signal = Literal["traces", "logs"]

_TRACE_ID, _SPAN_ID = 16, 8
_LOGS_MARK: Final = b"L"
"""Before log records in protobuf, whose first bytes are those of spans."""
_JSON_LOGS: Final = b'{"resourceLogs"'
_INVALID_ARGUMENT, _UNAVAILABLE = 3, 14


@dataclass(frozen=True, slots=True)
class _Form:
    """How OTLP writes one signal: the names of its lists from the outermost in, and of what answers it."""

    items: str
    """What one item is called in messages for people."""
    in_json: tuple[str, str, str]
    """Names of the lists in OTLP/JSON."""
    in_protobuf: tuple[str, str, str]
    """Names of the lists in protobuf."""
    message: tuple[str, str]
    """Module and name of the message that has the fields of the request."""
    response: tuple[str, str, str]
    """Module of the response, its name, and that of its `partial_success`."""
    rejected: tuple[str, str]
    """What the number of refused items is called, in OTLP/JSON and in protobuf."""


_FORMS: Final[Mapping[Signal, _Form]] = {
    "traces": _Form(
        items="spans",
        in_json=("resourceSpans", "scopeSpans", "spans"),
        in_protobuf=("resource_spans", "scope_spans", "spans"),
        message=("opentelemetry.proto.trace.v1.trace_pb2", "TracesData"),
        response=(
            "opentelemetry.proto.collector.trace.v1.trace_service_pb2",
            "ExportTraceServiceResponse",
            "ExportTracePartialSuccess",
        ),
        rejected=("rejectedSpans", "rejected_spans"),
    ),
    "logs": _Form(
        items="log records",
        in_json=("resourceLogs", "scopeLogs", "logRecords"),
        in_protobuf=("resource_logs", "scope_logs", "log_records"),
        message=("opentelemetry.proto.logs.v1.logs_pb2", "LogsData"),
        response=(
            "opentelemetry.proto.collector.logs.v1.logs_service_pb2",
            "ExportLogsServiceResponse",
            "ExportLogsPartialSuccess",
        ),
        rejected=("rejectedLogRecords", "rejected_log_records"),
    ),
}


@dataclass(slots=True)
class Export:
    """What one export request holds."""

    signal: Signal = "traces"
    """What it is about."""
    pieces: dict[str, bytes] = field(default_factory=dict)
    """What it holds of each trace, by trace id; `spans_in` or `content_in` reads it."""
    spans: int = 0
    """How many spans there are in the pieces."""
    log_records: int = 0
    """How many log records with content there are in the pieces."""
    refused: int = 0
    """Spans, or log records with content, that were left out."""
    session: str = ""
    """What spans that name no session are given as theirs."""

    def took(self) -> None:
        """Count one item that was taken."""
        if self.signal == "traces":
            self.spans += 1
        else:
            self.log_records += 1


def read_export(body: bytes, *, is_json: bool, signal: Signal = "traces", session: str = "") -> Export:
    """Take an `ExportTraceServiceRequest` or an `ExportLogsServiceRequest` apart.

    Args:
        body: The request's body.
        is_json: Whether it is OTLP/JSON.
        signal: What it is about.
        session: What spans that name no session are given as theirs.

    Raises:
        InvalidRecord: If it is not one.
    """
    export = Export(signal, session=session if signal == "traces" else "")
    return _read_json(body, export) if is_json else _read_protobuf(body, export)


def spans_in(piece: bytes) -> list[Span]:
    """The spans of a piece, without Steelyard's own; none of a piece that has log records."""
    if piece.startswith((_LOGS_MARK, _JSON_LOGS)):
        return []
    if piece.startswith(b"{"):
        return read_otlp([piece]).spans
    from steelyard_opentelemetry.received._protobuf import spans_of

    return list(spans_of(message("traces").FromString(piece)))


def content_in(piece: bytes) -> list[ContentEvent]:
    """What the log records of a piece say of spans; nothing of a piece that has spans."""
    if piece.startswith(_JSON_LOGS):
        return list(read_logs(json.loads(piece)))
    if not piece.startswith(_LOGS_MARK):
        return []
    from steelyard_opentelemetry.received._protobuf import told_in

    return list(told_in(message("logs").FromString(piece[len(_LOGS_MARK) :])))


@cache
def message(signal: Signal) -> Any:
    """The kind of protobuf message that has the fields of a request, by number and type.

    Raises:
        MissingDependency: If opentelemetry-proto is not installed.
    """
    module, name = _FORMS[signal].message
    try:
        return getattr(import_module(module), name)
    except ImportError:
        raise MissingDependency("opentelemetry-proto", extra="collect") from None


def _read_protobuf(body: bytes, export: Export) -> Export:
    from google.protobuf.message import DecodeError

    signal = export.signal
    kind, parts = message(signal), dict[str, Any]()
    resources, scopes, items = _FORMS[signal].in_protobuf
    try:
        data = kind.FromString(body)
    except DecodeError:
        raise InvalidRecord(f"the body is not an export request for {signal} in protobuf") from None
    scoped_blocks = ((block, each) for block in getattr(data, resources) for each in getattr(block, scopes))
    for block, scoped in scoped_blocks:
        places: dict[str, Any] = {}
        for item in _wanted(getattr(scoped, items), export):
            trace_id = item.trace_id.hex()
            place = places.get(trace_id)
            if place is None:
                part = parts.setdefault(trace_id, kind())
                resource = getattr(part, resources).add(resource=block.resource)
                place = getattr(getattr(resource, scopes).add(scope=scoped.scope), items)
                places[trace_id] = place
            place.append(item)
    mark = _LOGS_MARK if signal == "logs" else b""
    export.pieces.update((trace_id, mark + part.SerializeToString()) for trace_id, part in parts.items())
    return export


def _wanted(items: Iterable[Any], export: Export) -> Iterator[Any]:
    """The items that are kept, each counted: those with ids, and of log records those with content."""
    for item in items:
        if export.signal == "logs" and not is_content(_name_of(item)):
            continue
        if _is_id(item.trace_id, _TRACE_ID) and _is_id(item.span_id, _SPAN_ID):
            export.took()
            if export.session and not any(pair.key in SESSION for pair in item.attributes):
                item.attributes.add(key=SESSION[0]).value.string_value = export.session
            yield item
        else:
            export.refused += 1


def _name_of(item: Any) -> str:
    """The name of a log record's event in protobuf: a field of its own, an attribute in older releases."""
    if item.event_name:
        return str(item.event_name)
    return next((pair.value.string_value for pair in item.attributes if pair.key == "event.name"), "")


def _is_id(value: bytes, size: int) -> bool:
    return len(value) == size and any(value)


def _read_json(body: bytes, export: Export) -> Export:
    signal = export.signal
    resources, scopes, items = _FORMS[signal].in_json
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidRecord(f"the body is not JSON: {type(error).__name__}") from None
    if not isinstance(data, dict) or not isinstance(data.get(resources, []), list):
        raise InvalidRecord(f"the body is not an export request for {signal}: {resources!r} is not a list")
    parts = dict[str, list[Any]]()
    for resource, scope, found in _scopes(data, _FORMS[signal]):
        places: dict[str, list[Any]] = {}
        for trace_id, item in _identified(found, export):
            if trace_id not in places:
                places[trace_id] = []
                scoped = {"scope": scope, items: places[trace_id]}
                parts.setdefault(trace_id, []).append({"resource": resource, scopes: [scoped]})
            places[trace_id].append(item)
    for trace_id, blocks in parts.items():
        export.pieces[trace_id] = json.dumps({resources: blocks}, separators=(",", ":")).encode()
    return export


def _identified(items: Iterable[Any], export: Export) -> Iterator[tuple[str, Any]]:
    """The items of OTLP/JSON that are kept, as `_wanted` chooses them, each with its trace id."""
    for item in items:
        known = item if isinstance(item, dict) else {}
        if export.signal == "logs" and not is_content(log_name(known)):
            continue
        trace_id = read_id(known.get("traceId"), _TRACE_ID)
        if trace_id and read_id(known.get("spanId"), _SPAN_ID):
            export.took()
            yield trace_id, _with_session(known, export.session)
        else:
            export.refused += 1


def _with_session(item: dict[str, Any], session: str) -> dict[str, Any]:
    """A span of OTLP/JSON, with a session if it names none and there is one to give."""
    pairs = item.get("attributes")
    known = [pair for pair in pairs if isinstance(pair, dict)] if isinstance(pairs, list) else []
    if not session or any(pair.get("key") in SESSION for pair in known):
        return item
    return {**item, "attributes": [*known, {"key": SESSION[0], "value": {"stringValue": session}}]}


def _scopes(data: Mapping[str, Any], form: _Form) -> Iterator[tuple[Any, Any, list[Any]]]:
    """Each list of items in a request, with the resource and the scope they belong to."""
    resources, scopes, items = form.in_json
    for block in data.get(resources) or ():
        inner = block.get(scopes) if isinstance(block, dict) else None
        for scoped in inner if isinstance(inner, list) else ():
            found = scoped.get(items) if isinstance(scoped, dict) else None
            if isinstance(found, list):
                yield block.get("resource"), scoped.get("scope"), found


def success(export: Export, *, is_json: bool) -> bytes:
    """The body of a 200: the signal's response, which says what was refused."""
    form = _FORMS[export.signal]
    why = f"{form.items} without a trace id of 16 bytes and a span id of 8 bytes were refused"
    if is_json:
        told = {"partialSuccess": {form.rejected[0]: str(export.refused), "errorMessage": why}}
        return json.dumps(told if export.refused else {}).encode()
    if not export.refused:
        return b""
    module, response, partial = form.response
    known = import_module(module)
    refused = getattr(known, partial)(**{form.rejected[1]: export.refused, "error_message": why})
    made: bytes = getattr(known, response)(partial_success=refused).SerializeToString()
    return made


def failure(message: str, *, is_json: bool, passes: bool) -> bytes:
    """The body of any other answer: a `google.rpc.Status`.

    Args:
        message: What is wrong.
        is_json: Whether the request was JSON.
        passes: Whether sending it again later may help.
    """
    code = _UNAVAILABLE if passes else _INVALID_ARGUMENT
    if is_json:
        return json.dumps({"code": code, "message": message}).encode()
    from google.rpc.status_pb2 import Status

    made: bytes = Status(code=code, message=message).SerializeToString()
    return made
