"""The recorder's options, checked once."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from steelyard.recording import OnRecord, check_function, check_names, check_positive


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """How turns become Records, and how long they may take.

    Raises:
        ConfigurationError: If an option cannot mean what was given.
    """

    tool_contexts: Collection[str] = ()
    """Names of an agent's tools whose text is evidence, though it comes from no retriever."""
    on_record: OnRecord | None = None
    """Called with every Record in the Monitor's thread; may return a changed one."""
    ttl: float = 3600.0
    """Seconds after which a turn that never ended is given up."""
    max_open: int = 10_000
    """OpenTurns under way before the oldest is given up."""

    def __post_init__(self) -> None:
        check_names("tool_contexts", self.tool_contexts)
        check_function("on_record", self.on_record)
        check_positive("ttl", self.ttl)
        check_positive("max_open", self.max_open)
