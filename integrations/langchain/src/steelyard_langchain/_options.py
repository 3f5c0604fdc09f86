"""The handler's options, checked once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from steelyard.errors import ConfigurationError
from steelyard.recording import (
    OnRecord,
    TurnTarget,
    check_function,
    check_names,
    check_positive,
    checked_target,
)

Key = str | Callable[[Any], Any]
"""Where something stands: a key of a mapping, or a function of the whole value."""

Metadata = Mapping[str, Any] | Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""What to add to a record's metadata: fixed, or made from the run's own."""

Nested = Literal["root_only", "all"]
"""Whether chains within a turn can be turns of their own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """How a handler reads turns; see `CallbackHandler` for what each means.

    Raises:
        ConfigurationError: If an option cannot mean what was given.
    """

    question_key: Key | None = None
    context_key: Key | None = None
    answer_key: Key | None = None
    reference_key: Key | None = None
    nested: Nested = "root_only"
    tool_contexts: Collection[str] = ()
    metadata: Metadata | None = None
    on_record: OnRecord | None = None
    ttl: float = 3600.0
    max_open: int = 10_000

    def __post_init__(self) -> None:
        for name in ("question_key", "context_key", "answer_key", "reference_key"):
            key = getattr(self, name)
            if key is not None and not isinstance(key, str) and not callable(key):
                raise ConfigurationError(f"{name} must be a key or a function, not {key!r}")
        if self.nested not in get_args(Nested):
            raise ConfigurationError(f"nested must be 'root_only' or 'all', not {self.nested!r}")
        metadata = self.metadata
        if metadata is not None and not isinstance(metadata, Mapping) and not callable(metadata):
            raise ConfigurationError(f"metadata must be a mapping or a function, not {metadata!r}")
        check_names("tool_contexts", self.tool_contexts)
        check_function("on_record", self.on_record)
        check_positive("ttl", self.ttl)
        check_positive("max_open", self.max_open)


def target_or_default(monitor: TurnTarget | None) -> TurnTarget:
    """The Monitor that was given, checked; the process-wide default one where none was."""
    if monitor is None:
        from steelyard.online import default_monitor

        return default_monitor()
    return checked_target(monitor)
