"""The static embedder."""

from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.judge import StaticEmbedder
from steelyard.questions import Embedder

EMBEDDER = StaticEmbedder()


def embed(*texts: str) -> list[list[float]]:
    vectors, usage = asyncio.run(EMBEDDER.embed(texts))
    assert usage.requests == 1
    return [list(vector) for vector in vectors]


def cosine(one: list[float], other: list[float]) -> float:
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    return dot / (math.hypot(*one) * math.hypot(*other))


def test_it_is_an_embedder_of_256_dimensions() -> None:
    assert isinstance(EMBEDDER, Embedder)
    assert EMBEDDER.name == "static:wordllama-l2-256"
    assert [len(vector) for vector in embed("one", "two words", "")] == [256, 256, 256]


def test_similar_questions_are_nearer_than_others() -> None:
    asked, same, other = embed(
        "When was Einstein born?", "What is Albert Einstein's date of birth?", "How do I cook green tea?"
    )
    assert cosine(asked, same) > cosine(asked, other) + 0.3


def test_a_text_longer_than_one_slice_has_the_mean_of_all_its_tokens() -> None:
    short, long = embed("the ferry sailed to the harbour", "the ferry sailed to the harbour " * 200)
    assert long == pytest.approx(short, abs=0.02)


def test_an_empty_text_is_zero() -> None:
    (vector,) = embed("")
    assert set(vector) == {0.0}


@given(st.text(max_size=100))
def test_any_text_has_a_finite_vector_and_always_the_same(text: str) -> None:
    first, second = embed(text, text)
    assert first == second
    assert all(map(math.isfinite, first))


def test_half_a_surrogate_pair_is_no_failure() -> None:
    assert len(embed("\ud800 broken")[0]) == 256
