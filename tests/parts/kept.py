"""What is said, held against what was said before, in `tests/cli/outputs`; `OUTPUTS=write` keeps it anew."""

from __future__ import annotations

import html
import os
import re
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parents[1] / "cli" / "outputs"
CHANCE = (
    (r"20(?!25-(09|10))\d\d-\d\d-\d\d \d\d:\d\d(:\d\d)?", "<now>"),
    (r"/\S*/outputs\d+/", ""),
    (r"\S+, process \d+", "<process>"),
    (r'"id": ?"[0-9a-f]{32}"|"prompt_version": ?"\d+"|local-lexical \(\d+\)', "<version>"),
    (r"genai-prices [\d.]+", "genai-prices"),
    (r"steelyard \d\S*, Python [\d.]+", "steelyard"),
    (r"note .* may trace beside Steelyard.*", ""),
    (r"\d+ (s|min) ago", "<n> s ago"),
    (r"\d[\d.]* a second", "<n> a second"),
    (r"(in|requests,) [\d.]+ s\b", r"\1 <n> s"),
    (r'((?:evaluated_at|reviewed_at|made_at|started_at|duration|seconds)": ?)[\d.e-]+', r"\1<n>"),
)
"""What differs from one time to the next, or from one processor to another."""


def check(name: str, said: str) -> None:
    kept = KEPT / f"{name}.txt"
    for pattern, shown in CHANCE:
        said = re.sub(pattern, shown, said)
    said = re.sub(r"\d+\.\d{9,}", lambda found: f"{float(found[0]):.7f}".rstrip("0"), said)
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


FILES = (".json", ".jsonl", ".csv", ".xml", ".md", ".html")


def read(path: Path) -> str:
    """What a command left in a file."""
    text = re.sub(r' time="[\d.]+"', "", path.read_text(encoding="utf-8"))
    return words_of(text) if path.suffix == ".html" else text


def words_of(page: str) -> str:
    """What a page says, where its links lead, and what its charts are drawn from."""
    page = re.sub(r'<script type="application/json"[^>]*>|<a [^>]*?href="([^"]*)"[^>]*>', r" \1 ", page)
    text = re.sub(r"(?s)<(script|style|svg).*?</\1>|<[^>]*>", " ", page)
    return re.sub(r"\s*\n\s*", "\n", re.sub(r"[^\S\n]+", " ", html.unescape(text)))
