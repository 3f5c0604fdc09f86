"""Conventions that many instrumentors and applications write spans in."""
