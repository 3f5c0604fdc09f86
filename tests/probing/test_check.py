"""A check of judges whose faults are known: each figure must show its fault, and only that."""

from __future__ import annotations

import asyncio
import functools
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from judge_server import Fault, JudgeServer
from steelyard.errors import JudgeUnavailable
from steelyard.judge import ChatJudge, LocalJudge
from steelyard.judge.middleware import Cache
from steelyard.probing import JudgeCheck, ProbeSet, acheck_judge, advice, baselines, check_judge, load_probes
from steelyard.probing._figures import accuracy
from steelyard.probing._probes import ProbeAnswer
from steelyard.questions import (
    Answer,
    Noncommittal,
    Question,
    Relevant,
    Request,
    Supported,
    Unanswered,
    YesNo,
)
from steelyard.testing import ScriptedJudge

SET = load_probes()
LONGER = "that the given passages have to say: "
Script = Callable[[Question, Request], Answer | None]


@functools.cache
def beside() -> tuple[JudgeCheck, ...]:
    """The judges without understanding that every judge is held against."""
    return tuple(check_judge(judge, SET) for judge in baselines(SET.probes))


def truth(question: Question, request: Request) -> bool:
    """What the set holds to be right, whatever the wording and the company."""
    if isinstance(question, Noncommittal):
        return next(p.expected for p in SET.probes if p.asks == "evades" and p.claim == request.view.answer)
    assert isinstance(question, Supported)
    claim = question.claim.partition(LONGER)[2] or question.claim
    first = request.view.contexts[0].text if request.view.contexts else ""
    found = {
        p.expected
        for p in SET.probes
        if claim in (p.claim, p.without_address().claim) and first in p.contexts and p.asks == "supported"
    }
    return found.pop() if len(found) == 1 else True


def judged(script: Script) -> JudgeCheck:
    return check_judge(ScriptedJudge(script), SET)


def knows(question: Question, request: Request) -> Answer | None:
    if isinstance(question, Relevant):
        return YesNo(value=True)
    right = truth(question, request)
    return YesNo(value=right, probability=0.98 if right else 0.02)


def test_a_judge_that_knows_everything_is_right_wherever_the_claim_says_enough() -> None:
    check = judged(knows)
    # This script does not look at the question, without which a bare yes or no cannot be told.
    assert {kind for kind, figures in check.kinds.items() if figures.right.value < 1} == {"yes_no"}
    assert check.calibration is not None and check.calibration.error < 0.08
    for change in (check.again, check.swapped, check.longer, check.fused_record, check.fused_off):
        assert change is not None and change.moved is not None and change.moved.value == 0
    assert check.causes == {}
    assert advice(check, beside())[0].startswith("Take it for single answers")
    less = replace(check.overall, right=replace(check.overall.right, value=0.84, low=0.82))
    told = advice(replace(check, overall=less), beside())[0]
    assert told.startswith("Take it for trends") and "about one verdict in 6 is wrong" in told
    # Another mode is advised where it is clearly better, and not where it may be so by chance.
    assert check.fused_off is not None
    right = check.overall.right
    for value, mode in ((right.high, "view"), (right.high + 1e-6, "off")):
        off = replace(check.fused_off, after=replace(right, value=value, high=1.1))
        assert f"Ask it with fuse {mode!r}" in " ".join(advice(replace(check, fused_off=off), beside()))


def test_a_judge_that_always_says_yes_gets_no_pair_right() -> None:
    check = judged(lambda question, request: YesNo(value=True))
    assert check.overall.right.value == 0.5
    assert check.overall.pairs.value == 0
    assert check.overall.says_yes == 1
    assert check.calibration is None
    told = advice(check, beside())
    assert told[0] == "Do not use it: it is not clearly better than a coin."
    assert "It gives no probabilities: verdicts can be counted, not ranked." in told


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 1.0])
def test_a_pair_is_right_only_where_both_of_its_twins_are(share: float) -> None:
    draw = random.Random(1)
    right = {probe.id: draw.random() < share for probe in SET.probes}
    found = accuracy(
        [ProbeAnswer(probe=probe, value=probe.expected == right[probe.id]) for probe in SET.probes]
    )
    pairs: dict[str, list[bool]] = {}
    for probe in SET.probes:
        pairs.setdefault(probe.pair, []).append(right[probe.id])
    assert found.right.value == pytest.approx(sum(right.values()) / len(right))
    assert found.pairs.value == pytest.approx(sum(map(all, pairs.values())) / len(pairs))


