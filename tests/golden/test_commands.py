"""`steelyard test`, `compare` and `golden diff`: what they print, write and return."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from cli.running import Steelyard
from golden.apps import WEIGHING
from steelyard.cli._terminal import Terminal
from steelyard.cli.commands._test import _means
from steelyard.golden import (
    Case,
    CaseResult,
    GateResult,
    GoldenSet,
    MetricResult,
    Run,
    compare_runs,
    junit_xml,
    markdown_summary,
)


@pytest.fixture
def golden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    WEIGHING.save(tmp_path / "weighing.jsonl")
    return tmp_path / "weighing.jsonl"


@pytest.fixture
def steelyard(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Steelyard:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return Steelyard(capfd, monkeypatch)


def test_a_passing_run_writes_its_files_and_returns_0(steelyard: Steelyard, golden: Path) -> None:
    files = ("--json", "run.json", "--junit", "run.xml", "--markdown", "summary.md")
    gates = ("--gate", "faithfulness=0.8", "--threshold", "faithfulness=0.5")
    Path("summary.md").write_text("of another step\n")
    done = steelyard("test", golden, "--app", "golden.apps:chain", *gates, *files)
    assert done.status == 0, done.out + done.err
    assert "gate faithfulness >= 0.8: pass" in done.out
    suite = ElementTree.parse("run.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("4", "0", "0")
    assert Path("summary.md").read_text().startswith("of another step\n## Golden set weighing: passed")
    assert len(Run.load("run.json").cases) == 3


def test_a_failing_run_says_which_claims_and_returns_1(steelyard: Steelyard, golden: Path) -> None:
    steelyard(
        "test", golden, "--app", "golden.apps:chain", "--json", "a.json", "--threshold", "faithfulness=0.5"
    )
    options = ("--json", "b.json", "--junit", "b.xml", "--threshold", "faithfulness=0.5")
    baseline = ("--gate", "faithfulness", "--baseline", "a.json")
    done = steelyard("test", golden, "--app", "golden.apps:worse", *options, *baseline)
    assert done.status == 1
    assert "(baseline): undecided" in done.out
    assert "(supported: no)" in done.out and "is nowhere" in done.out
    failures = ElementTree.parse("b.xml").getroot().findall(".//failure")
    assert len(failures) == 3 and "not supported" in (failures[0].text or "")
    compared = steelyard("compare", "a.json", "b.json", "--fail-on-worse")
    assert compared.status == 0, "two cases do not make a difference that is beyond chance"
    assert "fails now: faithfulness 0.99 > 0." in compared.out
    line = json.loads(steelyard("compare", "a.json", "b.json", "--json").out)
    assert {side["metric"] for side in line["changed"]} == {"faithfulness"}


def test_a_run_without_a_bar_has_a_status_of_its_own(steelyard: Steelyard, golden: Path) -> None:
    done = steelyard("test", golden, "--app", "golden.apps:chain", "--metrics", "faithfulness")
    assert done.status == 3 and "nothing was asked" in done.out and "--gate" in done.out
    assert steelyard("test", golden, "--app", "golden.apps:chain", "--measure").status == 0


def test_a_plan_says_what_can_be_found_and_asks_nothing(steelyard: Steelyard, golden: Path) -> None:
    gate = ("--gate", "faithfulness=0.8", "--repeat", "app", "--fall", "0.2")
    done = steelyard("test", golden, "--plan", *gate)
    assert done.status == 0 and "asked up to 5 times, against 0.8" in done.out
    assert "supposed: no earlier run tells" in done.out
    steelyard("test", golden, "--app", "golden.apps:chain", "--measure", "--json", "a.json")
    done = steelyard("test", golden, "--plan", "--gate", "faithfulness", "--baseline", "a.json")
    assert "against 1 earlier answer to each" in done.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--app", "golden.apps:nothing"), "has no 'nothing'"),
        (("--app", "golden.apps:chain", "--judge", "oracle"), "no judge 'oracle'"),
        (("--app", "golden.apps:chain", "--judge", "openai:m"), "needs a key"),
        (("--app", "golden.apps:chain", "--threshold", "faithfulness"), "not of the form"),
        (("--app", "golden.apps:chain", "--junit", "no/such/folder.xml"), "does not exist"),
        (("--app", "golden.apps:chain", "--answer-field", "a"), "HTTP endpoint"),
        (("--app", "golden.apps:chain", "--gate", "faithfulness", "--baseline", "weighing.jsonl"), "is not"),
    ],
)
def test_wrong_usage_returns_2_and_one_line(
    steelyard: Steelyard, golden: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = steelyard("test", golden, *arguments)
    assert done.status == 2
    assert said in done.err and done.err.count("\n") == 1


def test_a_file_that_is_not_a_golden_set_is_named(steelyard: Steelyard, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"steelyard_golden": 99}\n')
    done = steelyard("test", bad, "--app", "golden.apps:chain")
    assert done.status == 2 and "newer" in done.err


def test_diff_shows_what_changed(steelyard: Steelyard, golden: Path) -> None:
    first, second, third = WEIGHING.cases
    newer = GoldenSet(cases=(first, replace(second, reference="200."), Case(question="Who weighs?")))
    newer.save("newer.jsonl")
    done = steelyard("golden", "diff", golden, "newer.jsonl")
    assert done.status == 1
    assert f"~ {second.id}" in done.out and "(reference)" in done.out
    assert f"- {third.id}" in done.out and "1 case added, 1 removed, 1 changed" in done.out
    assert steelyard("golden", "diff", golden, golden).status == 0


def made(value: float, *, name: str = "a", asked: str = "answered", **fields: object) -> CaseResult:
    metrics = {"faithfulness": MetricResult(values=(value,), threshold=0.5)}
    return CaseResult(id=name, question=f"What of {name}?", asked=asked, metrics=metrics, **fields)  # type: ignore[arg-type]


def a_run(*cases: CaseResult, **fields: object) -> Run:
    plain: dict[str, object] = {"golden": "g", "version": "v", "app": "a", "judge": "j", **fields}
    return Run(cases=cases, **plain)  # type: ignore[arg-type]


def test_a_run_is_read_as_it_was_stored(tmp_path: Path) -> None:
    gate = GateResult(gate="faithfulness >= 0.8", metric="faithfulness", outcome="undecided", mean=0.79)
    run = a_run(made(0.7, tags=("x",), weight=3.0), gates=(gate,), warnings=("edited",))
    run.save(tmp_path / "run.json")
    assert Run.load(tmp_path / "run.json") == run


def test_hostile_texts_stay_texts_in_xml_and_markdown() -> None:
    nasty = 'x|<img src=x>\x1b[31m"&\x00]]> `code`\n| a | b |'
    run = a_run(replace(made(0.1), question=nasty, answer=nasty, problem=nasty), golden=nasty)
    suite = ElementTree.fromstring(junit_xml(run))[0]
    shown = suite.find("testcase")
    assert shown is not None and "<img src=x>" in str(shown.get("name"))
    text = markdown_summary(run)
    assert "<img" not in text.replace("\\<", "") and "\x1b" not in text and "\\|" in text
    row = next(line for line in text.splitlines() if "`a`" in line)
    assert row.replace("\\|", "").count("|") == 4


@pytest.mark.parametrize("asked", ["answered", "timeout"])
@pytest.mark.parametrize("value", [None, 0.1, 0.5])
@pytest.mark.parametrize("lacks", [False, True])
def test_a_case_has_one_outcome_in_junit_and_the_counts_are_those_of_the_cases(
    asked: Any, value: float | None, lacks: bool
) -> None:
    """A missed bar goes before a score that lacks, and no answer before both."""
    found = {"a": MetricResult(values=() if value is None else (value,), threshold=0.5)}
    found |= {"b": MetricResult(status="failed", cause="timeout")} if lacks else {}
    case = replace(made(1.0), asked=asked, problem="late", metrics=found if asked == "answered" else {})
    suite = ElementTree.fromstring(junit_xml(a_run(case, made(0.9, name="fine"))))[0]
    outcomes = [child.tag for child in suite[1] if child.tag in ("error", "failure")]
    missed = value == 0.1 and asked == "answered"
    bad = ["failure"] if missed else ["error"] if lacks or asked != "answered" else []
    assert outcomes == bad
    counts = (suite.get("tests"), suite.get("failures"), suite.get("errors"))
    assert counts == ("2", str(bad.count("failure")), str(bad.count("error")))


def test_a_mean_over_drawn_cases_weighs_them() -> None:
    run = a_run(made(0.0, name="a", weight=1.0), made(1.0, name="b", weight=9.0))
    estimate = run.estimate("faithfulness")
    assert estimate is not None and estimate.value == pytest.approx(0.9)


def test_a_comparison_over_drawn_cases_weighs_them() -> None:
    cases = [(0.2, 0.9, 1.0), (0.9, 0.5, 6.0), (0.4, 0.6, 3.0), (0.8, 0.7, 2.0), (0.5, 0.5, 1.0)]
    before, after = (
        a_run(*(made(one[at], name=f"c{place}", weight=one[2]) for place, one in enumerate(cases)))
        for at in (0, 1)
    )
    (found,) = compare_runs(before, after).differences
    change = sum(weight * (later - earlier) for earlier, later, weight in cases)
    assert found.difference.value == pytest.approx(change / sum(weight for *_, weight in cases))


def test_a_comparison_pairs_cases_and_cuts_slices() -> None:
    values = [0.4, 0.6, 0.8, 0.9, 0.7, 0.6, 0.9, 0.8]
    before = a_run(*(made(v, name=f"c{i}", tags=("even",) if i % 2 else ()) for i, v in enumerate(values)))
    after = a_run(
        *(made(v - 0.3, name=f"c{i}", tags=("even",) if i % 2 else ()) for i, v in enumerate(values)),
        made(1.0, name="new"),
        judge="another",
    )
    found = compare_runs(before, after, least=3)
    every, even = found.differences
    assert (every.slice, even.slice) == ("all cases", "tag even")
    assert every.difference.value == pytest.approx(-0.3) and every.worse and even.difference.n == 4
    # Half of 2^-8 on either side, of which all cases have four fifths when a slice is there too.
    assert every.difference.p_value == pytest.approx(2**-8) and every.adjusted_p == pytest.approx(2**-8 / 0.8)
    few = compare_runs(before, after, least=9)  # which slices have, and all cases need not
    assert [one.slice for one in few.differences] == ["all cases"]
    assert found.only_second == ("new",) and "judges differ" in found.warnings[0]
    assert [side.case for side in found.changed] == ["c1", "c4", "c5"]
    assert not any(side.passes for side in found.changed)


def test_names_in_brackets_or_colons_stay_in_a_table(steelyard: Steelyard, tmp_path: Path) -> None:
    """No word of a name is taken for a style or a picture."""
    runs = [tmp_path / "a.json", tmp_path / "b.json"]
    for path, value in zip(runs, (0.9, 0.6), strict=True):
        a_run(*(made(value, name=f"c{n}", tags=("[b]:m:",) if n % 2 else ()) for n in range(30))).save(path)
    assert "tag [b]:m:" in steelyard("compare", *runs).out


@pytest.mark.parametrize("metrics", [1, 8])
def test_with_nothing_changed_hardly_anything_is_called_worse(metrics: int) -> None:
    draw = np.random.default_rng(metrics)

    def run(values: np.ndarray) -> Run:
        return a_run(
            *(
                CaseResult(
                    id=str(case),
                    question="q",
                    tags=("odd",) if case % 2 else (),
                    metrics={f"m{n}": MetricResult(values=(float(v),)) for n, v in enumerate(row)},
                )
                for case, row in enumerate(values)
            )
        )

    marked = 0
    for _ in range(60):
        first = draw.random((20, metrics)) < 0.9
        second = first ^ (draw.random((20, metrics)) < 0.1)
        found = compare_runs(run(first), run(second))
        marked += any(one.clear for one in found.differences)
    assert marked <= 7, "at .05 there are more of 60 in one case of a hundred"


def test_lower_is_better_turns_worse_around() -> None:
    def run(value: float) -> Run:
        result = MetricResult(values=(value,), direction="lower", threshold=0.5)
        case = CaseResult(id="a", question="q", metrics={"hallucination": result})
        return a_run(*(replace(case, id=str(n)) for n in range(30)))

    assert compare_runs(run(0.2), run(0.9)).worse, "and with 30 cases it is beyond chance"
    assert not compare_runs(run(0.9), run(0.2)).worse


def test_a_case_without_a_score_has_missed_no_bar(capfd: pytest.CaptureFixture[str]) -> None:
    lacking = replace(
        made(1.0, name="lacking"), metrics={"faithfulness": MetricResult(status="failed", threshold=0.5)}
    )
    scored = (replace(made(value, name=f"{value}"), metrics=bar(value)) for value in (0.1, 0.2, 0.9))
    Terminal().print(_means(a_run(lacking, *scored)))
    (row,) = [line for line in capfd.readouterr().out.splitlines() if "faithfulness" in line]
    assert row.split("3 of 4")[1].split() == ["2"]


def bar(value: float) -> dict[str, MetricResult]:
    return {"faithfulness": MetricResult(values=(value,), threshold=0.5)}
