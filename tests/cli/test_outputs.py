"""What commands and pages say of one fixed store, word by word: whatever changes a figure is seen here.

Where a change is meant, `OUTPUTS=write pytest tests/cli/test_outputs.py` writes them anew; the
difference is part of what is reviewed.
"""

from __future__ import annotations

import html
import json
import os
import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from cli.running import Steelyard
from report.parts import by_judge, results, screened_traffic, turn
from steelyard.cli.commands._demo import write_fortnight
from steelyard.golden import Case, GoldenSet
from steelyard.results import open_labels
from steelyard.results.labels import Label, LabelValue
from steelyard.view import app

KEPT = Path(__file__).parent / "outputs"
END = 1_760_000_000.0
RECORDS = [
    {
        "question": "Where is it?",
        "answer": "In Rome.",
        "contexts": ["It is in Rome."],
        "reference": "In Rome.",
    },
    {"question": "Who came?", "answer": "I do not know.", "contexts": ["Nobody came."]},
    {"question": "When?", "answer": "In 1950.", "contexts": []},
    {"question": "", "answer": "", "contexts": []},
]
APP = """
def answer(question):
    return {"answer": "In Rome." if "Where" in question else "In 1950.", "contexts": ["It is in Rome."]}
"""
CASES = (
    Case(question="Where is it?", reference="In Rome."),
    Case(question="When did it come?", reference="In 1830."),
    Case(question="Where will it go?", kind="unanswerable"),
)
CHANCE = (
    (r"20(?!25-(09|10))\d\d-\d\d-\d\d \d\d:\d\d(:\d\d)?", "<now>"),
    (r"/\S*/outputs\d+/", ""),
    (r"\S+, process \d+", "<process>"),
    (r"genai-prices [\d.]+", "genai-prices"),
    (r"\d+ s ago", "<n> s ago"),
    (r"(in|requests,) [\d.]+ s\b", r"\1 <n> s"),
)
"""What differs from one time to the next."""
COMMANDS = {
    "report": "report --by version",
    "report_week": "report --since 2025-10-02 --by judge --metric faithfulness",
    "plan": "plan --width .02",
    "gaps": "gaps",
    "explain": "explain demo-0007",
    "calibrate": "calibrate --out c.json",
    "score": "score turns.jsonl --metrics faithfulness,context_recall --out s.jsonl",
    "score_away": "score turns.jsonl --judge openai:m --metrics faithfulness --base-url http://127.0.0.1:1",
    "score_plan": "score turns.jsonl --judge openai:gpt-4o-mini --metrics all --plan",
    "backfill": "backfill turns.jsonl --judge openai:gpt-4o-mini --plan",
    "labels": "labels export labels.csv",
    "golden_mine": "golden mine shop --n 12",
    "test": "test cases.jsonl --app outputs_app:answer --gate faithfulness=0.9",
}
PAGES = ["/", "/?by=judge", "/turns", "/sessions?order=worst", "/turn?id=demo-0007", "/compare?by=version"]
PAGES += ["/compare?by=judge", "/session?id=s6", "/judges", "/coverage", "/api/queue", "/api/queue/so-far"]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outputs")
    path = folder / "steelyard.db"
    write_fortnight(str(path), now=END)
    # Besides: turns that a screen saw, another judge, scores without a value, and labels of single claims.
    others = [turn(1000 + n, None if n % 3 else n / 40, at=END - 3600 * n, inclusion=0.5) for n in range(40)]
    results(path, [*screened_traffic()[:300], *(by_judge(one, "other") for one in others)])
    said: list[tuple[str, int, LabelValue]] = [(who, 0, "supported") for who in ("Ann", "Bo")]
    said += [("Ann", 1, "supported"), ("Bo", 1, "not_supported"), ("Cy", 1, "not_supported")]
    open_labels(str(path)).put(
        Label(
            record_id="demo-0007", metric="faithfulness", claim=claim, value=value, who=who, labelled_at=END
        )
        for who, claim, value in said
    )
    lines = [json.dumps({"id": f"r{number}", **one}) for number, one in enumerate(RECORDS)]
    (folder / "outputs_app.py").write_text(APP)
    GoldenSet(name="cases", cases=CASES).save(folder / "cases.jsonl")
    (folder / "turns.jsonl").write_text("\n".join([*lines, "{half"]))
    return folder


def check(name: str, said: str) -> None:
    kept = KEPT / f"{name}.txt"
    for pattern, shown in CHANCE:
        said = re.sub(pattern, shown, said)
    said = "".join(f"{line.rstrip()}\n" for line in said.splitlines() if line.strip())
    if os.environ.get("OUTPUTS") == "write":
        kept.write_text(said, encoding="utf-8")
    assert said == kept.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_what_it_said(
    name: str, stored: Path, steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(stored)
    monkeypatch.syspath_prepend(str(stored))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    found = steelyard(*COMMANDS[name].split())
    check(name, f"{found.status}\n{found.out}\n{found.err}")


@pytest.mark.parametrize("path", PAGES)
def test_a_page_shows_what_it_showed(path: str, stored: Path) -> None:
    page = TestClient(app(stored / "steelyard.db"), base_url="http://127.0.0.1").get(path)
    text = re.sub(r"(?s)<(script|style|svg).*?</\1>|<[^>]*>", " ", page.text)
    words = re.sub(r"\s*\n\s*", "\n", re.sub(r"[^\S\n]+", " ", html.unescape(text)))
    check("page_" + (re.sub(r"\W+", "_", path).strip("_") or "overview"), f"{page.status_code}\n{words}")
