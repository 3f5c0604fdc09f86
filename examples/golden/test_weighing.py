"""A golden set as tests: run with `pytest examples/golden`.

Put your own chain, engine or function in place of the demo's.
"""

from __future__ import annotations

import pytest

from steelyard.cli.demo import demo_chain
from steelyard.pytest_plugin import Steelyard


@pytest.mark.golden("weighing.jsonl")
@pytest.mark.gate("faithfulness=0.9", "context_recall=0.7", "declined=0.9")
def test_the_chain_is_good_enough_on_average(steelyard: Steelyard) -> None:
    steelyard.check(demo_chain(), metrics=["faithfulness"])


@pytest.mark.golden("weighing.jsonl")
def test_no_single_answer_is_invented(steelyard: Steelyard) -> None:
    steelyard.check(demo_chain(), thresholds={"faithfulness": 0.5})
