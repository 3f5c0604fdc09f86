"""Sinks for vendors' HTTP APIs, one file each."""
