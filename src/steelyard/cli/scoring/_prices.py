"""What tokens cost, by the price list of the package genai-prices, which needs no network."""

from __future__ import annotations

from importlib.metadata import version

from steelyard.scores import Usage


def price_of(usage: Usage, *, model: str, base_url: str | None) -> tuple[float | None, str]:
    """Dollars for some usage.

    Args:
        usage: Tokens sent and received.
        model: The model's name.
        base_url: The server; OpenAI's own where none is given.

    Returns:
        The price, or None where none is known, and where it comes from or why there is none.
    """
    try:
        from genai_prices import Usage as Tokens
        from genai_prices import calc_price
    except ImportError:
        return None, "no prices: pip install 'steelyard[prices]'"
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
        return None, f"no price is known for {model!r} at {base_url or 'OpenAI'}"
    source = f"prices of {found.model.name or model} at {found.provider.name} in genai-prices"
    return float(found.total_price), f"{source} {version('genai-prices')}"
