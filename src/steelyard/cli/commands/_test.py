"""`steelyard test` and `compare`: put a golden set to an application, and hold two runs side by side."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import typer
from rich.table import Table
from rich.text import Text
from typer import Argument, Option

from steelyard._internal.text import counted, shorten
from steelyard.cli._judges import JudgeOptions
from steelyard.cli._options import GOLDEN_SET, METRICS, listed, numbers_by_name, takes
from steelyard.cli._say import amount, say
from steelyard.cli._terminal import Terminal, figures_table, progress
from steelyard.errors import ConfigurationError
from steelyard.golden import (
    HOW_TO_ASK,
    NOTHING_ASKED,
    App,
    Comparison,
    EarlierScores,
    Gate,
    GoldenSet,
    MetricComparison,
    Run,
    app_from,
    compare_runs,
    gates_from,
    junit_xml,
    markdown_summary,
    run_golden,
)
from steelyard.stats import GateTest, plan_gate


def compare(
    first: Path = Argument(..., metavar="A.json", help="The earlier run: `steelyard test --json`."),
    second: Path = Argument(..., metavar="B.json", help="The later run."),
    as_json: bool = Option(False, "--json", help="The comparison as JSON."),
    fail_on_worse: bool = Option(
        False, "--fail-on-worse", help="Exit with 1 if a metric is worse beyond chance."
    ),
) -> None:
    """Compare two runs case by case.

    Shows the difference of each metric with a 95 % interval, over all cases and by slice, and the cases that
    changed sides. A metric is marked as worse or better only beyond chance, by an exact test. With nothing
    changed, anything at all is marked in at most 5 % of calls, however many metrics and slices there are.

    Exit status: 0 fine; 1 with `--fail-on-worse` if a metric is worse; 2 wrong usage.

    **Examples**

    - `steelyard compare main.json branch.json`
    - `steelyard compare main.json branch.json --fail-on-worse`
    """
    found = compare_runs(Run.load(first), Run.load(second))
    if as_json:
        say(json.dumps(asdict(found), ensure_ascii=False))
    else:
        _show_changes(Terminal(), found)
    if fail_on_worse and found.worse:
        raise typer.Exit(1)


_MOST_CHANGED = 30


def _show_changes(console: Terminal, found: Comparison) -> None:
    console.print(
        _changes_table(found.differences) if found.differences else "no case has a score in both runs"
    )
    if found.differences:
        console.say(_error_words(len(found.differences)), "dim")
    for side in found.changed[:_MOST_CHANGED]:
        sign, style = ("passes now", "green") if side.passes else ("fails now", "red")
        line = f"{sign}: {side.metric} {side.before:.2f} > {side.after:.2f}  {shorten(side.question, 90)}"
        console.say(f"{line} [{side.case}]", style)
    if len(found.changed) > _MOST_CHANGED:
        console.say(f"and {len(found.changed) - _MOST_CHANGED} more cases changed sides")
    if not found.changed:
        console.say("no case changed sides (thresholds decide on sides)")
    for name, ids in (("first", found.only_first), ("second", found.only_second)):
        if ids:
            console.say(f"{counted(len(ids), 'case')} only in the {name} run")
    for warning in found.warnings:
        console.say(f"warning: {warning}", "yellow")


def _error_words(count: int) -> str:
    if count == 1:
        return "p: exact (sign flips); called worse or better by chance in at most 5 of 100 runs"
    return (
        f"p: exact (sign flips), adjusted for {count} comparisons (Holm): if nothing has changed, anything "
        "at all is called worse or better in at most 5 of 100 runs. Each interval holds by itself."
    )


def _changes_table(rows: Sequence[MetricComparison]) -> Table:
    table = figures_table("Metric", "Slice", "A", "B", "B - A", "95 %", "p", "Cases", "", names=2)
    for row in rows:
        one = row.difference
        verdict = Text("worse", style="red") if row.worse else Text("better", style="green")
        table.add_row(
            row.metric,
            shorten(row.slice, 30),
            f"{one.first:.3f}",
            f"{one.second:.3f}",
            f"{one.value:+.3f}",
            f"{one.low:+.3f} to {one.high:+.3f}",
            "-" if one.p_value is None else f"{row.adjusted_p:.3f}",
            str(one.n),
            verdict if row.clear else Text(""),
        )
    return table


_NOT_PROMISED = (
    "Without --repeat app or --baseline the gate only compares the answers at hand: these rates do not hold."
)
_SUPPOSED = (0.1, 0.2, 0.3, 0.5)
"""Noise to suppose where none was measured: .5 is that of an answer that is right every other time."""


def _show_plan(
    console: Terminal, golden: GoldenSet, gates: Sequence[Gate], baseline: Sequence[Run], *, repeat: str
) -> None:
    if not len(golden):
        raise ConfigurationError(f"the golden set {golden.name!r} has no cases; add some first")
    earlier = EarlierScores.of_runs(baseline)
    for gate in gates or (Gate(metric="any metric"),):
        _show_gate(console, golden, gate, earlier, repeat=repeat)


def _show_gate(
    console: Terminal, golden: GoldenSet, gate: Gate, earlier: EarlierScores, *, repeat: str
) -> None:
    known = {case.id: values for case in golden if (values := earlier.values(case.id, gate.metric))}
    paired = gate.least is None
    weights = [case.weight for case in golden if not (paired and known) or case.id in known]
    answers = round(sum(map(len, known.values())) / len(known)) if known else 1
    passes = gate.passes if repeat == "app" else 1
    cases = _effective(weights)
    effective = "" if cases == len(weights) else f", which tell as much as {cases} equal ones"
    head = f"{gate.metric}: {counted(len(weights), 'case')}{effective}, {_how(gate, passes, answers)}"
    console.say(head, "bold")
    noise = earlier.noise(gate.metric, known)
    console.print(_plan_table(gate, cases, noise, passes, answers if paired else None))
    console.say(_words(gate, noise), "dim")
    if passes == 1 and not (known or paired):
        console.say(_NOT_PROMISED, "yellow")


def _effective(weights: Sequence[float]) -> int:
    """Unequal weights tell as much as fewer equal ones (Kish)."""
    return max(round(sum(weights) ** 2 / sum(weight * weight for weight in weights)), 1)


def _words(gate: Gate, noise: float | None) -> str:
    source = "supposed: no earlier run tells" if noise is None else "measured in earlier runs"
    return (
        f"Noise: standard deviation of a case's score from one answer to the next, {source}. Finds: the "
        f"smallest fall that fails with {gate.power:.0%}. Cases for it: so many find {gate.fall:g}. "
        f"Promised: it fails with at most {gate.false_failures:.0%} on the bar, and passes with at most "
        f"{1 - gate.power:.0%} after a fall of {gate.fall:g}. Asked once, fewer than {GateTest.fewest} cases "
        "decide nothing."
    )


def _how(gate: Gate, passes: int, answers: int) -> str:
    how = f"asked up to {counted(passes, 'time')}" if passes > 1 else "asked once"
    if gate.least is None:
        return f"{how}, against {counted(answers, 'earlier answer')} to each"
    return f"{how}, against {gate.least:g}"


def _plan_table(gate: Gate, cases: int, noise: float | None, passes: int, earlier: int | None) -> Table:
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


@dataclass(frozen=True, kw_only=True, slots=True)
class TestOptions(JudgeOptions):
    """One call of `steelyard test`, as it was typed."""

    golden: Path = GOLDEN_SET
    app: str = Option("", "--app", "-a", metavar="MODULE:NAME", help="The application, or its address.")
    metrics: str = METRICS
    threshold: list[str] | None = Option(
        None, metavar="METRIC=X", help="What every single case has to reach; repeatable."
    )
    gate: list[str] | None = Option(
        None, metavar="METRIC=X", help="What the mean has to reach; METRIC alone: the baseline's; repeatable."
    )
    baseline: list[Path] | None = Option(
        None,
        metavar="RUN.json",
        help="An earlier run: the bar of gates without a number, and the measure of how much "
        "the application wavers; repeatable.",
    )
    measure: bool = Option(False, "--measure", help="Only measure: no bar is wanted.")
    plan: bool = Option(False, "--plan", help="Ask nothing; say which fall a gate over this set can find.")
    fall: float = Option(0.05, min=0.0001, help="The smallest fall below a gate that should be found.")
    power: float = Option(0.9, min=0.5, max=0.999, help="1 less the probability that such a fall passes.")
    false_failures: float = Option(
        0.05, min=0.001, max=0.4, help="The probability with which a gate fails without a fall."
    )
    passes: int = Option(5, min=1, help="How often a case is repeated at most.")
    repeat: Literal["judge", "app"] = Option(
        "judge", help="What a gate repeats: judging, or asking the application too."
    )
    concurrency: int = Option(8, min=1, help="Cases in flight.")
    timeout: float = Option(60.0, min=0.01, metavar="SECONDS", help="The application's time for a case.")
    answer_field: str = Option("", metavar="A.B", help="Where the answer is in an endpoint's reply.")
    contexts_field: str = Option("", metavar="A.B", help="Where the contexts are in an endpoint's reply.")
    junit: str = Option("", metavar="FILE", help="Write JUnit XML.")
    json_file: str = Option("", "--json", metavar="FILE", help="Write the run, for `steelyard compare`.")
    markdown: str = Option("", metavar="FILE", help="Write a summary in Markdown; added to the file's end.")


@takes(TestOptions)
def test(options: TestOptions) -> int:
    """Run a golden set against an application.

    The application is a function of a question (sync or async), a LangChain chain, a LlamaIndex engine or
    workflow, a function without parameters that makes one of these, or the address of an HTTP endpoint. It is
    recorded by the recorders, so answers are judged by the contexts that were really retrieved.

    A gate is decided with stated error rates. How much the application wavers is measured by asking it again
    (`--repeat app`) or known from earlier runs (`--baseline`); without either, a gate only compares the
    answers at hand, and says so. `--plan` says beforehand what a gate can find. A mined set without any bar
    is compared with what production scored on its cases.

    Exit status: 0 passed; 1 a case was not answered or not judged, missed a threshold, or a gate did not
    pass; 2 wrong usage; 3 nothing was asked: no threshold, no gate, no bar of the set, and not `--measure`.

    **Examples**

    - `steelyard test golden.jsonl --app my_app:chain`
    - `steelyard test golden.jsonl --app my_app:answer --gate faithfulness=0.8 --junit out.xml`
    - `steelyard test golden.jsonl --plan --gate faithfulness --baseline main.json --fall 0.1`
    - `steelyard test golden.jsonl --app http://127.0.0.1:8000/ask --gate faithfulness --baseline main.json`
    """
    golden = GoldenSet.load(options.golden)
    baseline = [Run.load(path) for path in options.baseline or ()]
    gates = gates_from(
        options.gate or (),
        fall=options.fall,
        power=options.power,
        false_failures=options.false_failures,
        passes=options.passes,
    )
    if options.plan:
        _show_plan(Terminal(), golden, gates, baseline, repeat=options.repeat)
        return 0
    if not options.app:
        raise ConfigurationError("name what is to be tested: --app module:name, or an address")
    for path in (options.junit, options.json_file, options.markdown):
        if path and not Path(path).absolute().parent.is_dir():
            raise ConfigurationError(f"{path!r} is in a folder that does not exist; make the folder first")
    app = _app(options)
    judge = options.choice()
    console = Terminal(stderr=True)
    with progress(console, "Asking and judging", total=len(golden)) as move:
        found = run_golden(
            golden,
            app,
            metrics=listed(options.metrics) or None,
            judge=judge.build(),
            thresholds=numbers_by_name(options.threshold or (), option="--threshold"),
            gates=gates,
            baseline=baseline,
            measure=options.measure,
            repeat=options.repeat,
            concurrency=options.concurrency,
            app_timeout=options.timeout,
            on_case=lambda _: move(advance=1),
        )
    _write(options, found)
    _show(Terminal(), found)
    return _STATUS[found.outcome]


_MOST_ROWS = 20
_STATUS = {"passed": 0, "failed": 1, NOTHING_ASKED: 3}


def _app(options: TestOptions) -> App:
    fields = {"answer_field": options.answer_field, "contexts_field": options.contexts_field}
    http = {name: value for name, value in fields.items() if value}
    if http and not options.app.startswith(("http://", "https://")):
        raise ConfigurationError(
            "--answer-field and --contexts-field are for an HTTP endpoint; leave them out"
        )
    return app_from(options.app, options=http)


def _write(options: TestOptions, found: Run) -> None:
    if options.json_file:
        found.save(options.json_file)
    if options.junit:
        Path(options.junit).write_text(junit_xml(found), encoding="utf-8")
    if options.markdown:
        # Added, because a CI server's summary file is shared by its steps.
        with Path(options.markdown).open("a", encoding="utf-8") as file:
            file.write(markdown_summary(found))


def _show(console: Terminal, found: Run) -> None:
    head = f"{found.golden} {found.version}: {counted(len(found.cases), 'case')}, {found.app}, {found.judge}"
    console.say(head, "bold")
    console.print(_means(found))
    for gate in found.gates:
        style = "green" if gate.outcome == "pass" else "red"
        line = f"gate {gate.gate}: {gate.outcome}, mean {amount(gate.mean)}"
        if gate.low is not None and gate.high is not None and gate.high > gate.low:
            line += f" ({gate.low:.3f} to {gate.high:.3f})"
        console.say(line, style)
        console.say(f"  {gate.why}", "dim")
    _show_bad(console, found)
    for warning in found.warnings:
        console.say(f"warning: {warning}", "yellow")
    noted = sum(bool(case.notes) for case in found)
    if noted:
        example = next(case.notes[0] for case in found if case.notes)
        console.say(f"noted for {counted(noted, 'case')}: {example}", "dim")
    usage = f"{counted(found.usage.requests, 'judge request')}, {found.seconds:.1f} s"
    if found.outcome == NOTHING_ASKED:
        console.say(HOW_TO_ASK, "yellow")
    console.say(f"{found.outcome} ({usage})", "bold green" if found.passed else "bold red")


def _means(found: Run) -> Table:
    table = figures_table("Metric", "Mean", "95 %", "Scored", "Missed")
    for name in found.metrics:
        results = [case.metrics[name] for case in found if name in case.metrics]
        values = [result.value for result in results if result.value is not None]
        bar = any(result.threshold is not None for result in results)
        estimate = found.estimate(name)
        table.add_row(
            name,
            amount(found.mean(name)),
            "-" if estimate is None else f"{estimate.low:.2f} to {estimate.high:.2f}",
            f"{len(values)} of {len(results)}",
            str(sum(result.passed is False for result in results)) if bar else "-",
        )
    return table


def _show_bad(console: Terminal, found: Run) -> None:
    bad = [case for case in found if case.asked != "answered" or case.failed or case.unscored]
    for case in bad[:_MOST_ROWS]:
        console.say(f"{case.id}  {shorten(case.question, 80)}", "red")
        if case.asked != "answered":
            kind = case.asked.replace("_", " ")
            console.say(f"  {kind}: {shorten(case.problem, 200)}")
        for name in (*case.failed, *case.unscored):
            result = case.metrics[name]
            said = shorten(result.explanation, 160)
            console.say(f"  {name} {amount(result.value)}: {said}")
            for line in result.against[:3]:
                console.say(f"    {shorten(line, 200)}", "dim")
    if len(bad) > _MOST_ROWS:
        console.say(f"and {len(bad) - _MOST_ROWS} more")
    sys.stdout.flush()
