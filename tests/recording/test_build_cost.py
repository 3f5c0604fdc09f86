"""What a Record costs: little more than reading its passages, and nothing for a turn that is not picked."""

from __future__ import annotations

import cProfile
import gc
import pstats
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from recording.asking import from_nowhere, from_shelf
from steelyard import Monitor
from steelyard.record import Record
from steelyard.recording import Draft
from steelyard.recording.building._templates import TEMPLATES
from steelyard.recording.provenance import find_passages

TEMPLATE = (
    "You answer from the context alone.\nIf it is not there, say so.\n\nContext:\n{context}\n\n"
    "Question: {question}\nAnswer:"
)
PASSAGES, CHARACTERS, BLOCK, ROUNDS = 5, 1_000, 50, 8
_rng = random.Random(7)
_WORDS = ["".join(_rng.choices("abcdefghiklmnoprstu", k=_rng.randrange(3, 10))) for _ in range(3_000)]


def words(characters: int) -> str:
    return " ".join(_rng.choices(_WORDS, k=characters // 4))[:characters]


def counted(texts: Sequence[str]) -> list[Counter[str]]:
    """A fixed amount of Python's own work on the passages."""
    return [Counter(text.casefold().split()) for text in texts]


def milliseconds(block: Sequence[Callable[[], Any]]) -> float:
    gc.collect()
    start = time.thread_time()
    for one in block:
        one()
    return (time.thread_time() - start) / len(block) * 1e3


def drafts(source: str) -> tuple[list[Callable[[], Any]], list[Callable[[], Any]]]:
    """What builds some turns' Records, and counts the words of their passages."""
    builds: list[Callable[[], Any]] = []
    work: list[Callable[[], Any]] = []
    for _ in range(BLOCK):
        passages = [words(CHARACTERS) for _ in range(PASSAGES)]
        question, reply = f"When was the {words(20)} built?", f"{words(60)} {passages[2][:80]}"
        if source == "retriever":
            draft = from_shelf(question, passages, TEMPLATE, reply)
        else:
            prompt = TEMPLATE.replace("{context}", "\n\n".join(passages)).replace("{question}", question)
            draft = from_nowhere(question, prompt, reply, build=False)
        builds.append(draft.build)
        work.append(partial(counted, passages))
    return builds, work


@pytest.mark.slow
@pytest.mark.parametrize(("source", "most"), [("retriever", 12), ("unseen", 20)])
def test_a_record_costs_a_few_times_what_counting_its_words_does(source: str, most: int) -> None:
    """Learning included; 7.5 and 12 times were measured on a quiet core."""
    found, units = [], []
    for _ in range(ROUNDS):
        builds, work = drafts(source)
        # In turns, so that a busy machine slows both.
        found.append(milliseconds(builds))
        units.append(milliseconds(work))
    assert min(found) < most * min(units), (found, units)


@pytest.mark.parametrize("source", ["retriever", "unseen"])
def test_a_record_is_made_in_so_many_calls(source: str) -> None:
    """As the above, in a figure that no busy machine changes: each rule that is added costs a few calls."""
    builds, _ = drafts(source)
    for build in builds[:10]:
        build()
    profile = cProfile.Profile()
    profile.enable()
    for build in builds[10:]:
        build()
    profile.disable()
    calls = pstats.Stats(profile).total_calls / len(builds[10:])  # type: ignore[attr-defined]
    assert calls < 3_000, calls


def test_a_turn_that_is_not_picked_is_neither_built_nor_learnt_from() -> None:
    TEMPLATES.forget()
    built = []
    draft = from_nowhere(
        "When?", "Rules.\nContext:\nThe ferry leaves at noon.\nQuestion: When?", "Noon.", build=False
    )

    class Watched:
        id, trace, size = draft.id, draft.trace, draft.size

        def build(self) -> Record | None:
            built.append(draft)
            return None

    watched: Draft = Watched()
    monitor = Monitor(metrics=[], sinks=[], sample_rate=0.0)
    monitor.submit(watched)
    monitor.flush(30)
    assert monitor.stats().skipped["sampled_out"] == 1
    monitor.close()
    assert not built and not TEMPLATES._templates


@pytest.mark.parametrize(("length", "sizes"), [(300, (25, 100)), (2, (500, 2000))])
def test_time_grows_with_the_length_not_with_its_square(length: int, sizes: tuple[int, int]) -> None:
    def seconds(size: int) -> float:
        rng = random.Random(size)
        texts = [" ".join(str(rng.randrange(9000)) for _ in range(length)) for _ in range(size)]
        prompt = repr(texts[::2]) * 4
        taken = []
        for _ in range(3):
            start = time.thread_time()
            find_passages(texts, [prompt])
            taken.append(time.thread_time() - start)
        return min(taken)

    one, four = map(seconds, sizes)
    assert four < 10 * one + 0.02
