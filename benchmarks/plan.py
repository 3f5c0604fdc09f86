"""What `steelyard score --plan` foresees, beside what a server then counts, in one run.

python benchmarks/plan.py --data records.jsonl --base-url http://127.0.0.1:8000/v1 --model m --metrics all
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import islice

from steelyard.backfill import read_records
from steelyard.cli._judges import JudgeChoice, suite_of
from steelyard.cli._options import open_input
from steelyard.engine import evaluate
from steelyard.questions import Fuse, Judge, Reply, Request
from steelyard.record import Record
from steelyard.scores import Usage

FUSES: tuple[Fuse, ...] = ("view", "record", "off")


class Counted:
    """A judge, with what its server counted."""

    def __init__(self, judge: Judge) -> None:
        self.name = judge.name
        self.prompt_version = judge.prompt_version
        self.capabilities = judge.capabilities
        self.aclose = judge.aclose
        self.usage = Usage()
        self._judge = judge

    async def answer(self, request: Request) -> Reply:
        """Ask, and add up."""
        reply = await self._judge.answer(request)
        self.usage += reply.usage
        return reply


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", required=True, help="records, one a line")
    parser.add_argument("--base-url", required=True, help="the judge's server")
    parser.add_argument("--model", default="m")
    parser.add_argument("--judge", default="openai", choices=["openai", "decisions"])
    parser.add_argument("--metrics", default="", help="names, or all; the default suite without")
    parser.add_argument("--records", type=int, default=50)
    given = parser.parse_args()
    with open_input(given.data) as lines:
        records = list(islice(read_records(lines, bad=lambda *_: None), given.records))
    choice = JudgeChoice(kind=given.judge, model=given.model, base_url=given.base_url)
    names = tuple(filter(None, given.metrics.split(",")))
    print(f"{len(records)} records, {choice.kind} judge; per record: planned / counted (ratio)")
    for fuse in FUSES:
        paper = choice.dry_run()
        run(records, paper, names, fuse)
        planned = sum(paper.usage.values(), Usage())
        real = Counted(choice.build())
        run(records, real, names, fuse)
        cells = [
            compared(title, getattr(planned, part), getattr(real.usage, part), len(records))
            for title, part in (
                ("requests", "requests"),
                ("tokens in", "prompt_tokens"),
                ("tokens out", "completion_tokens"),
            )
        ]
        print(f"{fuse:<7}", "   ".join(cells))


def run(records: Sequence[Record], judge: Judge, names: tuple[str, ...], fuse: Fuse) -> None:
    """Score them all."""
    evaluate(records, metrics=suite_of(names, judge), judge=judge, fuse=fuse, progress=False)


def compared(title: str, planned: int, counted: int, records: int) -> str:
    """One cell."""
    ratio = f"{planned / counted:.2f}" if counted else "-"
    return f"{title} {planned / records:,.1f} / {counted / records:,.1f} ({ratio})"


if __name__ == "__main__":
    main()
