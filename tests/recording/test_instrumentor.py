"""The switch of recording under `opentelemetry-instrument`."""

from __future__ import annotations

import logging
from importlib.metadata import entry_points

import pytest

from steelyard.recording import KNOWN_WORDS, SWITCH, BaseInstrumentor, is_switched_on


@pytest.mark.parametrize(
    ("value", "is_on"),
    [("langchain", True), (" 1 , LangChain", True), ("1", False), ("0", False), ("", False)],
)
def test_a_word_asks_for_its_recorder(value: str, is_on: bool, caplog: pytest.LogCaptureFixture) -> None:
    assert is_switched_on({"langchain"}, {SWITCH: value}) is is_on
    assert caplog.messages == []


def test_a_word_that_means_nothing_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        assert not is_switched_on({"langchain"}, {SWITCH: "langchian"})
    (line,) = [entry for entry in caplog.records if "langchian" in entry.getMessage()]
    assert line.levelno == logging.ERROR
    assert all(word in line.getMessage() for word in (SWITCH, "1", "opentelemetry", "langchain"))


def test_a_list_may_hold_a_word_that_means_nothing(caplog: pytest.LogCaptureFixture) -> None:
    assert is_switched_on({"langchain"}, {SWITCH: "langchain,everythink"})
    assert ["'everythink'" in line for line in caplog.messages] == [True]


def test_every_instrumentor_is_asked_for_by_known_words() -> None:
    made = [
        each.load()
        for each in entry_points(group="opentelemetry_instrumentor")
        if each.name.startswith("steelyard")
    ]
    assert len(made) >= 2
    for instrumentor in made:
        assert issubclass(instrumentor, BaseInstrumentor)
        assert set(instrumentor.words) <= KNOWN_WORDS
