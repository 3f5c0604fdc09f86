"""What a run of a golden set came to: values to store and compare, JUnit XML, Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import mul
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

from steelyard._internal.files import owners_alone
from steelyard._internal.text import shorten
from steelyard._internal.typed import adapter
from steelyard.errors import InvalidGoldenSet
from steelyard.scores import Direction, Outcome, Usage
from steelyard.stats import Estimate, weighted_mean

RUN_SCHEMA = 1
"""Version of a stored run's form; a reader refuses a newer one."""

Asked = Literal["answered", "error", "timeout", "odd_reply"]
"""How asking the application ended: it answered, it raised, it hung, or its reply held no answer."""


def named_judge(name: str, prompt_version: str) -> str:
    """A judge's name with the version of its wording: only scores of the same one are compared."""
    return f"{name} ({prompt_version})" if prompt_version else name


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricResult:
    """One metric on one case, measured once or several times."""

    values: tuple[float, ...] = ()
    """Every value that was measured; empty where there is none."""
    status: Outcome = "scored"
    """Of the first measurement."""
    cause: str | None = None
    """Why there is no value."""
    explanation: str = field(default="", repr=False)
    """The first Score's words."""
    against: tuple[str, ...] = field(default=(), repr=False)
    """The verdicts that speak against the answer, each with its evidence."""
    threshold: float | None = None
    """The bar that this case has to reach; None without one."""
    direction: Direction = "higher"
    """Which way is better."""

    @property
    def value(self) -> float | None:
        """The mean of what was measured."""
        return sum(self.values) / len(self.values) if self.values else None

    @property
    def passed(self) -> bool | None:
        """Whether the value is on the right side of the threshold; None without value or threshold."""
        value = self.value
        if value is None or self.threshold is None:
            return None
        return value >= self.threshold if self.direction == "higher" else value <= self.threshold


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseResult:
    """What became of one case."""

    id: str
    """The case's id."""
    question: str = field(repr=False)
    """What was asked."""
    asked: Asked = "answered"
    """How asking the application ended."""
    problem: str = field(default="", repr=False)
    """What went wrong there, by name."""
    answer: str = field(default="", repr=False)
    """What the application answered."""
    contexts: tuple[str, ...] = field(default=(), repr=False)
    """The contexts that it was judged by."""
    metrics: Mapping[str, MetricResult] = field(default_factory=dict)
    """By the metric's name."""
    notes: tuple[str, ...] = ()
    """What is not known of the turn, and why."""
    tags: tuple[str, ...] = ()
    """The case's tags."""
    kind: str = ""
    """What sort of question it is."""
    source: str = "person"
    """Who thought of it."""
    weight: float = 1.0
    """How many turns of production it stands for."""
    seconds: float = 0.0
    """How long the application took."""

    @property
    def failed(self) -> tuple[str, ...]:
        """The metrics whose threshold it missed."""
        return tuple(name for name, result in self.metrics.items() if result.passed is False)

    @property
    def unscored(self) -> tuple[str, ...]:
        """The metrics that failed to give a value."""
        return tuple(name for name, result in self.metrics.items() if result.status == "failed")


