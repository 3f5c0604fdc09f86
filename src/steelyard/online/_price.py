"""What tokens cost."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.errors import ConfigurationError
from steelyard.scores import Usage

__all__ = ["Price"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Price:
    """US dollars for a million tokens, as price lists state them."""

    input: float
    """For tokens sent."""
    output: float
    """For tokens received."""
    cached: float | None = None
    """For tokens sent that the server had cached; like all others where there is no such price."""

    def __post_init__(self) -> None:
        for name in ("input", "output"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
                raise ConfigurationError(f"the {name} price must be a number of dollars, not {value!r}")

    def of(self, usage: Usage) -> float:
        """What this usage costs."""
        fresh = usage.prompt_tokens - usage.cached_tokens
        cached = self.input if self.cached is None else self.cached
        return (
            fresh * self.input + usage.cached_tokens * cached + usage.completion_tokens * self.output
        ) / 1e6