def test_twins_never_share_a_request() -> None:
    judge = ScriptedJudge(knows)
    check_judge(judge, SET)
    pair_of = {(p.contexts[0], p.claim): p.pair for p in SET.probes if p.kind != "yes_no"}
    for request in judge.requests:
        first = request.view.contexts[0].text if request.view.contexts else ""
        claims = [q.claim for q in request.questions.values() if isinstance(q, Supported)]
        known = [pair for claim in claims if (pair := pair_of.get((first, claim)))]
        assert len(known) == len(set(known))
        assert len(claims) <= 8


def test_a_judge_that_goes_by_the_order_of_passages_is_found_out() -> None:
    firsts = {probe.contexts[0] for probe in SET.probes}

    def biased(question: Question, request: Request) -> Answer | None:
        contexts = request.view.contexts
        if isinstance(question, Supported) and contexts and contexts[0].text not in firsts:
            return YesNo(value=True)
        return knows(question, request)

    check = judged(biased)
    assert check.swapped is not None and check.swapped.moved is not None and check.again is not None
    assert check.swapped.moved.value > 0.4
    assert (check.swapped.to_no, check.again.to_yes) == (0, 0)
    assert check.swapped.before.value > check.swapped.after.value
    assert any("order of the passages" in sentence for sentence in advice(check, beside()))


def test_a_judge_that_likes_long_claims_is_found_out() -> None:
    def biased(question: Question, request: Request) -> Answer | None:
        if isinstance(question, Supported) and len(question.claim) > 130:
            return YesNo(value=True)
        return knows(question, request)

    check = judged(biased)
    assert check.longer is not None and check.swapped is not None and check.swapped.moved is not None
    assert check.longer.to_yes > 50 and check.longer.to_no == 0
    assert check.swapped.moved.value == 0
    assert any("length of a claim" in sentence for sentence in advice(check, beside()))


def test_a_judge_that_obeys_the_text_is_found_out() -> None:
    addresses = [probe.address for probe in SET.probes if probe.address]

    def obedient(question: Question, request: Request) -> Answer | None:
        seen = " ".join(context.text for context in request.view.contexts or ())
        if isinstance(question, Supported) and any(a in seen + question.claim for a in addresses):
            return YesNo(value=not truth(question, request))
        return knows(question, request)

    check = judged(obedient)
    assert check.injected is not None and check.injected.moved is not None
    assert (check.injected.moved.value, check.injected.before.value, check.injected.after.value) == (1, 1, 0)
    assert check.kinds["injection"].right.value == 0.25
    assert check.kinds["number"].right.value == 1
    assert any("speaks to the judge" in sentence for sentence in advice(check, beside()))


def test_a_judge_that_fails_in_company_is_to_be_asked_one_by_one() -> None:
    def overwhelmed(question: Question, request: Request) -> Answer | None:
        return YesNo(value=True) if len(request.questions) > 1 else knows(question, request)

    check = judged(overwhelmed)
    assert check.fused_off is not None and check.fused_off.after.value > check.fused_off.before.value
    assert any("fuse 'off'" in sentence for sentence in advice(check, beside()))


def test_record_mode_is_asked_in_the_company_of_another_metric() -> None:
    def distracted(question: Question, request: Request) -> Answer | None:
        company = any(isinstance(other, Relevant) for other in request.questions.values())
        return YesNo(value=True) if company else knows(question, request)

    check = judged(distracted)
    assert check.fused_record is not None and check.fused_off is not None
    assert check.fused_record.to_yes > 100 and check.fused_off.to_yes == 0


