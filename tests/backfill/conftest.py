"""Fixtures of the backfill's tests."""

from cli.conftest import steelyard as steelyard
