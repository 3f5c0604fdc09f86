"""`steelyard test --plan`: what a gate over a set can find, before anything is asked."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from steelyard.cli._terminal import figures_table
from steelyard.cli._words import counted
from steelyard.golden import Gate, GoldenSet, Run
from steelyard.golden.gates import Earlier
from steelyard.stats import plan_gate

_NOT_PROMISED = (
    "Without --repeat app or --baseline the gate only compares the answers at hand: these rates do not hold."
)
_SUPPOSED = (0.1, 0.2, 0.3, 0.5)
"""Noise to suppose where none was measured: .5 is that of an answer that is right every other time."""


def show_plan(
    console: Console, golden: GoldenSet, gates: Sequence[Gate], baseline: Sequence[Run], *, repeat: str
) -> None:
    """Print a table for each gate, or for one that was not named."""
    earlier = Earlier.of_runs(baseline)
    for gate in gates or (Gate(metric="any metric"),):
        _show(console, golden, gate, earlier, repeat=repeat)


def _show(console: Console, golden: GoldenSet, gate: Gate, earlier: Earlier, *, repeat: str) -> None:
    known = {case.id: values for case in golden if (values := earlier.values(case.id, gate.metric))}
    paired = gate.least is None
    weights = _weights(golden, known if paired else ())
    if not weights:
        console.print("the set has no cases")
        return
    answers = round(sum(map(len, known.values())) / len(known)) if known else 1
    passes = gate.passes if repeat == "app" else 1
    cases = _effective(weights)
    effective = "" if cases == len(weights) else f", which tell as much as {cases} equal ones"
    head = f"{gate.metric}: {counted(len(weights), 'case')}{effective}, {_how(gate, passes, answers)}"
    console.print(Text(head, style="bold"), soft_wrap=True)
    noise = earlier.noise(gate.metric, known)
    console.print(_table(gate, cases, noise, passes, answers if paired else None))
    console.print(Text(_words(gate, noise), style="dim"), soft_wrap=True)
    if passes == 1 and not (known or paired):
        console.print(Text(_NOT_PROMISED, style="yellow"), soft_wrap=True)


def _weights(golden: GoldenSet, known: Collection[str]) -> list[float]:
    """Those of the cases that earlier runs know; of all if they know none."""
    return [case.weight for case in golden if case.id in known] or [case.weight for case in golden]


def _effective(weights: Sequence[float]) -> int:
    """Unequal weights tell as much as fewer equal ones (Kish)."""
    return max(round(sum(weights) ** 2 / sum(weight * weight for weight in weights)), 1)


def _words(gate: Gate, noise: float | None) -> str:
    source = "supposed: no earlier run tells" if noise is None else "measured in earlier runs"
    return (
        f"Noise: standard deviation of a case's score from one answer to the next, {source}. Finds: the "
        f"smallest fall that fails with {gate.power:.0%}. Cases for it: so many find {gate.fall:g}."
    )


def _how(gate: Gate, passes: int, answers: int) -> str:
    how = f"asked up to {counted(passes, 'time')}" if passes > 1 else "asked once"
    if gate.least is None:
        return f"{how}, against {counted(answers, 'earlier answer')} to each"
    return f"{how}, against {gate.least:g}"


def _table(gate: Gate, cases: int, noise: float | None, passes: int, earlier: int | None) -> Table:
    falls = ("Noise", "Finds", f"Fall of {gate.fall:g}: fails", "passes", "undecided")
    table = figures_table(*falls, "Unchanged: fails", "undecided", "Cases for it")
    for supposed in _SUPPOSED if noise is None else (noise,):
        plan = plan_gate(
            cases,
            noise=supposed,
            fall=gate.fall,
            false_failures=gate.false_failures,
            power=gate.power,
            passes=passes,
            earlier=earlier,
        )
        shares = (plan.found, plan.missed, plan.undecided, plan.false_failures, plan.undecided_unchanged)
        table.add_row(
            f"{supposed:.2f}",
            "-" if plan.finds is None else f"{plan.finds:.2f}",
            *(f"{share:.0%}" for share in shares),
            "-" if plan.cases_needed is None else f"{plan.cases_needed:,}",
        )
    return table
