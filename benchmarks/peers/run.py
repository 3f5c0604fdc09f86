"""Ours beside ragas and deepeval: the same samples, the same stub server, one run.

    python benchmarks/peers/run.py --material PATH [--environments .peers] [--only steelyard]

PATH holds `stub_server.py`, `peer_bench.py` and `data/bench50.jsonl`. Peers get environments of their own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PORT = 8099
PEERS = {
    "ragas": ["ragas==0.4.3", "langchain-community<0.4", "instructor>=1.11"],
    "deepeval": ["deepeval==4.3.1", "openai"],
}
OURS = [("chat", "view"), ("chat", "record"), ("decisions", "view"), ("decisions", "record")]
_READING = 1
"""The connection that reads the figures is counted too."""
COLUMNS = ["requests_per_sample", "prompt_tokens_x_unique", "cpu_ms_per_sample", "wall_s", "tcp_connections"]


@contextmanager
def stub(material: Path, log: Path | None) -> Iterator[None]:
    """The stub server, answering after 50 ms, while the block runs."""
    command = [sys.executable, str(material / "stub_server.py"), "--port", str(PORT), "--latency-ms", "50"]
    if log:
        command += ["--log", str(log), "--log-bodies"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        for _ in range(100):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}/_stats").close()
                break
            except urllib.error.URLError:
                time.sleep(0.05)
        yield
    finally:
        server.terminate()
        server.wait()


def unique_tokens(path: Path) -> float:
    """Tokens of the unique material of a sample (characters / 4), on average."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    texts = [[row["question"], row["answer"], row["reference"], *row["contexts"]] for row in rows]
    return sum(len(text) for row in texts for text in row) / len(rows) / 4


def environment(folder: Path, name: str) -> Path:
    """The peer's own interpreter, installed at first use."""
    python = folder / name / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / name)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PEERS[name]], check=True)
    return python


def peer(name: str, material: Path, folder: Path, unique: float) -> dict[str, Any]:
    """Run a peer's benchmark and read its figures."""
    out = folder / f"{name}.json"
    script = [str(material / "peer_bench.py"), "--lib", name, "--port", str(PORT), "--json", str(out)]
    with stub(material, None):
        subprocess.run(
            [str(environment(folder, name)), "-W", "ignore", *script], check=True, stdout=subprocess.DEVNULL
        )
    found = json.loads(out.read_text())
    return {
        "lib": name,
        "requests_per_sample": found["requests_per_sample"],
        "prompt_tokens_x_unique": found["prompt_tokens_per_sample"] / unique,
        "cpu_ms_per_sample": found["cpu_s"] / found["samples"] * 1000,
        "wall_s": found["wall_s"],
        "tcp_connections": found["tcp_connections"] - _READING,
    }


def ours(judge: str, fuse: str, material: Path, folder: Path, unique: float) -> dict[str, Any]:
    """Run ours in this interpreter's environment."""
    log = folder / "requests.jsonl"
    command = [sys.executable, str(HERE / "ours.py"), "--judge", judge, "--fuse", fuse, "--log", str(log)]
    with stub(material, log):
        data = ["--data", str(material / "data" / "bench50.jsonl")]
        done = subprocess.run([*command, *data], check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {
        **found,
        "prompt_tokens_x_unique": found["prompt_tokens_per_sample"] / unique,
        "tcp_connections": found["tcp_connections"] - _READING,
    }


def main() -> None:
    """Run all, print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--material", type=Path, required=True)
    parser.add_argument("--environments", type=Path, default=Path(".peers"))
    parser.add_argument("--only", choices=("steelyard",))
    options = parser.parse_args()
    folder, material = options.environments.resolve(), options.material.resolve()
    folder.mkdir(exist_ok=True)
    unique = unique_tokens(material / "data" / "bench50.jsonl")
    rows = [] if options.only else [peer(name, material, folder, unique) for name in PEERS]
    rows += [ours(judge, fuse, material, folder, unique) for judge, fuse in OURS]
    print(f"{'':<28}" + "".join(f"{column:>24}" for column in COLUMNS) + f"{'cpu_x_bare':>12}")
    for row in rows:
        figures = "".join(f"{row[column]:>24.2f}" for column in COLUMNS)
        bare = row.get("cpu_x_bare")
        print(f"{row['lib']:<28}{figures}{'-' if bare is None else round(bare, 2)!s:>12}")
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
