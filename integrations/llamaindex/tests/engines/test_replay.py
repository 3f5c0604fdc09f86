"""Query engines that answer from passages they are handed, for experiments."""

from __future__ import annotations

import asyncio

import pytest
from llamaindex_parts import PARIS, QUESTION, Receiver, engine

from steelyard.diagnosis import Experiments, Laboratory
from steelyard.errors import ConfigurationError
from steelyard.record import Context
from steelyard_llamaindex import instrument, replay_of, uninstrument

HANDED = (Context(text="The lamp was lit in 1920.", id="x", score=0.5), Context(text="It is red."))


@pytest.mark.parametrize("streaming", [False, True])
def test_an_engine_answers_from_what_it_is_handed_and_is_not_recorded(streaming: bool) -> None:
    receiver, prompts = Receiver(), []

    def say(prompt: str) -> str:
        prompts.append(prompt)
        return "In 1920."

    instrument(receiver)
    try:
        laboratory = Laboratory(
            Experiments(replay=replay_of(engine("d1", "d2", say=say, streaming=streaming)))
        )
        assert asyncio.run(laboratory.replay(QUESTION, HANDED)) == "In 1920."
    finally:
        uninstrument()
    assert all(one.text in prompts[-1] for one in HANDED)
    assert QUESTION in prompts[-1]
    assert PARIS not in prompts[-1]
    assert receiver.records == []


def test_what_cannot_synthesize_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="that can synthesize, not str"):
        replay_of("an engine")  # type: ignore[arg-type]
