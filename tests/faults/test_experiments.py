"""Bad turns of the chains with a seeded fault, answered again under other conditions."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import pytest

from faults.chains import langchain
from faults.corpus import likeness
from faults.faults import EXPECTED, FAULTS, Setting, settings
from faults.flows import langgraph, perfect
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
    # The second text may do a little worse than the one that the rules were written beside.
    least = 0.9 if judge == "perfect" or chain == "langchain" else 0.85
    assert sum(share for fault, share in shares.items() if fault != "none") / 7 >= least, shares


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
    assert "it comes and goes" in made.because


def test_an_answer_that_is_good_by_luck_comes_and_goes_for_nothing() -> None:
    """It quotes a passage that does not hold what was asked: the search, and not luck, names the cause."""
    (setting,) = settings("missing", 1, seed=3)
    record, options, judge = langchain(setting), replays(setting), perfect(setting)
    quoting = replace(options, replay=lambda _q, contexts: contexts[0].text)
    made, _ = tried(record, quoting, judge)
    assert made.trials[0].good, "it is faithful"
    assert made.cause == "passage_not_found"


def test_a_wider_search_that_finds_nothing_new_is_not_answered_from() -> None:
    (setting,) = settings("missing", 1, seed=3)
    record, options, judge = langchain(setting), replays(setting), perfect(setting)
    same = replace(options, retrieve=lambda _q, _k: [one.text for one in record.contexts])
    for given, tried_wider in ((options, True), (same, False)):
        made, _ = tried(record, given, judge)
        assert ("wider search" in {trial.name for trial in made.trials}) is tried_wider


def raising(error: BaseException) -> Any:
    def broken(*_: object) -> Any:
        raise error

    return broken


@pytest.mark.parametrize(
    ("fault", "given", "says"),
    [
        ("altered", {"replay": raising(ValueError("a secret"))}, "replay raised ValueError"),
        ("altered", {"replay": raising(SystemExit(3))}, "replay raised "),
        ("altered", {"replay": lambda _q, _c: None}, "replay returned no answer"),
        ("altered", {"replay": lambda _q, _c: " \n"}, "replay returned no answer"),
        ("missing", {"retrieve": raising(KeyError("a secret"))}, "retrieve raised KeyError"),
        ("missing", {"retrieve": lambda _q, _k: 7}, "retrieve returned no passages"),
    ],
)
def test_functions_that_fail_cost_the_experiment_and_nothing_else(fault: Any, given: Any, says: str) -> None:
    (setting,) = settings(fault, 1, seed=3)
    made, _ = tried(langchain(setting), replace(replays(setting), **given), perfect(setting))
    assert made.cause in EXPECTED[fault], "the cause by rules stands"
    assert f"; no experiment: {says}" in made.because
    assert "a secret" not in made.because


def test_an_answer_that_cannot_be_judged_ends_the_experiment() -> None:
    record, options, judge = altered_turn()

    async def run() -> Evaluation:
        async def fails(_turn: Record) -> Evaluation:
            raise OSError("a secret")

        metrics = [Faithfulness(claims="sentences"), ContextSufficiency()]
        return await experiment(await evaluate_one(record, metrics, judge=judge), Laboratory(options), fails)

    made = asyncio.run(run())
    assert made.diagnosis is not None
    assert made.diagnosis.because.endswith("no experiment: an answer could not be judged: OSError")
    assert made["faithfulness"].value == 0.0, "the scores stand"


@pytest.mark.parametrize("judge", ["perfect", "local"])
@pytest.mark.parametrize(
    "lacking",
    [
        {"question": ""},
        {"answer": ""},
        {"contexts": ()},
        {"contexts": (), "retrieved": (), "stages": ()},
        {"stages": (), "retrieved": ()},
        {"question": "", "answer": "", "contexts": (), "retrieved": (), "stages": ()},
    ],
)
def test_a_turn_that_lacks_something_is_tried_as_far_as_it_goes(lacking: Any, judge: str) -> None:
    """Without content, passages or ranks: no more calls than allowed, a cause or none, and no error."""
    (setting,) = settings("reversed", 1, seed=4)
    record = langchain(setting).replace(**lacking)
    chosen = perfect(setting) if judge == "perfect" else LocalJudge()

    async def run() -> tuple[Evaluation, int]:
        async def score(turn: Record) -> Evaluation:
            metrics = [Faithfulness(claims="sentences"), ContextSufficiency()]
            return await evaluate_one(turn, metrics, judge=chosen)

        laboratory = Laboratory(replays(setting))
        first = await score(record)
        return (await experiment(first, laboratory, score)).replace(usage=first.usage), laboratory.replays

    made, calls = asyncio.run(run())
    assert calls <= 6
    if "question" in lacking or "answer" in lacking:
        assert calls == 0
    elif made.diagnosis is not None and made.diagnosis.bad:
        assert len(made.diagnosis.trials) == calls >= 1
    assert [one.metric for one in made.scores] == ["faithfulness", "context_sufficiency"]


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


def test_each_day_has_calls_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    today = [datetime(2026, 3, 1, 23, 59, tzinfo=UTC)]

    class Calendar(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return today[0].astimezone(tz)

    monkeypatch.setattr("steelyard.diagnosis._trials.datetime", Calendar)
    laboratory = Laboratory(Experiments(replay=lambda question, contexts: "So.", per_day=2))

    async def answers() -> int:
        asked = (laboratory.replay("Why?", ()) for _ in range(5))
        return (await asyncio.gather(*asked, return_exceptions=True)).count("So.")

    # By UTC, whatever the time is where it runs.
    found = []
    for minutes in (0, 0, 2, 60 * 24):
        today[0] += timedelta(minutes=minutes)
        found.append(asyncio.run(answers()))
    assert found == [2, 0, 2, 2]
    laboratory.close()
