"""What tokens cost."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from typing import Self

from steelyard._internal.redact import redacted_url
from steelyard.errors import ConfigurationError, MissingDependency
from steelyard.scores import Usage


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

    @classmethod
    def named(cls, model: str, *, base_url: str | None = None) -> Self:
        """A model's price from the list in the package genai-prices, which needs no network.

        Args:
            model: The model's name.
            base_url: The server; OpenAI's own where none is given.

        Raises:
            MissingDependency: If genai-prices is not installed.
            ConfigurationError: If it does not know the model.
        """

        def price(usage: Usage) -> float:
            # A thousand tokens at a time: some models cost more by the token in long requests.
            return cls.listed(usage, model=model, base_url=base_url)[0] * 1000

        return cls(
            input=price(Usage(prompt_tokens=1000)),
            output=price(Usage(completion_tokens=1000)),
            cached=price(Usage(prompt_tokens=1000, cached_tokens=1000)),
        )

    @staticmethod
    def listed(usage: Usage, *, model: str, base_url: str | None = None) -> tuple[float, str]:
        """What some usage costs by the list in the package genai-prices, and which entry of the list says so.

        Args:
            usage: Tokens sent and received in one request.
            model: The model's name.
            base_url: The server; OpenAI's own where none is given.

        Raises:
            MissingDependency: If genai-prices is not installed.
            ConfigurationError: If it does not know the model.
        """
        try:
            from genai_prices import Usage as Tokens
            from genai_prices import calc_price
        except ImportError:
            raise MissingDependency("genai-prices", extra="prices") from None
        tokens = Tokens(
            input_tokens=usage.prompt_tokens,
            output_tokens=usage.completion_tokens,
            cache_read_tokens=usage.cached_tokens,
        )
        try:
            if base_url:
                found = calc_price(tokens, model, provider_api_url=base_url)
            else:
                found = calc_price(tokens, model, provider_id="openai")
        except LookupError:
            known = f"no price is known for {model!r} at {redacted_url(base_url) if base_url else 'OpenAI'}"
            raise ConfigurationError(f"{known}; give it as Price(input=..., output=...)") from None
        source = f"prices of {found.model.name or model} at {found.provider.name} in genai-prices"
        return float(found.total_price), f"{source} {version('genai-prices')}"

    def of(self, usage: Usage) -> float:
        """What this usage costs."""
        fresh = usage.prompt_tokens - usage.cached_tokens
        cached = self.input if self.cached is None else self.cached
        return (
            fresh * self.input + usage.cached_tokens * cached + usage.completion_tokens * self.output
        ) / 1e6
