"""A large turn stands back for small ones, and what is only shown is not worth much time."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from random import Random

import pytest

from repeated import PIECES, TELLING, repeated
from steelyard._internal.loops import CpuThrottle
from steelyard.engine._evaluate import evaluate_one
from steelyard.judge import LocalJudge
from steelyard.judge.local._material import _LONGEST, _MOST_WORDS, pieces
from steelyard.judge.overlap import locate_all
from steelyard.metrics import Faithfulness, Hallucination, default_metrics
from steelyard.questions import Relevant, Request, Supported, View, YesNo
from steelyard.record import Context, Record
from steelyard.testing import ScriptedJudge
from steelyard.text import affirms, asserted, evades, is_polar, sentences, statements, states, unhedged
from waiting import slowness

LARGE = 100_000
SLOW = pytest.mark.slow
WALKS: tuple[Callable[[str], object], ...] = (
    *(sentences, statements, states, evades, asserted, affirms, is_polar, unhedged),
)
LONGEST = 0.015
"""Seconds of its own work in which the loop gets no turn, where nothing else shares the core."""


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


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind in TELLING else SLOW) for kind in PIECES]
)
def test_a_text_of_any_kind_is_walked_in_linear_time(kind: str) -> None:
    def seconds(size: int) -> float:
        text = repeated(PIECES[kind], size) + " x"
        begun = time.thread_time()
        for walk in WALKS:
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


class Held:
    """The longest work of this thread between two turns of its loop."""

    def __init__(self) -> None:
        self.seconds = 0.0

    async def watch(self) -> None:
        while True:
            begun = time.thread_time()
            await asyncio.sleep(0)
            self.seconds = max(self.seconds, time.thread_time() - begun)


def records_of(text: str) -> dict[str, Record]:
    """Turns with a hostile text at each place, and at all of them."""
    few = (Context(text="There are three. It has 1, 2 and 5."),)
    many = tuple(Context(text=text[at : at + 8_000]) for at in range(0, len(text), 8_000))
    asked, said = "How many?", "There are three, or 1,234 of them."
    return {
        "answer": Record(question=asked, contexts=few, answer=text),
        "context": Record(question=asked, contexts=(Context(text=text),), answer=said),
        "all": Record(question=text[:2_000], contexts=many, answer=text[50:]),
    }


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        *((kind, 20_000) for kind in TELLING),
        *(pytest.param(kind, LARGE, marks=[SLOW, pytest.mark.timeout(600)]) for kind in PIECES),
    ],
)
def test_no_turn_holds_up_the_loop_that_it_is_judged_in(kind: str, size: int) -> None:
    judge = LocalJudge()
    judge.warm()

    async def longest(record: Record) -> float:
        held = Held()
        task = asyncio.create_task(held.watch())
        await asyncio.sleep(0)
        gc.disable()  # it goes through all that the whole process holds, at a moment of chance
        try:
            deadline = time.monotonic() + 20
            await evaluate_one(
                record, [*default_metrics(judge), Hallucination()], judge=judge, deadline=deadline
            )
        finally:
            gc.enable()
            task.cancel()
        return held.seconds

    places = records_of(repeated(PIECES[kind], size))
    if size < LARGE:  # each kind stands at all places at once, and alone at one of the two
        del places["answer" if TELLING.index(kind) % 2 else "context"]
    for place, record in places.items():
        found: list[float] = []
        # One of a few: other programs take the processor's caches and its clock.
        while len(found) < 5 and min(found, default=1.0) >= LONGEST:
            before = slowness()
            found.append(asyncio.run(longest(record)) / max(before, slowness()))
        assert min(found) < LONGEST, place


def test_of_an_answer_without_an_end_so_many_claims_are_judged() -> None:
    text = " ".join(f"The tower of town {number} is high." for number in range(1_000))
    record = Record(question="What?", contexts=(Context(text="The tower of town 5 is high."),), answer=text)
    judge = ScriptedJudge(lambda question, request: YesNo(value=True))
    score = asyncio.run(Faithfulness(claims="sentences").score(record, judge=judge))
    places = [one.span for one in score.verdicts]
    assert len(places) == 200 and None not in places
    # Spread over all of it, each where it stands.
    assert places[0] == (0, 28) and text[slice(*(places[-1] or (0, 0)))] == "The tower of town 995 is high."


def test_contexts_are_cut_before_the_work_where_there_are_many_claims() -> None:
    contexts = tuple(Context(text=f"The gate of town {n} is low. " * 500) for n in range(4))
    answer = " ".join(f"The tower of town {number} is high." for number in range(100))
    judge = ScriptedJudge(lambda question, request: YesNo(value=True))
    judge.capabilities = replace(judge.capabilities, max_questions=200, max_work=2_000_000)
    record = Record(question="What?", contexts=contexts, answer=answer)
    for metric, most in ((Faithfulness(claims="sentences"), 20_000), (Faithfulness(claims="whole"), 200_000)):
        score = asyncio.run(metric.score(record, judge=judge))
        shown = judge.requests[-1].view.contexts or ()
        assert score.value == 1.0
        assert (score.left_out > 0) == (most < 50_000)
        assert sum(len(one.text) for one in shown) <= most


def test_a_page_of_numerals_is_judged_in_little_time() -> None:
    record = Record(question="How many?", contexts=(Context(text="There are three."),), answer="三" * LARGE)
    begun = time.process_time()
    score = asyncio.run(Faithfulness().score(record, judge=LocalJudge()))
    assert score.value is not None and score.value < 0.5
    assert time.process_time() - begun < 15


REPEATED = [
    *("\n", "\n \n", " ", "\t\n", "* ", "\n* ", "#", "-", "<context>", "the ", "a.b.", "A.", "p.m. ", "3. "),
    *("1.", "1,", "1:2", "1/", "\u200b1", "x'", "don't ", "\"'", "。", "「", "we do not ", "Mio. ", "Ab cd "),
]


def judged(text: str) -> None:
    view = View(question="Where is it?", contexts=(Context(text=text),))
    asked = {"q1": Supported(claim="Paris is 5 km away."), "q2": Relevant(text=text[:2000])}
    asyncio.run(LocalJudge().answer(Request(view=view, questions=asked)))


@pytest.mark.parametrize("piece", REPEATED)
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


@pytest.mark.parametrize("seed", range(6))
def test_a_sentence_without_end_is_cut_between_words_and_none_is_lost(seed: int) -> None:
    draw = Random(seed)
    words = ["w" * draw.choice([1, 3, 9, [1, 40, 2_000][seed % 3]]) for _ in range(1_200)]
    text = "".join(word + draw.choice(" \t") for word in words).rstrip()
    found = list(pieces(text))
    for one in found:
        assert one.text == text[one.start : one.end] == one.text.strip()
        assert 0 < len(one.text) <= _LONGEST and len(one.text.split()) <= _MOST_WORDS
    read = [word for one in found for word in one.text.split()]
    assert read == words or max(map(len, words)) > _LONGEST and "".join(read) == "".join(words)
