"""What it takes to have Steelyard around: import time, and distributions of a core install.

    python benchmarks/footprint.py [--install]

With `--install` the core is installed into a fresh environment, which takes a minute.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
_IMPORT = "import time; t = time.perf_counter(); import {name}; print(time.perf_counter() - t)"
_HEAVY = (
    "import sys, steelyard; "
    "heavy = {'openai', 'aiohttp', 'numpy', 'langchain_core', 'llama_index', 'opentelemetry.sdk'}; "
    "print(sorted(heavy & set(sys.modules)))"
)


def import_seconds(name: str, *, runs: int = 15) -> float:
    """Median seconds of an import in a fresh interpreter, compiled files warm."""
    command = [sys.executable, "-c", _IMPORT.format(name=name)]
    found = [
        float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(runs)
    ]
    return statistics.median(found[1:])


def distributions() -> list[str]:
    """Names of what a core install brings, pip and setuptools aside."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", str(ROOT)], check=True)
        listed = subprocess.run(
            [str(python), "-m", "pip", "list", "--format", "freeze"],
            check=True,
            capture_output=True,
            text=True,
        )
    names = [line.split("==")[0].split(" @")[0] for line in listed.stdout.splitlines()]
    return [name for name in names if name not in ("pip", "setuptools")]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--install", action="store_true")
    options = parser.parse_args()
    ours, plain = import_seconds("steelyard"), import_seconds("json")
    print(f"import steelyard: {ours * 1000:.1f} ms (goal 150), {ours / plain:.1f} x import json")
    heavy = subprocess.run([sys.executable, "-c", _HEAVY], check=True, capture_output=True, text=True).stdout
    print(f"heavy modules it loads: {heavy.strip()}")
    if options.install:
        names = distributions()
        print(f"core install: {len(names)} distributions (goal 45): {', '.join(names)}")


if __name__ == "__main__":
    main()