@dataclass(frozen=True, kw_only=True, slots=True)
class GateResult:
    """What a gate decided."""

    gate: str
    """The gate in words: `faithfulness >= 0.8`."""
    metric: str
    """Its metric."""
    outcome: Literal["pass", "fail", "undecided"]
    """`undecided`: too little was measured to be sure enough, or too few cases have a score."""
    mean: float | None
    """The mean over the cases, weighted as the set is, in the metric's own direction."""
    low: float | None = None
    """Lower end of the interval that wavering leaves; None where it is not known."""
    high: float | None = None
    """Upper end."""
    calls: int = 0
    """Scores that it took."""
    cases: int = 0
    """Cases with a score."""
    why: str = ""
    """In words."""
    chance: Literal["app", "judge", "unknown"] = "unknown"
    """Whose wavering the verdict allows for: the application's, only the judge's, or nobody's."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A golden set, put to an application and judged."""

    golden: str
    """The set's name."""
    version: str
    """Its version."""
    app: str
    """The application's name."""
    judge: str
    """The judge's name, with the version of its wording."""
    cases: tuple[CaseResult, ...]
    """In the order of the set."""
    gates: tuple[GateResult, ...] = ()
    """In the order given."""
    usage: Usage = field(default_factory=Usage)
    """What judging cost."""
    started_at: float = 0.0
    """Unix time."""
    seconds: float = 0.0
    """How long it took."""
    exact: bool = False
    """Whether its judge is known to give the same scores again."""
    repeated: Literal["app", "judge"] | None = None
    """What several values of a case are: answers, or judgements of one answer; None: the run does not say."""
    measured_only: bool = False
    """Whether no bar was wanted."""
    warnings: tuple[str, ...] = ()
    """What a reader has to know: an edited set, cases that nobody reviewed."""

    def __iter__(self) -> Iterator[CaseResult]:
        return iter(self.cases)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of all metrics."""
        return tuple(dict.fromkeys(name for case in self.cases for name in case.metrics))

    @property
    def broken(self) -> tuple[CaseResult, ...]:
        """The cases whose question the application did not answer."""
        return tuple(case for case in self.cases if case.asked != "answered")

    @property
    def asked_nothing(self) -> bool:
        """Whether there was no bar at all: no threshold and no gate."""
        bars = (result.threshold for case in self.cases for result in case.metrics.values())
        return not self.gates and all(bar is None for bar in bars)

    @property
    def outcome(self) -> Literal["passed", "failed", "nothing was asked"]:
        """`passed`: every case was answered and judged and reached its thresholds, and every gate passed.

        Without any bar, nothing was asked, and nothing has passed; unless only measuring was wanted.
        """
        if self.problems:
            return "failed"
        return "nothing was asked" if self.asked_nothing and not self.measured_only else "passed"

    @property
    def passed(self) -> bool:
        """Whether the outcome is `passed`."""
        return self.outcome == "passed"

    @property
    def problems(self) -> list[str]:
        """A sentence for each reason to fail."""
        found = [f"{case.id}: {case.problem}" for case in self.broken]
        for case in self.cases:
            for name in case.failed:
                result = case.metrics[name]
                found.append(f"{case.id}: {name} {result.value:.3g} misses {result.threshold:g}")
            found += [f"{case.id}: {name} failed ({case.metrics[name].cause})" for name in case.unscored]
        return found + [f"gate {gate.gate}: {gate.outcome}" for gate in self.gates if gate.outcome != "pass"]

    def mean(self, metric: str) -> float | None:
        """The mean of a metric, each case weighing as many turns as it stands for; None of no values."""
        values, weights = self._scored(metric)
        return sum(map(mul, values, weights)) / sum(weights) if values else None

    def estimate(self, metric: str) -> Estimate | None:
        """The mean of a metric, each case weighing as many turns as it stands for, with an interval.

        For a set drawn from production this estimates production; None if nothing was scored, or if the
        metric's values are not in 0..1.
        """
        values, weights = self._scored(metric)
        # The interval's formula is for bounded values; others have a mean only.
        if not values or not all(0 <= value <= 1 for value in values):
            return None
        # A case that stands for ten turns is like one that was picked with a tenth of the probability.
        return weighted_mean(values, [min(weights) / weight for weight in weights])

    def _scored(self, metric: str) -> tuple[list[float], list[float]]:
        found = [(case.metrics[metric].value, case.weight) for case in self.cases if metric in case.metrics]
        kept = [(value, weight) for value, weight in found if value is not None]
        return [value for value, _ in kept], [weight for _, weight in kept]

    def save(self, path: str | Path) -> None:
        """Write the run as JSON, for `steelyard compare` and as a baseline.

        Raises:
            OSError: If it cannot be written.
        """
        data = {"steelyard_run": RUN_SCHEMA, **adapter(Run).dump_python(self, mode="json")}
        with open(path, "w", encoding="utf-8", opener=owners_alone) as file:
            file.write(json.dumps(data, ensure_ascii=False, indent=1) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Run:
        """Read a stored run.

        Raises:
            InvalidGoldenSet: If the file is not one, or of a newer form.
            OSError: If it cannot be read.
        """
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            # Taken out, since what is left are the fields of a Run and nothing else.
            schema = int(data.pop("steelyard_run"))
            run: Run | None = adapter(Run).validate_python(data) if schema <= RUN_SCHEMA else None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise InvalidGoldenSet(
                f"{path} is not a stored run: {type(error).__name__}; `steelyard test --json FILE` writes one"
            ) from None
        if run is None:
            raise InvalidGoldenSet(f"{path}: its form {schema} is newer than {RUN_SCHEMA}; update steelyard")
        return run


# XML 1.0 has no way to write other characters, and CI servers refuse the whole file.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MOST_ROWS = 30
_LONGEST = 120
NOTHING_ASKED = "nothing was asked"
HOW_TO_ASK = (
    "No bar was asked for: --gate METRIC=X for the mean, --threshold METRIC=X for every case, --baseline "
    "RUN.json for an earlier run; --measure if none is wanted"
)
"""What is said of a run without a bar."""
_SIGNS = {"pass": "pass", "fail": "**fail**", "undecided": "**undecided**"}


def junit_xml(run: Run) -> str:
    """The run as JUnit XML: a test case for each golden case, and one for each gate.

    A missed threshold is a failure; an application without an answer, or a judge without a score, an error.
    """
    unasked = run.outcome == NOTHING_ASKED
    failures = sum(bool(case.failed) for case in run) + sum(gate.outcome != "pass" for gate in run.gates)
    root = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        name=_xml(f"steelyard {run.golden}"),
        tests=str(len(run.cases) + len(run.gates) + unasked),
        failures=str(failures + unasked),
        errors=str(sum(_is_error(case) for case in run)),
        time=f"{run.seconds:.3f}",
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in (("golden version", run.version), ("app", run.app), ("judge", run.judge)):
        ElementTree.SubElement(properties, "property", name=name, value=_xml(value))
    for case in run:
        _case(suite, run, case)
    if unasked:
        node = ElementTree.SubElement(suite, "testcase", classname="steelyard.gates", name=NOTHING_ASKED)
        ElementTree.SubElement(node, "failure", message=HOW_TO_ASK)
    for gate in run.gates:
        node = ElementTree.SubElement(suite, "testcase", classname="steelyard.gates", name=_xml(gate.gate))
        if gate.outcome != "pass":
            message = _xml(f"{gate.outcome}: mean {_number(gate.mean)}")
            ElementTree.SubElement(node, "failure", message=message)
        ElementTree.SubElement(node, "system-out").text = _xml(f"mean {_number(gate.mean)}; {gate.why}")
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _case(suite: ElementTree.Element, run: Run, case: CaseResult) -> None:
    node = ElementTree.SubElement(
        suite,
        "testcase",
        classname=_xml(f"steelyard.{run.golden}"),
        name=_xml(f"{shorten(case.question, _LONGEST)} [{case.id}]"),
        time=f"{case.seconds:.3f}",
    )
    if case.asked != "answered":
        ElementTree.SubElement(node, "error", type=case.asked, message=_xml(case.problem))
    # JUnit takes one outcome for a case: a missed threshold weighs more than a score that is missing.
    elif case.unscored and not case.failed:
        names = "; ".join(f"{name}: {case.metrics[name].cause}" for name in case.unscored)
        ElementTree.SubElement(node, "error", type="unscored", message=_xml(names))
    for name in case.failed:
        result = case.metrics[name]
        message = f"{name} {_number(result.value)} misses {result.threshold:g}"
        failure = ElementTree.SubElement(node, "failure", type=name, message=message)
        failure.text = _xml("\n".join([result.explanation, *result.against]))
    lines = [f"answer: {case.answer}"]
    lines += [f"{name}: {_number(result.value)}" for name, result in case.metrics.items()]
    ElementTree.SubElement(node, "system-out").text = _xml("\n".join([*lines, *case.notes]))


def _is_error(case: CaseResult) -> bool:
    return case.asked != "answered" or (bool(case.unscored) and not case.failed)


def markdown_summary(run: Run) -> str:
    """The run in Markdown: the verdict, gates, means, and the cases that failed."""
    lines = [
        f"## Golden set {_cell(run.golden)}: {run.outcome}",
        "",
        f"{len(run.cases)} cases, version `{run.version}`, application {_cell(run.app)}, judge "
        f"{_cell(run.judge)}, {run.usage.requests} judge requests, {run.seconds:.1f} s",
        "",
    ]
    if run.outcome == NOTHING_ASKED:
        lines += [f"{HOW_TO_ASK}.", ""]
    if run.gates:
        lines += ["| gate | | mean | interval | scores | |", "|---|---|---|---|---|---|"]
        lines += [*map(_gate_row, run.gates), ""]
    lines += ["| metric | mean | 95 % interval | scored | missed |", "|---|---|---|---|---|"]
    lines += [_metric_row(run, name) for name in run.metrics]
    if bad := [case for case in run if _is_error(case) or case.failed]:
        lines += ["", "| case | question | what |", "|---|---|---|"]
        lines += [f"| `{one.id}` | {_cell(one.question)} | {_cell(_what(one))} |" for one in bad[:_MOST_ROWS]]
        lines += [f"| | and {len(bad) - _MOST_ROWS} more | |"] if len(bad) > _MOST_ROWS else []
    lines += ["", *(f"- {_cell(warning)}" for warning in run.warnings)] if run.warnings else []
    return "\n".join(lines).rstrip() + "\n"


def _gate_row(gate: GateResult) -> str:
    ends = "-" if gate.low is None or gate.high is None else f"{gate.low:.3f} to {gate.high:.3f}"
    sign, why = _SIGNS[gate.outcome], _cell(gate.why)
    return f"| {_cell(gate.gate)} | {sign} | {_number(gate.mean)} | {ends} | {gate.calls} | {why} |"


def _metric_row(run: Run, name: str) -> str:
    results = [case.metrics[name] for case in run if name in case.metrics]
    scored = sum(result.value is not None for result in results)
    found = run.estimate(name)
    ends = "-" if found is None else f"{found.low:.3f} to {found.high:.3f}"
    missed = sum(result.passed is False for result in results)
    return f"| {name} | {_number(run.mean(name))} | {ends} | {scored} of {len(results)} | {missed or '-'} |"


def _what(case: CaseResult) -> str:
    if case.asked != "answered":
        return f"{case.asked.replace('_', ' ')}: {case.problem}"
    parts = [f"{name} {_number(case.metrics[name].value)}" for name in case.failed]
    return ", ".join([*parts, *(f"{name} failed ({case.metrics[name].cause})" for name in case.unscored)])


def _cell(text: str) -> str:
    """A text that stays in its cell of a Markdown table, and is not markup there."""
    # Shortened first: a cut between a backslash and its character would leave markup.
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", shorten(text, _LONGEST))


def _xml(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
