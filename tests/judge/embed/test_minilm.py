"""The MiniLM embedder, with the real model from the installed packages."""

from __future__ import annotations

import asyncio
import math

import pytest

from steelyard.errors import ConfigurationError
from steelyard.judge import MiniLMEmbedder, _minilm
from steelyard.metrics import AnswerSimilarity
from steelyard.record import Record
from steelyard.testing import ScriptedJudge

pytest.importorskip("onnxruntime", reason="the extra minilm is not installed")


def embed(*texts: str, batch: int = 32) -> list[list[float]]:
    vectors, usage = asyncio.run(MiniLMEmbedder(batch=batch).embed(texts))
    assert usage.requests == 1
    return [list(vector) for vector in vectors]


def dot(one: list[float], other: list[float]) -> float:
    return math.fsum(x * y for x, y in zip(one, other, strict=True))


def test_meaning_counts_more_than_words() -> None:
    physician, doctor, bank = embed(
        "The physician examined her patient.",
        "A doctor looked at the sick woman.",
        "The bank raised its rates.",
    )
    assert len(physician) == 384
    assert dot(physician, physician) == pytest.approx(1)
    assert dot(physician, doctor) > 0.6 > 0.2 > dot(physician, bank)


def test_batches_and_padding_do_not_change_a_vector() -> None:
    texts = ["Short.", "A sentence of middling length about a bridge.", "word " * 900, ""]
    together, one_by_one = embed(*texts), embed(*texts, batch=1)
    for left, right in zip(together, one_by_one, strict=True):
        assert dot(left, right) == pytest.approx(1, abs=0.02)
        assert all(map(math.isfinite, left))


def test_it_serves_a_metric() -> None:
    def nobody(*_: object) -> None:
        raise AssertionError("similarity asks no judge")

    record = Record(answer="The doctor was late.", reference="The physician did not arrive on time.")
    score = asyncio.run(
        AnswerSimilarity().score(record, judge=ScriptedJudge(nobody), embedder=MiniLMEmbedder())
    )
    assert score.value is not None
    assert score.value > 0.5


def test_a_changed_model_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_minilm, "_SHA256", "0" * 64)
    _minilm._load.cache_clear()
    with pytest.raises(ConfigurationError, match="reinstall"):
        embed("anything")


def test_numbers_below_one_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="threads=0"):
        MiniLMEmbedder(threads=0)
