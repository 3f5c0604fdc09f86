"""The handler's options, checked once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from steelyard.errors import ConfigurationError
from steelyard.record import Record

__all__ = ["Key", "Metadata", "Nested", "Options"]

Key = str | Callable[[Any], Any]
"""Where something stands: a key of a mapping, or a function of the whole value."""

Metadata = Mapping[str, Any] | Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""What to add to a record's metadata: fixed, or made from the run's own."""

Nested = Literal["root_only", "all"]
"""Whether chains within a turn can be turns of their own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """How a handler reads turns; see `CallbackHandler` for what each means."""

    question_key: Key | None = None
    context_key: Key | None = None
    answer_key: Key | None = None
    reference_key: Key | None = None
    nested: Nested = "root_only"
    tool_contexts: frozenset[str] = frozenset()
    metadata: Metadata | None = None
    on_record: Callable[[Record], Record | None] | None = None

    @classmethod
    def checked(cls, *, tool_contexts: Sequence[str], **options: Any) -> Options:
        """The options, or a ConfigurationError that names the one that cannot be meant."""
        for name in ("question_key", "context_key", "answer_key", "reference_key"):
            key = options[name]
            if key is not None and not isinstance(key, str) and not callable(key):
                raise ConfigurationError(f"{name} must be a key or a function, not {key!r}")
        if options["nested"] not in get_args(Nested):
            raise ConfigurationError(f"nested must be 'root_only' or 'all', not {options['nested']!r}")
        if isinstance(tool_contexts, str):
            raise ConfigurationError(f"tool_contexts must be a list of names; write [{tool_contexts!r}]")
        metadata, on_record = options["metadata"], options["on_record"]
        if metadata is not None and not isinstance(metadata, Mapping) and not callable(metadata):
            raise ConfigurationError(f"metadata must be a mapping or a function, not {metadata!r}")
        if on_record is not None and not callable(on_record):
            raise ConfigurationError(f"on_record must be a function, not {on_record!r}")
        return cls(tool_contexts=frozenset(tool_contexts), **options)
