"""Frameworks that write spans of their own."""
