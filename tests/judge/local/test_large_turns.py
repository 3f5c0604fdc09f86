"""A large turn stands back for small ones, and what is only shown is not worth much time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator

import pytest

from steelyard.judge import LocalJudge, locate_all
from steelyard.judge.local._cpu_throttle import CpuThrottle
from steelyard.metrics import Faithfulness
from steelyard.record import Context, Record
from steelyard.text import affirms, asserted, evades, sentences, statements, states

LARGE = 100_000
KINDS = {
    "Chinese numerals": "三",
    "numerals that count": "三名",
    "one-letter sentences": "A. ",
    "bullets": "- x\n",
    "Chinese": "塔建于一九二零年。",
    "hedges": "I do not know, but it is 5. ",
    "one endless hedge": "the context does not say, but ",
    "emoji": "👩\u200d🚀",
    "marks": "e\u0301",
    "Hebrew": "שלום עולם. ",
    "digits": "5",
    "grouped digits": "12 345 ",
    "brackets": "((",
    "quotes": "\"'",
    "commas": "a, ",
    "table": "| a | 1 |\n",
    "Korean": "가나다. ",
    "Thai": "ไทย ",
    "Devanagari": "क्षि ",
    "replies": "Yes. ",
    "one reply": "yes ",
    "apostrophes": "don't ",
    "dashes": "- ",
    "blank lines": "\n \n",
}


def test_small_work_goes_before_large() -> None:
    done = {"large": 0, "small": 0}
    under_way = asyncio.Event()

    def steps(name: str, count: int) -> Generator[None, None, None]:
        for _ in range(count):
            end = time.perf_counter() + 0.001
            while time.perf_counter() < end:
                pass
            done[name] += 1
            if done[name] == 400:
                under_way.set()
            yield

    async def main() -> int:
        throttle = CpuThrottle(None)
        large = asyncio.create_task(throttle.drive(steps("large", 10_000)))
        await under_way.wait()
        before = done["large"]
        await throttle.drive(steps("small", 40))
        after = done["large"]
        large.cancel()
        return after - before

    # Taking turns, it would be forty.
    assert asyncio.run(main()) < 30


@pytest.mark.parametrize("piece", KINDS.values(), ids=KINDS.keys())
def test_a_text_of_any_kind_is_walked_in_linear_time(piece: str) -> None:
    def seconds(size: int) -> float:
        text = (piece * size)[:size] + " x"
        begun = time.thread_time()
        for walk in (sentences, statements, states, evades, asserted, affirms):
            walk(text)
        locate_all([text[:50], "Nothing of it."], text)
        return time.thread_time() - begun

    seconds(4_000)
    short, long = (min(seconds(size) for _ in range(2)) for size in (LARGE // 4, LARGE))
    assert long < 8 * short + 0.05


def test_the_places_of_many_claims_cost_no_more_than_a_bound() -> None:
    text = "The tower is high. " * 5_000
    begun = time.thread_time()
    found = locate_all([f"It is said that tower {n} is high." for n in range(3_000)], text)
    assert time.thread_time() - begun < 2
    assert found == [None] * 3_000
    assert locate_all(["The tower is high."] * 3, text) == [(0, 18), (19, 37), (38, 56)]


def test_a_page_of_numerals_is_judged_in_little_time() -> None:
    record = Record(question="How many?", contexts=(Context(text="There are three."),), answer="三" * LARGE)
    begun = time.process_time()
    score = asyncio.run(Faithfulness().score(record, judge=LocalJudge()))
    assert score.value is not None and score.value < 0.5
    assert time.process_time() - begun < 15
