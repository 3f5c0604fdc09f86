"""What turns of a megabyte keep alive while a judge does not answer, beside `max_queue_bytes`.

python benchmarks/kept_bytes.py

Each kind of record is submitted 200 times to a Monitor of its own. Memory is counted by `tracemalloc` after
every turn, so that what is being judged counts too, which the bound does not.
"""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Callable

from steelyard import Context, Monitor, Record
from steelyard.metrics import Faithfulness
from steelyard.questions import Reply, Request
from steelyard.testing import MemorySink, ScriptedJudge

MEGABYTE = 1_000_000
BOUND = 64 * 1024 * 1024
TURNS = 200


class Silent(ScriptedJudge):
    """Never answers."""

    async def answer(self, request: Request) -> Reply:
        """Wait for ever."""
        await asyncio.sleep(3600)
        raise AssertionError


def text(turn: int, size: int = MEGABYTE) -> str:
    """Text that no two turns share."""
    return f"{turn:08d}" * (size // 8)


def passages(turn: int) -> tuple[Context, ...]:
    """A megabyte in ten passages."""
    return tuple(Context(text=f"{text(turn, MEGABYTE // 10)}{place}") for place in range(10))


SHORT = (Context(text="a"),)
KINDS: dict[str, Callable[[int], Record]] = {
    "answer": lambda turn: Record(question="q", answer=text(turn), contexts=SHORT),
    "answer of emoji": lambda turn: Record(
        question="q", answer="\N{GRINNING FACE}" * (MEGABYTE // 4) + str(turn), contexts=SHORT
    ),
    "reference": lambda turn: Record(question="q", answer="a", contexts=SHORT, reference=text(turn)),
    "contexts": lambda turn: Record(question="q", answer="a", contexts=passages(turn)),
    "retrieved": lambda turn: Record(question="q", answer="a", contexts=SHORT, retrieved=passages(turn)),
    "one note": lambda turn: Record(question="q", answer="a", contexts=SHORT, notes=(text(turn),)),
    "15,000 tags": lambda turn: Record(
        question="q", answer="a", contexts=SHORT, tags=tuple(f"tag{place}-{turn}" for place in range(15_000))
    ),
    "nested metadata": lambda turn: Record(
        question="q",
        answer="a",
        contexts=SHORT,
        metadata={"rows": [{"cell": f"{text(turn, 1000)}{place}"} for place in range(1000)]},
    ),
}


def kept(make: Callable[[int], Record]) -> tuple[int, int]:
    """The most bytes that were alive, and how many turns were refused."""
    monitor = Monitor(
        metrics=[Faithfulness()],
        judge=Silent(lambda question, request: None),
        sinks=[MemorySink()],
        max_queue_bytes=BOUND,
    )
    tracemalloc.start()
    try:
        most = 0
        for turn in range(TURNS):
            monitor.submit(make(turn))
            most = max(most, tracemalloc.get_traced_memory()[0])
        return most, sum(monitor.stats().skipped.values())
    finally:
        tracemalloc.stop()
        monitor.close(timeout=0.1)


def main() -> None:
    """Print a line for each kind of record."""
    for name, make in KINDS.items():
        most, refused = kept(make)
        share = most / BOUND
        print(f"{name:<16} {most / MEGABYTE:6.1f} MB, {share:.2f} x the bound; {refused} of {TURNS} refused")


if __name__ == "__main__":
    main()
