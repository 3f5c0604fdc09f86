"""Steelyard's recorder for OpenTelemetry."""
