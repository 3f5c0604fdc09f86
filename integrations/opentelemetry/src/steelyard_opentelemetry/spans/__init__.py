"""Spans in one shape: read from OTLP or taken from an SDK, put into trees, with the payloads they carry."""