def test_independent_samples_that_differ_are_counted_and_no_cache_hides_them(tmp_path: Path) -> None:
    def fickle(question: Question, request: Request) -> Answer | None:
        answer = knows(question, request)
        return YesNo(value=False) if question.sample else answer

    check = check_judge(Cache(ScriptedJudge(fickle), path=tmp_path / "cache.db"), SET)
    assert check.again is not None and check.again.moved is not None
    assert check.again.moved.value == pytest.approx(check.overall.says_yes)
    assert any("from one time to the next" in sentence for sentence in advice(check, beside()))


def test_refusals_and_failures_are_counted_by_cause_and_the_rest_goes_on() -> None:
    def shy(question: Question, request: Request) -> Answer | None:
        contexts = request.view.contexts or ()
        if any("cough syrup" in context.text for context in contexts):
            raise JudgeUnavailable("gone", cause="timeout")
        if isinstance(question, Supported) and "bakery" in question.claim:
            return Unanswered(cause="refused")
        if isinstance(question, Supported) and "dome" in question.claim:
            return None
        return knows(question, request)

    check = judged(shy)
    assert set(check.causes) == {"timeout", "refused", "missing_answer"}
    assert len(check.passes) == 7
    assert check.overall.unanswered > 0
    assert check.overall.right.n == len(SET.probes)
    assert check.overall.right.value < 1 - check.overall.unanswered / len(SET.probes) + 1e-9
    assert check.kinds["table"].right.value == 1


def test_a_judge_that_answers_nothing_is_not_asked_to_the_end() -> None:
    def down(question: Question, request: Request) -> Answer | None:
        raise JudgeUnavailable("down", cause="unreachable")

    judge = ScriptedJudge(down)
    check = check_judge(judge, SET)
    assert list(check.passes) == ["all"]
    assert check.causes == {"unreachable": len(SET.probes)}
    assert check.overall.right.value == 0
    assert advice(check, beside())[0].startswith("It answered nothing")


@pytest.mark.parametrize(("said", "low"), [(0.9, 0.9), (1.0, 0.9), (0.58, 0.5), (0.0, 0.0)])
def test_calibration_error_is_the_distance_of_probabilities_from_shares(said: float, low: float) -> None:
    check = judged(lambda question, request: YesNo(value=True, probability=said))
    assert check.calibration is not None
    assert check.calibration.error == pytest.approx(abs(said - 0.5))
    (bin_,) = check.calibration.bins
    assert (bin_.low, bin_.n, bin_.yes) == (low, len(SET.probes), 0.5)


def test_the_local_judge_finds_numbers_and_names_and_is_the_same_each_time() -> None:
    check = check_judge(LocalJudge(), SET)
    assert check.kinds["number"].right.low > 0.5
    assert check.kinds["name"].right.low > 0.5
    assert check.again is not None and check.again.moved is not None and check.again.moved.value == 0
    assert check.causes == {}
    assert check.probes == SET.sha256


def test_baselines_are_measured_by_the_same_passes() -> None:
    overlap, length = beside()
    assert (overlap.judge, length.judge) == ("word-overlap", "answer-length")
    assert list(overlap.passes) == ["all", "again", "swapped", "longer", "record", "off", "plain"]
    assert 0.5 < overlap.overall.right.value < 0.75
    assert 0.5 <= length.overall.right.value < 0.6
    assert overlap.kinds["role_swap"].right.value == 0.5


def test_a_chat_judge_is_asked_over_the_wire_with_its_retries_and_costs() -> None:
    few = ProbeSet(probes=SET.probes[:72], sha256="own")

    async def check(url: str) -> JudgeCheck:
        judge = ChatJudge("m", base_url=url)
        try:
            return await acheck_judge(judge, few, concurrency=4)
        finally:
            await judge.aclose()

    with JudgeServer() as server:
        server.faults.append(Fault(status=429, headers={"retry-after": "0"}))
        server.faults.append(Fault(content="I would rather not say."))
        found = asyncio.run(check(server.url))
    assert found.judge == "chat:m"
    assert found.overall.right.value == 0.5
    assert found.causes == {}
    assert found.usage.requests == len(server.received)
    assert found.usage.prompt_tokens > 1_000
    assert found.passes["off"].requests > 3 * found.passes["all"].requests
