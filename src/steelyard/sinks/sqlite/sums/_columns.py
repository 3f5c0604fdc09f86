"""The sums that are kept, as SQL over one row of `scores`."""

from __future__ import annotations

from typing import Final

BARS: Final = 20
"""Bars of a distribution over 0..1."""
ADDED: Final = {
    "n": "1",
    "ends": "({s}value <= 0 OR {s}value >= 1)",
    "weight": "1 / {p}",
    "value": "{s}value / {p}",
    "value_value": "{s}value * {s}value / {p}",
    "value_value_value": "{s}value * {s}value * {s}value / {p}",
    "square": "1 / ({p} * {p})",
    "square_value": "{s}value / ({p} * {p})",
    "square_value_value": "{s}value * {s}value / ({p} * {p})",
    "fourth": "1 / ({p} * {p} * {p} * {p})",
    "passes_n": "({s}passed IS NOT NULL)",
    "passes_weight": "({s}passed IS NOT NULL) / {p}",
    "passes_value": "coalesce({s}passed, 0) / {p}",
    "passes_square": "({s}passed IS NOT NULL) / ({p} * {p})",
    "passes_square_value": "coalesce({s}passed, 0) / ({p} * {p})",
    "passes_fourth": "({s}passed IS NOT NULL) / ({p} * {p} * {p} * {p})",
}
"""What sums are added from."""
LEAST: Final = {
    "least": "{p}",
    "passes_least": "CASE WHEN {s}passed IS NULL THEN 1.0 ELSE {p} END",
}
"""What the least of is kept."""
SUM_COLUMNS: Final = (*ADDED, *LEAST)
"""What is kept for each metric and hour, beside its bars, `threshold` and `direction`."""
HOUR: Final = "CAST(max({s}happened_at, 0) / 3600 AS INTEGER)"
BAR: Final = f"CAST(max(min({{s}}value * {BARS}, {BARS - 1}), 0) AS INTEGER)"
SCORED: Final = "{s}status = 'scored' AND {s}value IS NOT NULL"
DEFINED: Final = ", ".join(f"{name} REAL NOT NULL" for name in SUM_COLUMNS)
"""The columns of a table of sums."""
UPDATED: Final = ", ".join(
    [f"{name} = {name} + excluded.{name}" for name in ADDED]
    + [f"{name} = min({name}, excluded.{name})" for name in LEAST]
)
"""How one more score changes them."""


def of(expression: str, source: str) -> str:
    """An expression over a row: `new.` in a trigger, nothing in a query."""
    return expression.format(s=source, p=f"{source}inclusion_probability")


def of_one(source: str) -> str:
    """The sums of a single score."""
    return ", ".join(of(expression, source) for expression in (*ADDED.values(), *LEAST.values()))


def of_many(source: str = "") -> str:
    """The sums of a group of scores."""
    added = ", ".join(f"sum({of(expression, source)})" for expression in ADDED.values())
    return f"{added}, {', '.join(f'min({of(expression, source)})' for expression in LEAST.values())}"


def bounds(first: int, stop: int) -> dict[str, float]:
    """From when until when the hours from `first` to before `stop` last; what is before 1970 is in hour 0."""
    return {"start": first * 3600.0 if first else -1e300, "stop": stop * 3600.0}
