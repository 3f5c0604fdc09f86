"""What is said, held against what was said before, in `tests/cli/outputs`; `OUTPUTS=write` keeps it anew."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parents[1] / "cli" / "outputs"
CHANCE = (
    (r"20(?!25-(09|10))\d\d-\d\d-\d\d \d\d:\d\d(:\d\d)?", "<now>"),
    (r"/\S*/outputs\d+/", ""),
    (r"\S+, process \d+", "<process>"),
    (r"genai-prices [\d.]+", "genai-prices"),
    (r"steelyard \d\S*, Python [\d.]+", "steelyard"),
    (r"note .* may trace beside Steelyard.*", ""),
    (r"\d+ (s|min) ago", "<n> s ago"),
    (r"(in|requests,) [\d.]+ s\b", r"\1 <n> s"),
    (r"(\d\.\d{10})\d+", r"\1"),
)
"""What differs from one time to the next, or from one processor to another."""


def check(name: str, said: str) -> None:
    kept = KEPT / f"{name}.txt"
    for pattern, shown in CHANCE:
        said = re.sub(pattern, shown, said)
    said = "".join(f"{line.rstrip()}\n" for line in said.splitlines() if line.strip())
    if os.environ.get("OUTPUTS") == "write":
        kept.write_text(said, encoding="utf-8")
    assert said == kept.read_text(encoding="utf-8")


UNSAID = {"alarm", "source", "id", "messages"}
"""What is chance, or said once already."""


def rounded(value: Any) -> Any:
    """The value with its floats to four digits, and times to seconds."""
    if isinstance(value, dict):
        return {str(name): rounded(one) for name, one in value.items() if name not in UNSAID}
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    if isinstance(value, float):
        return round(value) if value > 1e9 else float(f"{value:.4g}")
    return value
