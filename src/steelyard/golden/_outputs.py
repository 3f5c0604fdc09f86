"""A run for machines and people: JUnit XML for CI servers, Markdown for a pull request."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from steelyard._internal.text import shorten
from steelyard.golden._results import CaseResult, GateResult, Run

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

    A missed threshold is a failure; an application that did not answer, or a judge that gave no score, is an
    error.
    """
    unasked = run.outcome == NOTHING_ASKED
    failures = sum(bool(case.failed) for case in run) + sum(gate.outcome != "pass" for gate in run.gates)
    suite = ElementTree.Element(
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
    root = ElementTree.Element("testsuites")
    root.append(suite)
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
    verdict = run.outcome
    lines = [
        f"## Golden set {_cell(run.golden)}: {verdict}",
        "",
        f"{len(run.cases)} cases, version `{run.version}`, application {_cell(run.app)}, judge "
        f"{_cell(run.judge)}, {run.usage.requests} judge requests, {run.seconds:.1f} s",
        "",
    ]
    if verdict == NOTHING_ASKED:
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
    flat = shorten(text, _LONGEST)
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", flat)


def _xml(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
