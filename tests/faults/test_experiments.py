"""Bad turns of the chains with a seeded fault, answered again under other conditions."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from faults.chains import langchain
from faults.corpus import likeness
from faults.faults import EXPECTED, FAULTS, Setting, settings
from faults.flows import langgraph
from faults.judging import perfect
from steelyard.diagnosis import Experiments, Laboratory, experiment
from steelyard.engine import evaluate_one
from steelyard.judge import LocalJudge
from steelyard.metrics import ContextSufficiency, Faithfulness
from steelyard.questions import Judge
from steelyard.record import Context, Record
from steelyard.recording import is_unrecorded
from steelyard.scores import Diagnosis, Evaluation

CHAINS = {"langchain": (langchain, "harbour"), "langgraph": (langgraph, "handbooks")}


def replays(setting: Setting) -> Experiments:
    """The chain of a setting without its search, and its index."""

    def replay(question: str, contexts: Sequence[Context]) -> str:
        assert is_unrecorded(), "a replay is not a turn"
        return setting.reply(setting.shown([one.text for one in contexts]))

    def retrieve(question: str, count: int) -> list[str]:
        found = sorted(setting.index, key=lambda one: -likeness(question, one.text))
        return [one.text for one in found[:count]]

    return Experiments(replay=replay, retrieve=retrieve)


def tried(record: Record, options: Experiments, judge: Judge) -> tuple[Diagnosis, Laboratory]:
    """What experiments say of a turn, and who made them."""
    laboratory = Laboratory(options)

    async def run() -> Diagnosis:
        async def score(turn: Record) -> Evaluation:
            metrics = [Faithfulness(claims="sentences"), ContextSufficiency()]
            return await evaluate_one(turn, metrics, judge=judge)

        made = (await experiment(await score(record), laboratory, score)).diagnosis
        assert made is not None
        return made

    return asyncio.run(run()), laboratory


def right(chain: str, fault: Any, number: int, *, judge: str) -> float:
    """The share of turns whose cause names the fault, at six calls a turn at most."""
    run, text = CHAINS[chain]
    found = 0
    for setting in settings(fault, number, seed=7, text=text):
        chosen = perfect(setting) if judge == "perfect" else LocalJudge()
        made, laboratory = tried(run(setting), replays(setting), chosen)
        assert laboratory.replays <= 6
        found += made.cause in EXPECTED[fault]
    return found / number


@pytest.mark.parametrize("judge", ["perfect", "local"])
@pytest.mark.parametrize("chain", CHAINS)
def test_the_fault_is_named_by_experiments(chain: str, judge: str) -> None:
    shares = {fault: right(chain, fault, 6, judge=judge) for fault in FAULTS}
    assert sum(share for fault, share in shares.items() if fault != "none") / 7 >= 0.85, shares


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("judge", ["perfect", "local"])
@pytest.mark.parametrize("chain", CHAINS)
def test_over_a_hundred_turns_each(chain: str, judge: str) -> None:
    shares = {fault: right(chain, fault, 100, judge=judge) for fault in FAULTS}
    assert sum(share for fault, share in shares.items() if fault != "none") / 7 >= 0.9, shares


def test_a_prompt_without_passages_is_the_cause_whatever_a_search_finds() -> None:
    """The bed's prompt shows nothing again, so the answer stays bad; a wider search would tell nothing."""
    for setting in settings("unshown", 6, seed=7):
        made, laboratory = tried(langchain(setting), replays(setting), LocalJudge())
        assert (made.cause, laboratory.replays) == ("passages_not_shown", 1)


def altered_turn() -> tuple[Record, Experiments, Judge]:
    (setting,) = settings("altered", 1, seed=3)
    return langchain(setting), replays(setting), perfect(setting)


def test_what_comes_and_goes_is_unknown() -> None:
    record, options, judge = altered_turn()
    (setting,) = settings("altered", 1, seed=3)
    made, _ = tried(record, replace(options, replay=lambda _q, _c: setting.case.answer), judge)
    assert (made.cause, made.trials[0].good) == ("unknown", True)
    assert "it answers well" in made.because


def test_a_replay_that_raises_says_so_and_loses_nothing() -> None:
    record, options, judge = altered_turn()

    def broken(_question: str, _contexts: Sequence[Context]) -> str:
        raise ValueError("with a secret")

    made, _ = tried(record, replace(options, replay=broken), judge)
    assert made.cause in EXPECTED["altered"]
    assert made.because.endswith("no experiment: replay raised ValueError")


def test_a_replay_that_hangs_is_left_alone() -> None:
    record, options, judge = altered_turn()
    ended = threading.Event()

    def hangs(_question: str, _contexts: Sequence[Context]) -> str:
        ended.wait(60)
        return "late"

    made, _ = tried(record, replace(options, replay=hangs, timeout=0.2), judge)
    ended.set()
    assert "replay took longer than 0.2 s" in made.because


def test_the_calls_of_a_turn_and_of_a_day_are_bounded() -> None:
    record, options, judge = altered_turn()
    made, laboratory = tried(record, replace(options, per_turn=2), judge)
    assert laboratory.replays == len(made.trials) == 2
    made, laboratory = tried(record, replace(options, per_day=1), judge)
    assert laboratory.replays == 1
    assert "the calls of this day are used up" in made.because
