"""The causes that are named in chains with a seeded fault, with a judge that is right and the local one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from statistics import fmean

import pytest

from faults.chains import langchain, llamaindex
from faults.faults import EXPECTED, FAULTS, Fault, Setting, settings
from faults.flows import diagnosed, langgraph, perfect, workflow
from steelyard.record import Record

CHAINS: dict[str, Callable[[Setting], Record]] = {
    "langchain": langchain,
    "llamaindex": llamaindex,
    "langgraph": langgraph,
    "workflow": workflow,
}
# The rules were written with the first text and its chains in sight; the other was not looked at meanwhile.
TEXTS = {"langchain": "harbour", "llamaindex": "harbour", "langgraph": "handbooks", "workflow": "handbooks"}


def named(
    chain: str, fault: Fault, number: int, *, judge: str, own_words: bool = False
) -> Counter[str | None]:
    """How often each cause is named."""
    causes: Counter[str | None] = Counter()
    for setting in settings(fault, number, seed=7, text=TEXTS[chain], own_words=own_words):
        record = CHAINS[chain](setting)
        found = diagnosed(setting, record, perfect(setting) if judge == "perfect" else None)
        assert found is not None, (chain, setting.case.question)
        causes[found.cause] += 1
    return causes


def right(chain: str, fault: Fault, number: int, *, judge: str, own_words: bool = False) -> float:
    """The share of turns with a cause that names the fault."""
    causes = named(chain, fault, number, judge=judge, own_words=own_words)
    return sum(causes[cause] for cause in EXPECTED[fault]) / number


@pytest.mark.parametrize(("judge", "least"), [("perfect", 0.85), ("local", 0.7)])
@pytest.mark.parametrize("chain", CHAINS)
def test_the_fault_is_named(chain: str, judge: str, least: float) -> None:
    shares = {fault: right(chain, fault, 10, judge=judge) for fault in FAULTS}
    assert fmean(share for fault, share in shares.items() if fault != "none") >= least, shares
    assert shares["none"] >= 0.9, "good turns are not called bad"


@pytest.mark.slow
@pytest.mark.parametrize(("judge", "least"), [("perfect", 0.85), ("local", 0.7)])
@pytest.mark.parametrize("chain", CHAINS)
def test_the_fault_is_named_over_a_hundred_turns_each(chain: str, judge: str, least: float) -> None:
    shares = {fault: right(chain, fault, 100, judge=judge) for fault in FAULTS}
    assert fmean(share for fault, share in shares.items() if fault != "none") >= least, shares
    assert shares["none"] >= 0.98, "good turns are not called bad"


@pytest.mark.parametrize("chain", ["langgraph", "workflow"])
def test_the_fault_is_named_where_a_model_answers_in_words_of_its_own(chain: str) -> None:
    shares = {fault: right(chain, fault, 6, judge="perfect", own_words=True) for fault in FAULTS}
    assert fmean(shares.values()) >= 0.9, shares
