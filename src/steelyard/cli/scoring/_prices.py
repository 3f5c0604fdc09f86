"""What tokens cost, as a plan or a summary shows it: dollars and their source, or why there are none."""

from __future__ import annotations

from steelyard.cli.scoring._judges import JudgeChoice
from steelyard.errors import ConfigurationError, MissingDependency
from steelyard.scores import Usage


def price_of(usage: Usage, *, model: str, base_url: str | None) -> tuple[float | None, str]:
    """The price in dollars, None where none is known, and its source or why there is none."""
    from steelyard.online import Price

    try:
        return Price.listed(usage, model=model, base_url=base_url)
    except MissingDependency:
        return None, "no prices: pip install 'steelyard[prices]'"
    except ConfigurationError as error:
        return None, str(error).partition(";")[0]


def price_words(judge: JudgeChoice, usage: Usage) -> str:
    """What a judge's tokens cost; empty for a judge that costs nothing."""
    if judge.is_here or not usage.prompt_tokens:
        return ""
    dollars, source = price_of(usage, model=judge.chosen_model, base_url=judge.base_url)
    return source if dollars is None else f"about ${dollars:.4f} ({source})"
