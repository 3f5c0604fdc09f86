"""Reviewing a golden set: what a person says of each case, kept at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from steelyard.golden._set import Case, GoldenSet


@dataclass
class Review:
    """A set under review; every decision is written to its file before the next case is shown."""

    path: Path
    """The set's file."""
    who: str
    """Who reviews."""
    golden: GoldenSet
    """The set as it stands."""

    @classmethod
    def open(cls, path: str | Path, *, who: str) -> Review:
        """Open a set.

        Raises:
            InvalidGoldenSet: If the file is not one.
        """
        return cls(Path(path), who, GoldenSet.load(path))

    @property
    def pending(self) -> tuple[Case, ...]:
        """The cases that nobody has reviewed."""
        return self.golden.unreviewed

    def accept(
        self,
        case: Case,
        *,
        label: Literal["good", "bad"] | None = None,
        reference: str | None = None,
        question: str | None = None,
    ) -> None:
        """Take a case into the set, with what was said of its answer, and corrected texts."""
        changed = _said(case, label, self.who)
        if reference is not None:
            changed = replace(changed, reference=reference or None)
        if question:
            changed = replace(changed, question=question)
        self._put(changed, case.id)

    def drop(self, case: Case) -> None:
        """Take a case out of the set. Means over a drawn set are then biased by what was taken out."""
        self._put(None, case.id)

    def _put(self, changed: Case | None, name: str) -> None:
        cases = tuple(
            one for case in self.golden if (one := changed if case.id == name else case) is not None
        )
        self.golden = GoldenSet(cases=cases, name=self.golden.name)
        self.golden.save(self.path)


def apply_labels(golden: GoldenSet, labels: Iterable[tuple[str, str, str]]) -> tuple[GoldenSet, int]:
    """What was said of whole turns elsewhere, such as in the live view, as the review of their cases.

    Args:
        golden: A set of `mine`: its cases have the ids of their turns.
        labels: Record id, `good` or `bad`, and who said so.

    Returns:
        The set with labels, and how many cases have one now.
    """
    said = {record: (value, who) for record, value, who in labels if value in ("good", "bad")}
    found = 0
    cases = []
    for case in golden:
        if case.id in said:
            value, who = said[case.id]
            found += 1
            case = _said(case, "good" if value == "good" else "bad", who)
        cases.append(case)
    return GoldenSet(cases=tuple(cases), name=golden.name), found


def _said(case: Case, label: Literal["good", "bad"] | None, who: str) -> Case:
    metadata = {**case.metadata, **({"label": label} if label else {})}
    return replace(case, reviewed_by=who, metadata=metadata)
