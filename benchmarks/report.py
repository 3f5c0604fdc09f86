"""How long a report over many evaluations takes: makes a results file, and reports on it.

python benchmarks/report.py --evaluations 100000 --folder .bench
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

from results_file import write

from steelyard.report import report


def main() -> None:
    """Make, report, and say what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluations", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, default=Path(".bench"))
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    path = given.folder / f"report-{given.evaluations}.db"
    if not path.exists():
        write(path, given.evaluations)
    page = given.folder / "report.html"
    started, worked = time.perf_counter(), time.process_time()
    report(path, by="version").write_html(page)
    took, cpu = time.perf_counter() - started, time.process_time() - worked
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size = page.stat().st_size / 1e6
    print(
        f"{given.evaluations:,} evaluations: {took:.2f} s ({cpu:.2f} s CPU), {memory:.0f} MB, {size:.2f} MB"
    )


if __name__ == "__main__":
    main()
