"""Score the samples with the eight metrics that Ragas runs, and print what it cost as one line of JSON.

Start the stub server of `--material` first (`run.py` does). Process CPU is measured beside a bare OpenAI
client that sends the very same requests in the same process, so that the ratio holds on any machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steelyard.engine import evaluate_each
from steelyard.judge import ChatJudge, DecisionsJudge, OpenAIEmbedder
from steelyard.metrics import (
    AnswerCorrectness,
    AnswerRelevancy,
    ContextPrecision,
    ContextRecall,
    ContextRelevance,
    ContextUtilization,
    Faithfulness,
    Metric,
    ResponseGroundedness,
)
from steelyard.questions import Judge
from steelyard.record import Context, Record
from steelyard.scores import Evaluation

EIGHT: tuple[type[Metric], ...] = (
    Faithfulness,
    AnswerRelevancy,
    ContextPrecision,
    ContextUtilization,
    ContextRecall,
    ContextRelevance,
    ResponseGroundedness,
    AnswerCorrectness,
)


def call(base: str, path: str, *, post: bool = False) -> Any:
    """One plain request to the stub's own pages."""
    request = urllib.request.Request(base + path, method="POST" if post else "GET")
    with urllib.request.urlopen(request) as response:
        return json.loads(response.read())


def load(path: Path) -> list[Record]:
    """The samples as Records."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [
        Record(
            id=str(row["id"]),
            question=row["question"],
            answer=row["answer"],
            reference=row["reference"],
            contexts=tuple(Context(text=text) for text in row["contexts"]),
        )
        for row in rows
    ]


async def score(
    records: Sequence[Record], judge: Judge, embedder: OpenAIEmbedder, fuse: Any
) -> list[Evaluation]:
    """Score all records, 16 in flight."""
    metrics = [metric() for metric in EIGHT]
    stream = evaluate_each(
        records, metrics=metrics, judge=judge, embedder=embedder, fuse=fuse, concurrency=16
    )
    found = [evaluation async for evaluation in stream]
    await judge.aclose()
    await embedder.aclose()
    return found


async def bare(requests: Sequence[tuple[str, Any]], base_url: str) -> None:
    """The same requests through a bare client, 16 in flight."""
    import openai

    client = openai.AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0)
    slots = asyncio.Semaphore(16)

    async def send(path: str, body: dict[str, Any]) -> None:
        async with slots:
            if path.endswith("/embeddings"):
                await client.embeddings.create(**body)
            elif path.endswith("/decisions"):
                await client.decisions.create(**body)
            else:
                await client.chat.completions.create(**body)

    await asyncio.gather(*(send(path, body) for path, body in requests))
    await client.close()


def cpu_of(work: Any) -> tuple[float, float, Any]:
    """Process CPU seconds, wall seconds and result of a coroutine."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = asyncio.run(work)
    return time.process_time() - cpu, time.perf_counter() - wall, result


def main() -> None:
    """Measure once, print once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--base", default="http://127.0.0.1:8099")
    parser.add_argument("--judge", choices=("chat", "decisions"), default="chat")
    parser.add_argument("--fuse", choices=("view", "record", "off"), default="view")
    parser.add_argument("--log", type=Path, help="the stub's request log with bodies, to replay")
    options = parser.parse_args()
    records, base_url = load(options.data), options.base + "/v1"
    chat = ChatJudge("stub", base_url=base_url, concurrency=16)
    judge: Judge = chat
    if options.judge == "decisions":
        judge = DecisionsJudge("gpt-6-luna", base_url=base_url, extractor=chat)
    embedder = OpenAIEmbedder("stub", base_url=base_url)
    asyncio.run(score(records[:2], judge, embedder, options.fuse))  # imports, first connections
    call(options.base, "/_reset", post=True)
    if options.log:
        options.log.write_text("")
    cpu, wall, found = cpu_of(score(records, judge, embedder, options.fuse))
    stats = call(options.base, "/_stats")
    bare_cpu = None
    if options.log:
        lines = [json.loads(line) for line in options.log.read_text().splitlines()]
        requests = [(line["path"], line["request"]) for line in lines]
        asyncio.run(bare(requests[:4], base_url))
        bare_cpu, _, _ = cpu_of(bare(requests, base_url))
    count = len(records)
    values = {metric: [e[metric].value for e in found] for metric in (s.metric for s in found[0].scores)}
    print(
        json.dumps(
            {
                "lib": f"steelyard {options.judge} {options.fuse}",
                "requests_per_sample": stats["requests"] / count,
                "prompt_tokens_per_sample": stats["prompt_tokens"] / count,
                "completion_tokens_per_sample": stats["completion_tokens"] / count,
                "cpu_ms_per_sample": cpu / count * 1000,
                "cpu_x_bare": cpu / bare_cpu if bare_cpu else None,
                "wall_s": wall,
                "tcp_connections": stats["connections"],
                "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
                "scored": {metric: sum(v is not None for v in found) for metric, found in values.items()},
            }
        )
    )


if __name__ == "__main__":
    main()
