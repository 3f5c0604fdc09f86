"""Metrics of answers: whether they are true to the contexts, right, and to the point."""
