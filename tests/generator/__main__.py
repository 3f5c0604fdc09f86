"""`python -m tests.generator --n 500`: run random applications and print what was recorded of them."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from generator.bed import NAMES, Bed
from generator.shrinking import shrink
from generator.telling import counts, table, told


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.generator", description=__doc__)
    parser.add_argument("--n", type=int, default=500, help="how many applications")
    parser.add_argument("--framework", default="langchain", choices=NAMES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--heldout", action="store_true", help="with the templates kept for evaluation")
    parser.add_argument(
        "--shrink", type=int, nargs="?", const=5, default=0, help="show so many failures, small"
    )
    parser.add_argument("--of", nargs="*", default=[], help="show only failures of these outcomes")
    parser.add_argument("--json", action="store_true", help="print the counts alone, as JSON")
    options = parser.parse_args()
    bed = Bed(options.framework, heldout=options.heldout)
    began = time.perf_counter()
    judgements = list(bed.judgements(options.n, options.seed))
    if options.json:
        made = counts(verdict for judgement in judgements for verdict in judgement.verdicts)
        say(json.dumps({**made, "broken": len(bed.broken)}))
        return
    took = time.perf_counter() - began
    say(table(judgements))
    speed = f"{took:.1f} s, {options.n / took:.0f} a second"
    say(f"\n{options.n} applications in {speed}, {len(bed.broken)} broken")
    for line in bed.broken[:10]:
        say(f"broken {line[:2000]}")
    failed = [each for each in judgements if each.failures() and each.failures() >= set(options.of)]
    for judgement in failed[: options.shrink]:
        say("\n" + "-" * 100)
        for line in told(shrink(judgement, bed.axes, bed.run)):
            say(line)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
