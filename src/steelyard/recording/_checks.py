"""Checks of the options that several recorders have."""

from __future__ import annotations

from inspect import iscoroutinefunction

from steelyard.errors import ConfigurationError


def check_positive(name: str, value: object) -> None:
    """Raise a ConfigurationError unless a value is a number above 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise ConfigurationError(f"{name} must be a number above 0, not {value!r}")


def check_function(name: str, value: object) -> None:
    """Raise a ConfigurationError unless a value is a function or None; one to be awaited would never run."""
    if value is not None and not callable(value):
        raise ConfigurationError(f"{name} must be a function, not {value!r}")
    if iscoroutinefunction(value) or iscoroutinefunction(getattr(value, "__call__", None)):  # noqa: B004
        raise ConfigurationError(f"{name} must be a plain function, not a coroutine function: {value!r}")


def check_names(name: str, value: object) -> None:
    """Raise a ConfigurationError where one string stands in place of a list of names."""
    if isinstance(value, str):
        raise ConfigurationError(f"{name} must be a list of names; write [{value!r}]")
