"""Content that instrumentors send as log records beside their spans."""

from steelyard_opentelemetry.logs._processor import ContentLogRecordProcessor

__all__ = ["ContentLogRecordProcessor"]
