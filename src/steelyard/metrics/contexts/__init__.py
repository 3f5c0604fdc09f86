"""Metrics of what was retrieved: whether it is what the question needs, and in which order it stands."""
