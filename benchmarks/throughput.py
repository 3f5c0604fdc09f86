"""Judging through a Monitor, beside a bare loop of the OpenAI client with the same number in flight.

Needs a server that speaks OpenAI's chat completions, such as a stub with a latency of 50 ms. Every record
costs one request; both sides send the same prompts and ask for the same JSON schema.

    python benchmarks/throughput.py --base-url http://127.0.0.1:8099/v1 [--records 10000] [--in-flight 200]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI

from steelyard.judge.chat import ChatJudge
from steelyard.judge.middleware import Wrapper
from steelyard.metrics import Faithfulness
from steelyard.online import Monitor
from steelyard.questions import Reply, Request
from steelyard.record import Context, Record

CONTEXTS = tuple(Context(text="Marie Curie found polonium in 1898, in Paris. " * 20) for _ in range(5))


def record(number: int) -> Record:
    """A turn with five contexts of 900 characters and one sentence to check."""
    answer = f"Marie Curie found polonium in {1800 + number % 100}."
    return Record(id=str(number), question="Who found it?", answer=answer, contexts=CONTEXTS)


def resident() -> float:
    """MB of memory in use."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


async def bare(base_url: str, count: int, in_flight: int) -> float:
    """Requests a second of a loop that does nothing but ask."""
    client = AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0)
    slots = asyncio.Semaphore(in_flight)
    schema: Any = {
        "name": "answers",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"q1": {"type": "boolean"}},
            "required": ["q1"],
            "additionalProperties": False,
        },
    }

    async def ask(number: int) -> None:
        turn = record(number)
        text = "\n".join(context.text for context in turn.contexts)
        prompt = f"Context:\n{text}\n\nQuestions:\nq1: Is this supported: {turn.answer}"
        async with slots:
            await client.chat.completions.create(
                model="stub",
                messages=[{"role": "user", "content": prompt}],
                response_format={"type": "json_schema", "json_schema": schema},
            )

    started = time.perf_counter()
    await asyncio.gather(*map(ask, range(count)))
    await client.close()
    return count / (time.perf_counter() - started)


def monitored(base_url: str, count: int, in_flight: int) -> tuple[float, dict[str, float]]:
    """Records a second through a Monitor, and how memory went."""
    judge = Watched(
        ChatJudge("stub", base_url=base_url, api_key="none", concurrency=in_flight, reasons=False)
    )
    metrics = [Faithfulness(claims="sentences")]
    monitor = Monitor(
        metrics=metrics, judge=judge, sinks=[], concurrency=in_flight, max_queue=count, max_queue_bytes=2**40
    )
    monitor.submit(record(-1))
    monitor.flush(30)
    memory = {"before": resident()}
    started = time.perf_counter()
    for number in range(count):
        monitor.submit(record(number))
    memory["queued"] = resident()
    left = monitor.flush(600)
    seconds = time.perf_counter() - started
    memory["after"] = resident()
    stats = monitor.stats()
    monitor.close()
    print(f"left {left}   evaluated {stats.evaluated}   requests {stats.usage.requests}   peak {judge.peak}")
    return (stats.evaluated - 1) / seconds, memory


class Watched(Wrapper):
    """The judge, with a count of how many requests are under way."""

    running = peak = 0

    async def answer(self, request: Request) -> Reply:
        """Pass on, and count."""
        self.running += 1
        self.peak = max(self.peak, self.running)
        try:
            return await self.judge.answer(request)
        finally:
            self.running -= 1


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--in-flight", type=int, default=200)
    parser.add_argument("--latency", type=float, default=0.05, help="the server's, in seconds")
    options = parser.parse_args()
    count, in_flight = options.records, options.in_flight
    half = asyncio.run(bare(options.base_url, count // 2, in_flight))
    rate, memory = monitored(options.base_url, count, in_flight)
    other = asyncio.run(bare(options.base_url, count // 2, in_flight))
    floor = min((half + other) / 2, in_flight / options.latency)
    print(f"bare client  {half:7.1f} and {other:7.1f} requests a second, before and after")
    print(f"monitor      {rate:7.1f} records a second   ratio {rate / floor:.2f}")
    print("memory MB    " + "   ".join(f"{name} {value:.1f}" for name, value in memory.items()))


if __name__ == "__main__":
    main()
