"""OTLP over HTTP: what a request holds of each trace, and how it is answered.

A request's body is cut into one piece for each trace, in the encoding it came in. So a piece can be stored,
and forgotten, with its trace, and reading it can wait.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from steelyard.errors import InvalidRecord, MissingDependency
from steelyard_opentelemetry.spans._otlp import read_id, read_otlp
from steelyard_opentelemetry.spans._span import Span

if TYPE_CHECKING:
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

_TRACE_ID, _SPAN_ID = 16, 8
_WITHOUT_IDS = "spans without a trace id of 16 bytes and a span id of 8 bytes were refused"
_INVALID_ARGUMENT, _UNAVAILABLE = 3, 14


@dataclass(slots=True)
class Export:
    """What one export request holds."""

    pieces: dict[str, bytes] = field(default_factory=dict)
    """What it holds of each trace, by trace id; `spans_in` reads it."""
    spans: int = 0
    """How many spans there are in the pieces."""
    refused: int = 0
    """Spans that were left out."""
    why: str = ""
    """Why they were."""


def read_export(body: bytes, *, is_json: bool) -> Export:
    """Take an `ExportTraceServiceRequest` apart.

    Raises:
        InvalidRecord: If it is not one.
    """
    return _read_json(body) if is_json else _read_protobuf(body)


def spans_in(piece: bytes) -> list[Span]:
    """The spans of a piece, without Steelyard's own."""
    if piece.startswith(b"{"):
        return read_otlp([piece]).spans
    from steelyard_opentelemetry.received._protobuf import spans_of

    return list(spans_of(messages().FromString(piece)))


def messages() -> type[TracesData]:
    """The kind of message that has spans.

    Raises:
        MissingDependency: If opentelemetry-proto is not installed.
    """
    try:
        from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
    except ImportError:
        raise MissingDependency("opentelemetry-proto", extra="collect") from None
    return TracesData


def _read_protobuf(body: bytes) -> Export:
    from google.protobuf.message import DecodeError

    kind = messages()
    export, parts = Export(), dict[str, "TracesData"]()
    try:
        # The request has the fields of TracesData, by number and type.
        data = kind.FromString(body)
    except DecodeError:
        raise InvalidRecord("the body is not an ExportTraceServiceRequest in protobuf") from None
    for block in data.resource_spans:
        for scoped in block.scope_spans:
            places: dict[str, Any] = {}
            for span in scoped.spans:
                if not (_is_id(span.trace_id, _TRACE_ID) and _is_id(span.span_id, _SPAN_ID)):
                    _refuse(export)
                    continue
                trace_id = span.trace_id.hex()
                place = places.get(trace_id)
                if place is None:
                    part = parts.setdefault(trace_id, kind())
                    resource = part.resource_spans.add(resource=block.resource)
                    place = places[trace_id] = resource.scope_spans.add(scope=scoped.scope).spans
                place.append(span)
                export.spans += 1
    export.pieces.update((trace_id, part.SerializeToString()) for trace_id, part in parts.items())
    return export


def _is_id(value: bytes, size: int) -> bool:
    return len(value) == size and any(value)


def _refuse(export: Export) -> None:
    export.refused += 1
    export.why = _WITHOUT_IDS


def _read_json(body: bytes) -> Export:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidRecord(f"the body is not JSON: {type(error).__name__}") from None
    if not isinstance(data, dict) or not isinstance(data.get("resourceSpans", []), list):
        raise InvalidRecord("the body is not an ExportTraceServiceRequest: 'resourceSpans' is not a list")
    export, parts = Export(), dict[str, list[Any]]()
    for resource, scope, spans in _scopes(data):
        places: dict[str, list[Any]] = {}
        for span in spans:
            ids = (span.get("traceId"), span.get("spanId")) if isinstance(span, dict) else (None, None)
            trace_id = read_id(ids[0], _TRACE_ID)
            if not trace_id or not read_id(ids[1], _SPAN_ID):
                _refuse(export)
                continue
            if trace_id not in places:
                places[trace_id] = []
                scoped = {"scope": scope, "spans": places[trace_id]}
                parts.setdefault(trace_id, []).append({"resource": resource, "scopeSpans": [scoped]})
            places[trace_id].append(span)
            export.spans += 1
    for trace_id, blocks in parts.items():
        export.pieces[trace_id] = json.dumps({"resourceSpans": blocks}, separators=(",", ":")).encode()
    return export


def _scopes(data: Mapping[str, Any]) -> Iterator[tuple[Any, Any, list[Any]]]:
    """Each list of spans in a request, with the resource and the scope they belong to."""
    for block in data.get("resourceSpans") or ():
        inner = block.get("scopeSpans") if isinstance(block, dict) else None
        for scoped in inner if isinstance(inner, list) else ():
            spans = scoped.get("spans") if isinstance(scoped, dict) else None
            if isinstance(spans, list):
                yield block.get("resource"), scoped.get("scope"), spans


def success(export: Export, *, is_json: bool) -> bytes:
    """The body of a 200: an `ExportTraceServiceResponse`, which says what was refused."""
    if is_json:
        partial = {"rejectedSpans": str(export.refused), "errorMessage": export.why} if export.refused else {}
        return json.dumps({"partialSuccess": partial} if partial else {}).encode()
    if not export.refused:
        return b""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
        ExportTracePartialSuccess,
        ExportTraceServiceResponse,
    )

    refused = ExportTracePartialSuccess(rejected_spans=export.refused, error_message=export.why)
    made: bytes = ExportTraceServiceResponse(partial_success=refused).SerializeToString()
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
