"""The recorder's options, checked once."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal

from steelyard.errors import ConfigurationError
from steelyard.record import Record

__all__ = ["Options"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """How turns become Records, and how long they may take.

    Raises:
        ConfigurationError: If an option cannot mean what was given.
    """

    tool_contexts: Collection[str] = ()
    """Names of an agent's tools whose text is evidence, though it comes from no retriever."""
    node_text: Literal["llm", "plain"] = "llm"
    """Whether a node's text is what the model is shown, or the text without metadata."""
    on_record: Callable[[Record], Record | None] | None = None
    """Called with every Record in the Monitor's thread; may return a changed one."""
    ttl: float = 3600.0
    """Seconds after which a turn that never ended is given up."""
    max_open: int = 10_000
    """Turns under way before the oldest is given up."""

    def __post_init__(self) -> None:
        if isinstance(self.tool_contexts, str):
            raise ConfigurationError(f"tool_contexts takes a list of names; write [{self.tool_contexts!r}]")
        if self.node_text not in ("llm", "plain"):
            raise ConfigurationError(f"node_text is 'llm' or 'plain', not {self.node_text!r}")
        if self.on_record is not None and not callable(self.on_record):
            raise ConfigurationError(f"on_record must be a function, not {self.on_record!r}")
        _above_zero("ttl", self.ttl)
        _above_zero("max_open", self.max_open)


def _above_zero(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise ConfigurationError(f"{name} must be a number above 0, not {value!r}")
