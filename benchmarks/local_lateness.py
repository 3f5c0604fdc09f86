"""How late a host's 1 ms timer gets while the local judge works in a background thread of the same process.

    python benchmarks/local_lateness.py [--rate 5] [--seconds 10] [--share 0.2]

The same timer runs three times: alone, next to a thread that only computes (what a judge without pauses would
be), and next to a `LocalJudge` that judges `--rate` records a second. Each record has five contexts of 160
words that the judge has not seen before; it answers the questions of faithfulness, context utilization and
answer relevancy about them.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import threading
import time
from collections.abc import Callable

from steelyard.judge import LocalJudge
from steelyard.questions import Question, Relevant, Request, Supported, Useful, View
from steelyard.record import Context

_WORDS = """
the harbour master let a ferry leave because wind had reached ninety kilometres around three hundred
passengers spent night in school company offered them hot meals and paid for taxis next morning bridge was
opened after six years of building it carries two lanes of traffic over river engineer Martha Keene had
designed eleven bridges before steel came from Sheffield storm damaged northern pier green tea is made
from leaves that were not oxidised
"""
WORDS = _WORDS.split()
_NUMBERS = itertools.count()


def request(dice: random.Random) -> Request:
    """Five new contexts and the questions that a default suite asks about an answer of three sentences."""
    number = next(_NUMBERS)

    def sentence(length: int) -> str:
        return " ".join(dice.choice(WORDS) for _ in range(length)).capitalize() + f" {number}."

    contexts = tuple(Context(text=" ".join(sentence(16) for _ in range(10))) for _ in range(5))
    claims = [sentence(12) for _ in range(3)]
    questions: list[Question] = [
        *(Supported(claim=claim) for claim in claims),
        *(Useful(context=place) for place in range(5)),
        *(Relevant(text=claim, of="answer") for claim in claims),
    ]
    view = View(question=f"{sentence(8)[:-1]}?", contexts=contexts, answer=" ".join(claims))
    return Request(view=view, questions={f"q{place}": question for place, question in enumerate(questions)})


def timer(seconds: float) -> list[float]:
    """Lateness of a 1 ms timer in milliseconds, sorted."""
    late: list[float] = []
    end = time.perf_counter() + seconds
    while (now := time.perf_counter()) < end:
        time.sleep(0.001)
        late.append((time.perf_counter() - now) * 1000 - 1)
    return sorted(late)


def beside(work: Callable[[threading.Event], None] | None, seconds: float) -> list[float]:
    """The timer in this thread, the work in another."""
    stop = threading.Event()
    thread = threading.Thread(target=work, args=(stop,)) if work else None
    if thread:
        thread.start()
        time.sleep(0.5)
    late = timer(seconds)
    stop.set()
    if thread:
        thread.join()
    return late


def compute(stop: threading.Event) -> None:
    """Work that never lets go of the interpreter."""
    while not stop.is_set():
        sum(range(10_000))


class Judging:
    """A thread with a loop of its own, as the Monitor has one."""

    def __init__(self, rate: float, share: float, seconds: float) -> None:
        self._every = 1 / rate
        dice = random.Random(7)
        self._requests = [request(dice) for _ in range(int(rate * (seconds + 2)) + 1)]
        self._judge = LocalJudge(max_share=share)
        self._judge.warm()
        self.taken: list[float] = []

    def __call__(self, stop: threading.Event) -> None:
        asyncio.run(self._run(stop))

    async def _run(self, stop: threading.Event) -> None:
        for asked in self._requests:
            if stop.is_set():
                return
            due = time.perf_counter() + self._every
            begun = time.perf_counter()
            await self._judge.answer(asked)
            self.taken.append(time.perf_counter() - begun)
            await asyncio.sleep(max(0.0, due - time.perf_counter()))


def report(name: str, late: list[float]) -> None:
    """One line of percentiles."""
    p50, p99, p999 = (late[int(len(late) * q)] for q in (0.5, 0.99, 0.999))
    print(f"{name:24} p50 {p50:6.2f}  p99 {p99:6.2f}  p99.9 {p999:6.2f}  worst {late[-1]:6.2f} ms late")


def main() -> None:
    """Measure all three in one run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rate", type=float, default=5.0, help="records a second")
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each measurement")
    parser.add_argument("--share", type=float, default=0.2, help="the judge's max_share")
    options = parser.parse_args()
    judging = Judging(options.rate, options.share, options.seconds)
    report("timer alone", beside(None, options.seconds))
    report("beside computing", beside(compute, options.seconds))
    report("beside LocalJudge", beside(judging, options.seconds))
    taken = sorted(judging.taken)
    print(
        f"{len(taken)} records judged, {len(taken) / (options.seconds + 0.5):.1f} a second,"
        f" half of them within {taken[len(taken) // 2] * 1000:.0f} ms (wanted: p99 under 3 ms)"
    )


if __name__ == "__main__":
    main()
