"""Reading a text takes time in proportion to its length, whatever stands in it: it holds the interpreter."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from steelyard.judge import LocalJudge
from steelyard.questions import Relevant, Request, Supported, View
from steelyard.record import Context
from steelyard.text import sentences, statements

PIECES = [
    *("\n", "\n \n", " ", "\t\n", "* ", "\n* ", "#", "-", "<context>", "the ", "a.b.", "A.", "p.m. ", "3. "),
    *("1.", "1,", "1:2", "1/", "\u200b1", "x'", "don't ", "\"'", "。", "「", "we do not ", "Mio. ", "Ab cd "),
]


def judged(text: str) -> None:
    view = View(question="Where is it?", contexts=(Context(text=text),))
    asked = {"q1": Supported(claim="Paris is 5 km away."), "q2": Relevant(text=text[:2000])}
    asyncio.run(LocalJudge().answer(Request(view=view, questions=asked)))


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize(("read", "size"), [(sentences, 10_000), (statements, 10_000), (judged, 5_000)])
def test_time_grows_with_the_length_only(read: Callable[[str], object], size: int, piece: str) -> None:
    def seconds(times: int) -> float:
        text = f"{piece * (times * size // len(piece))}x"
        started = time.process_time()
        read(text)
        return time.process_time() - started

    read(piece)
    small, double, large = (min(seconds(times) for _ in range(2)) for times in (1, 2, 4))
    assert double < 4 * small + 0.03
    assert large < 9 * small + 0.06
