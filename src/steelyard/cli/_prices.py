"""What tokens cost, as a plan or a summary shows it: dollars and their source, or why there are none."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table

from steelyard.cli._judges import JudgeChoice
from steelyard.cli._terminal import figures_table
from steelyard.errors import ConfigurationError, MissingDependency
from steelyard.scores import Usage

FREE = "This judge asks nobody: no requests, no tokens, no price."


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


def price_of_all(usage: Mapping[str, Usage], base_url: str | None) -> tuple[float | None, list[str]]:
    """What all models cost together, if all prices are known, and where each comes from."""
    found = [price_of(spent, model=model, base_url=base_url) for model, spent in usage.items()]
    known = [dollars for dollars, _ in found if dollars is not None]
    return sum(known) if len(known) == len(found) else None, list(dict.fromkeys(line for _, line in found))


def plan_table(usage: Usage, price: float | None, sampled: int, total: int | None) -> Table:
    """What some records would take, and all of the file, if their number is known."""
    table = figures_table("Estimate", "Requests", "Tokens in", "Tokens out", "Price")
    scales = [("per record", 1 / sampled)]
    if total:
        scales.append((f"all {total:,}", total / sampled))
    for name, scale in scales:
        table.add_row(
            name,
            f"{usage.requests * scale:,.1f}" if scale < 1 else f"{usage.requests * scale:,.0f}",
            f"{usage.prompt_tokens * scale:,.0f}",
            f"{usage.completion_tokens * scale:,.0f}",
            "-"
            if price is None
            else f"${price * scale:,.4f}"
            if price * scale < 1
            else f"${price * scale:,.2f}",
        )
    return table
