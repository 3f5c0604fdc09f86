"""A golden set, and questions put to an application without metrics."""

from __future__ import annotations

from steelyard.golden import Case, GoldenSet, Run, run_golden

WEIGHING = GoldenSet(
    name="weighing",
    cases=(
        Case(question="Where were many Roman steelyards found?", reference="At Pompeii.", tags=("rome",)),
        Case(question="How many milligrams is a carat?", reference="200 milligrams.", tags=("units",)),
        Case(question="How much does a blue whale weigh?", kind="unanswerable"),
    ),
)


def ask(app: object, *questions: str, **options: object) -> Run:
    golden = GoldenSet(cases=tuple(Case(question=question) for question in questions))
    return run_golden(golden, app, metrics=[], **options)
