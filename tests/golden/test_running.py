"""Golden sets put to applications of every kind: what is recorded, and what goes wrong by name."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from golden import apps
from golden.apps import WEIGHING, ask
from judge_server import JudgeServer
from steelyard.errors import ConfigurationError
from steelyard.golden import (
    Case,
    GoldenSet,
    MetricResult,
    arun_golden,
    junit_xml,
    markdown_summary,
    run_golden,
)
from steelyard.judge import ChatJudge
from steelyard.metrics import ContextUtilization
from steelyard.questions import Answer, Predicate, Question, Request, Unanswered, YesNo
from steelyard.testing import ScriptedJudge


def test_what_an_application_does_wrong_is_said_by_name_and_the_rest_goes_on() -> None:
    questions = ("raise", "exit", "hang", "none", "number", "fine")
    run = ask(apps.unsteady, *questions, app_timeout=4.0, concurrency=2)
    found = {case.question: (case.asked, case.problem) for case in run}
    assert found["fine"] == ("answered", "")
    assert found["raise"] == ("error", "ValueError: the index is gone, key=***")
    assert found["exit"] == ("error", "SystemExit: 3")
    assert found["hang"] == ("timeout", "no answer within 4 s")
    assert found["none"][0] == "odd_reply" and "returned None" in found["none"][1]
    assert found["number"][0] == "odd_reply" and "returned a int" in found["number"][1]
    assert not run.passed and len(run.problems) == 5


def test_an_async_function_that_blocks_its_loop_is_given_up_too() -> None:
    run = ask(apps.blocking, "hang", app_timeout=1.0)
    assert run.cases[0].asked == "timeout"


@pytest.mark.parametrize("of", ["noncommittal", "predicate"])
def test_a_judge_that_refuses_is_named_for_its_case_alone(of: str) -> None:
    """Also one that tells whether an answer declines, and will not say whether it corrects."""

    def refuse(question: Question, request: Request) -> Answer:
        if "1" in (request.view.answer or "") and question.kind == of:
            return Unanswered(cause="refused")
        return YesNo(value=False)

    cases = tuple(Case(question="x" * n, kind="unanswerable") for n in (1, 2))
    run = run_golden(
        GoldenSet(cases=cases), apps.answer_later, judge=ScriptedJudge(refuse), metrics=["declined"]
    )
    # "Ada lit the lamp in 1811. 1" and "... 2" both hold a 1: the year.
    assert [case.metrics["declined"].cause for case in run] == ["refused", "refused"]
    assert run.problems == [f"{case.id}: declined failed (refused)" for case in run]


def test_a_wavering_judge_is_asked_until_the_gate_is_decided() -> None:
    calls: list[str] = []

    def waver(question: Question, request: Request) -> YesNo:
        if question.kind == "predicate":
            return YesNo(value=False)
        calls.append(str(request.view.answer))
        return YesNo(value=len(calls) % 2 == 0)

    cases = tuple(Case(question="x" * n, kind="unanswerable") for n in range(1, 31))
    run = run_golden(
        GoldenSet(cases=cases), apps.answer_later, judge=ScriptedJudge(waver), gates=["declined=0.8"]
    )
    (gate,) = run.gates
    assert gate.outcome == "fail" and gate.mean == pytest.approx(0.5, abs=0.1)
    assert gate.calls == len(calls) <= 60
    assert sum(len(case.metrics["declined"].values) for case in run) == gate.calls


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("It was never gilded: its pan is of bronze.", True),
        ("I do not know.", True),
        ("It was gilded in 1811.", False),
    ],
)
def test_a_false_premise_may_be_corrected_or_the_question_declined(answer: str, right: bool) -> None:
    def judge(question: Question, request: Request) -> YesNo:
        if isinstance(question, Predicate):
            assert request.view.reference == "It was not gilded."
            return YesNo(value="never" in (request.view.answer or ""))
        return YesNo(value="not know" in (request.view.answer or ""))

    case = Case(question="Who gilded it?", reference="It was not gilded.", kind="false_premise")
    scripted = ScriptedJudge(judge)
    run = run_golden(
        GoldenSet(cases=(case,)), lambda question: answer, judge=scripted, gates=["declined=0.9"]
    )
    assert run.passed is right
    assert len(scripted.requests) == run.gates[0].calls


@pytest.mark.parametrize(("answer", "right"), [("I do not know.", 1.0), ("It was never gilded.", 0.0)])
def test_the_local_judge_knows_only_whether_an_answer_declines(answer: str, right: float) -> None:
    case = Case(question="Who gilded it?", kind="false_premise")
    (found,) = run_golden(GoldenSet(cases=(case,)), lambda question: answer, metrics=["declined"]).cases
    assert found.metrics["declined"].value == right


def test_a_repeat_is_not_answered_from_the_judges_cache() -> None:
    from steelyard.judge.middleware import Cache

    count = 0

    def waver(question: Question, request: Request) -> YesNo:
        nonlocal count
        if question.kind == "predicate":
            return YesNo(value=False)
        count += 1
        return YesNo(value=count % 4 != 0)

    golden = GoldenSet(cases=tuple(Case(question="x" * n, kind="unanswerable") for n in range(1, 7)))
    run = run_golden(golden, apps.answer_later, judge=Cache(ScriptedJudge(waver)), gates=["declined=0.8"])
    assert count == run.gates[0].calls > 6


@pytest.mark.parametrize(("year", "outcome"), [(1811, "pass"), (1911, "fail")])
def test_a_gate_of_a_metric_that_should_be_low_fails_above_its_number(year: int, outcome: str) -> None:
    told = {"answer": f"Ada lit the lamp in {year}.", "contexts": [apps.LAMPS]}
    run = run_golden(lamps(12), lambda question: told, gates=["hallucination=0.5"])
    (gate,) = run.gates
    assert (gate.outcome, gate.gate) == (outcome, "hallucination <= 0.5")
    if gate.low is not None and gate.high is not None and gate.mean is not None:
        assert 0 <= gate.low <= gate.mean <= gate.high <= 1


@pytest.mark.parametrize(("answered", "outcome"), [(12, "pass"), (11, "pass"), (6, "undecided")])
def test_a_gate_is_decided_by_nearly_all_of_its_cases_or_not_at_all(answered: int, outcome: str) -> None:
    seen: dict[str, int] = {}

    def shy(question: Question, request: Request) -> Answer:
        if seen.setdefault(request.view.question or "", len(seen)) >= answered:
            return Unanswered(cause="refused")
        return YesNo(value=True)

    told = {"answer": "Ada lit the lamp in 1811.", "contexts": [apps.LAMPS]}
    judge = Watched(shy)
    metrics = [ContextUtilization()]
    run = asyncio.run(
        arun_golden(
            lamps(12), lambda _: told, judge=judge, metrics=metrics, gates=["context_utilization=0.5"]
        )
    )
    assert run.gates[0].outcome == outcome
    assert ("of 12 cases have a score" in run.gates[0].why) == (outcome == "undecided")
    # Whoever brings a judge closes it.
    assert not judge.closed


class Watched(ScriptedJudge):
    closed = False

    async def aclose(self) -> None:
        self.closed = True


def test_a_gate_against_a_baseline_pairs_the_cases() -> None:
    before = run_golden(WEIGHING, apps.chain, metrics=["faithfulness"])
    after = run_golden(WEIGHING, apps.worse, gates=["faithfulness"], baseline=before)
    mean = after.gates[0].gate.removeprefix("faithfulness >= ").removesuffix(" (baseline)")
    assert float(mean) == pytest.approx(1.0, abs=0.02)
    assert after.gates[0].outcome == "undecided", "three cases that fall alike may be chance: 1 in 8"
    same = run_golden(WEIGHING, apps.chain, gates=["faithfulness"], baseline=before)
    assert same.gates[0].outcome == "pass" and "word for word" in same.gates[0].why


def test_answers_that_are_those_of_before_do_not_reach_a_number_by_that() -> None:
    before = run_golden(WEIGHING, apps.worse, metrics=["faithfulness"])
    after = run_golden(WEIGHING, apps.worse, gates=["faithfulness=0.9"], baseline=before)
    assert after.gates[0].outcome != "pass"


def test_a_baseline_of_another_judge_is_said() -> None:
    before = run_golden(WEIGHING, apps.chain, metrics=["faithfulness"], measure=True)
    for judge, said in ((before.judge, 0), ("local-lexical (1)", 1)):
        earlier = replace(before, judge=judge)
        after = run_golden(WEIGHING, apps.worse, gates=["faithfulness"], baseline=earlier)
        assert len([warning for warning in after.warnings if judge in warning]) == said


def test_judging_an_answer_again_tells_nothing_of_how_the_application_wavers() -> None:
    golden = lamps(12)
    before = run_golden(golden, app_right(0.8, 1), metrics=["faithfulness"], measure=True)
    (judged_once, judged_often) = (
        replace(
            before,
            repeated="judge",
            cases=tuple(
                replace(case, metrics={name: repeated(one, times) for name, one in case.metrics.items()})
                for case in before
            ),
        )
        for times in (1, 9)
    )
    once, often = (
        run_golden(golden, app_right(0.8, 2), gates=["faithfulness"], baseline=baseline).gates[0]
        for baseline in (judged_once, judged_often)
    )
    # Nine times the same number has a mean that may differ from it in the last digit.
    assert (once.low, once.high) == pytest.approx((often.low, often.high), abs=1e-12)
    assert (once.outcome, once.why) == (often.outcome, often.why)


def repeated(found: MetricResult, times: int) -> MetricResult:
    return replace(found, values=found.values[:1] * times)


def test_a_case_that_the_baseline_does_not_have_is_passed_over() -> None:
    before = run_golden(lamps(2), app_right(1.0, 1), metrics=["faithfulness"])
    after = run_golden(lamps(3), app_right(1.0, 1), gates=["faithfulness"], baseline=before)
    assert after.gates[0].cases == 2


def lamps(count: int, metadata: Mapping[str, object] | None = None) -> GoldenSet:
    cases = (Case(question=f"Who lit lamp {n}?", id=f"c{n}", metadata=metadata or {}) for n in range(count))
    return GoldenSet(cases=tuple(cases))


def app_right(share: float, seed: int) -> Callable[[str], dict[str, object]]:
    """An application that wavers: so many of its answers are what the passage says."""
    draw = random.Random(seed)

    def answer(question: str) -> dict[str, object]:
        number = question.removeprefix("Who lit lamp ").removesuffix("?")
        who = "Ada" if draw.random() < share else "Nobody but Zoltan"
        return {"answer": f"{who} lit lamp {number}.", "contexts": [f"Ada lit lamp {number}."]}

    return answer


def test_a_gate_that_cannot_know_how_the_application_wavers_says_so() -> None:
    run = run_golden(lamps(10), app_right(1.0, 1), gates=["faithfulness=0.8"])
    (gate,) = run.gates
    assert (gate.outcome, gate.chance, gate.low) == ("pass", "unknown", None)
    assert "--repeat app" in gate.why
    again = run_golden(lamps(10), app_right(1.0, 1), gates=["faithfulness=0.8"], repeat="app")
    assert again.gates[0].chance == "app" and again.gates[0].low is not None
    # A mean of shares is one, and so are the ends of its interval.
    assert again.gates[0].high == 1.0


def test_an_application_that_only_wavers_is_not_called_worse_than_itself() -> None:
    golden = lamps(12)
    outcomes = []
    for seed in range(20):
        before = run_golden(golden, app_right(0.8, seed), metrics=["faithfulness"], measure=True)
        after = run_golden(golden, app_right(0.8, 100 + seed), gates=["faithfulness"], baseline=before)
        outcomes.append(after.gates[0].outcome)
        assert after.gates[0].chance == "app"
    assert outcomes.count("fail") <= 3, "at .05 there are more of 20 in one case of sixty"
    assert "undecided" in outcomes, "twelve cases cannot tell a fall of .05 from that"


def test_earlier_runs_tell_how_the_application_wavers_for_a_fixed_bar_too() -> None:
    golden = lamps(12)
    kept = [
        run_golden(golden, app_right(0.8, seed), metrics=["faithfulness"], measure=True) for seed in range(3)
    ]
    run = run_golden(golden, app_right(0.75, 9), gates=["faithfulness=0.8"], baseline=kept)
    assert run.gates[0].chance == "app" and run.gates[0].outcome == "undecided"
    measured = run_golden(golden, app_right(0.8, 5), metrics=["faithfulness"], measure=True, repeat="app")
    assert measured.passed and measured.repeated == "app"
    assert {len(case.metrics["faithfulness"].values) for case in measured} == {5}


def test_without_a_bar_nothing_was_asked() -> None:
    run = run_golden(lamps(3), app_right(1.0, 1), metrics=["faithfulness"])
    assert (run.outcome, run.passed, run.problems) == ("nothing was asked", False, [])
    assert "--gate" in markdown_summary(run) and "nothing was asked" in junit_xml(run)
    assert run_golden(lamps(3), app_right(1.0, 1), metrics=["faithfulness"], measure=True).passed
    assert run_golden(lamps(3), app_right(1.0, 1), thresholds={"faithfulness": 0.5}).passed


def test_a_mined_set_brings_its_bar_along() -> None:
    """An application that says the same sentence whatever it is asked does not pass."""
    judge = run_golden(lamps(1), app_right(1.0, 1), metrics=["faithfulness"], measure=True).judge
    metadata = {"scores": {"faithfulness": 1.0}, "judges": {"faithfulness": judge}}
    same = {"answer": "Zoltan never lit any lamp.", "contexts": ["Ada lit it."]}
    run = run_golden(lamps(30, metadata=metadata), lambda question: same, metrics=["faithfulness"])
    assert [(gate.gate, gate.outcome) for gate in run.gates] == [("faithfulness >= 1 (production)", "fail")]
    both = {"scores": {"faithfulness": 1.0, "hallucination": 0.0}}
    both["judges"] = dict.fromkeys(both["scores"], judge)  # type: ignore[arg-type]
    names = ["faithfulness", "hallucination"]
    shared = run_golden(lamps(30, metadata=both), lambda question: same, metrics=names)
    for made, rate in ((run, "5%"), (shared, "2%")):  # gates that nobody named share the false failures
        assert all(f"false failures at most {rate}" in gate.why for gate in made.gates)
    assert len(shared.gates) == 2
    for found, said in (
        ({"scores": {"faithfulness": 1.0}}, "mine it again"),
        ({**metadata, "judges": {"faithfulness": "another"}}, "judged by another"),
        ({**metadata, "judges": {"hallucination": judge}}, "production was judged by"),
    ):
        other = run_golden(lamps(3, metadata=found), lambda question: same, metrics=["faithfulness"])
        assert other.outcome == "nothing was asked" and said in " ".join(other.warnings)


def test_a_gate_weighs_the_cases_of_a_drawn_set() -> None:
    rare, frequent = (
        Case(question=f"Who lit lamp {n}?", id=f"c{n}", inclusion_probability=chance, source="production")
        for n, chance in ((1, 1.0), (2, 0.1))
    )

    def answer(question: str) -> dict[str, object]:
        right = "2" in question
        return {"answer": "Ada lit it." if right else "Zoltan sold it.", "contexts": ["Ada lit it."]}

    run = run_golden(GoldenSet(cases=(rare, frequent)), answer, gates=["faithfulness=0.8"])
    values = {case.id: case.metrics["faithfulness"].value or 0.0 for case in run}
    assert values["c1"] < 0.3 and values["c2"] > 0.9
    assert run.gates[0].mean == pytest.approx((values["c1"] + 10 * values["c2"]) / 11)
    assert run.gates[0].mean == pytest.approx(run.mean("faithfulness") or 0.0)


def test_repeating_the_application_asks_it_again() -> None:
    asked: list[str] = []

    def app(question: str) -> str:
        asked.append(question)
        return "I do not know." if len(asked) % 2 else apps.LAMPS

    golden = GoldenSet(cases=tuple(Case(question=q * 3, kind="unanswerable") for q in "abcd"))
    run = run_golden(golden, app, gates=["declined=0.9"], repeat="app", concurrency=1)
    assert len(asked) == run.gates[0].calls > 4


async def test_a_run_that_is_interrupted_leaves_no_call_under_way() -> None:
    began, free = threading.Event(), threading.Event()

    def app(question: str) -> str:
        began.set()
        free.wait(60)
        return "At Pompeii."

    run = asyncio.create_task(arun_golden(WEIGHING, app, metrics=[]))
    await asyncio.to_thread(began.wait, 60)
    run.cancel()
    await asyncio.wait([run])
    for _ in range(20):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    free.set()


def test_a_remote_judge_over_the_wire() -> None:
    with JudgeServer() as server:
        judge = ChatJudge("m", base_url=server.url)
        run = run_golden(WEIGHING, apps.chain, judge=judge, metrics=["faithfulness"])
    assert run.cases[0].metrics["faithfulness"].value == 1.0
    assert run.usage.requests == len(server.received)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"app": "golden.apps:nothing"}, "has no 'nothing'"),
        ({"app": "no_such_module:x"}, "no module is named 'no_such_module'"),
        ({"app": "just_a_name"}, "not of the form module:name"),
        ({"app": 7}, "can neither be called"),
        ({"gates": ["faithfulness"]}, "has no number"),
        ({"gates": ["faithfulness=high"]}, "not of the form"),
        ({"gates": ["brilliance=0.8"]}, "no metric is named 'brilliance'"),
        ({"concurrency": 0}, "concurrency must be at least 1"),
    ],
)
def test_wrong_configuration_is_refused_before_anything_is_asked(
    wrong: dict[str, object], match: str
) -> None:
    options = {"app": apps.chain, "metrics": ["faithfulness"], **wrong}
    with pytest.raises(ConfigurationError, match=match):
        run_golden(WEIGHING, options.pop("app"), **options)


def test_an_empty_set_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="has no cases"):
        run_golden(GoldenSet(cases=(), name="none"), apps.chain)


def test_a_set_that_was_edited_and_cases_that_nobody_reviewed_are_said() -> None:
    cases = (Case(question="Who?", source="synthetic"), Case(question="When?"))
    run = run_golden(GoldenSet(cases=cases, declared_version="abc"), apps.stream, metrics=[])
    assert len(run.warnings) == 2
    assert "edited" in run.warnings[0] and "nobody has reviewed 1 of 2 cases" in run.warnings[1]
