"""The Results of an offline evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, overload

from steelyard.errors import MissingDependency
from steelyard.scores import Evaluation, Usage
from steelyard.stats import MetricSummary, Summarizer

if TYPE_CHECKING:
    import pandas as pd


class Results(Sequence[Evaluation]):
    """Evaluations in input order, with what they add up to.

    >>> print(results)  # doctest: +SKIP
    faithfulness      mean 0.81   17 of 20 pass (0.5)
    """

    def __init__(self, evaluations: Sequence[Evaluation]) -> None:
        self.evaluations = tuple(evaluations)

    @overload
    def __getitem__(self, index: int) -> Evaluation: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Evaluation, ...]: ...
    def __getitem__(self, index: int | slice) -> Evaluation | tuple[Evaluation, ...]:
        return self.evaluations[index]

    def __len__(self) -> int:
        return len(self.evaluations)

    def __iter__(self) -> Iterator[Evaluation]:
        return iter(self.evaluations)

    @cached_property
    def _sums(self) -> Summarizer:
        return Summarizer().add_all(self.evaluations)

    @property
    def summary(self) -> tuple[MetricSummary, ...]:
        """One summary per metric."""
        return self._sums.metrics()

    @property
    def usage(self) -> Usage:
        """What it all cost."""
        return self._sums.usage

    def __str__(self) -> str:
        return "\n".join(map(_line, self.summary)) or ("no metrics" if self.evaluations else "no records")

    def _repr_html_(self) -> str:
        """A table for notebooks: each metric's mean with its interval."""
        rows = "".join(map(_html_row, self.summary))
        heads = "".join(f"<th>{name}</th>" for name in ("metric", "mean", "95 % interval", "scored", "pass"))
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"

    def to_pandas(self) -> pd.DataFrame:
        """One row a record: id, texts, session, tenant, evidence, Unix time, and each metric's value or none.

        Raises:
            MissingDependency: If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise MissingDependency("pandas", extra="pandas") from None
        return pd.DataFrame([_row(evaluation) for evaluation in self.evaluations])


def _row(evaluation: Evaluation) -> dict[str, Any]:
    record = evaluation.record
    return {
        "record_id": evaluation.record_id,
        "question": record.question if record else None,
        "answer": record.answer if record else None,
        "session": evaluation.session,
        "tenant": evaluation.tenant,
        "evidence": evaluation.evidence,
        "happened_at": evaluation.at,
        **{score.metric: score.value for score in evaluation.scores},
    }


def _html_row(summary: MetricSummary) -> str:
    found, passed = summary.estimate, summary.pass_rate
    cells = [
        summary.metric,
        "" if found is None else f"{found.value:.3f}",
        "" if found is None else f"{found.low:.3f} to {found.high:.3f}",
        f"{summary.scored}",
        "" if passed is None else f"{passed.value:.0%}",
    ]
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


def _line(summary: MetricSummary) -> str:
    parts = [f"{summary.metric:<24}", "no score   " if summary.mean is None else f"mean {summary.mean:.3f} "]
    if summary.threshold is not None and summary.scored:
        parts.append(f"{summary.passed} of {summary.scored} pass ({summary.threshold:g})")
    for name, counts in (("not applicable", summary.not_applicable), ("failed", summary.failed)):
        if counts:
            parts.append(f"{sum(counts.values())} {name} ({', '.join(counts)})")
    return "  ".join(parts)
