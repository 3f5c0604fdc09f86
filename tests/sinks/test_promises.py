"""docs/results.md names the test that holds each of its promises."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_each_test_that_the_document_names_exists() -> None:
    text = (ROOT / "docs" / "results.md").read_text().partition("## Which test holds which promise")[2]
    named = set(re.findall(r"`(test_\w+)`", text))
    files = [*(ROOT / "tests" / "sinks").glob("test_*.py"), *ROOT.glob("integrations/*/tests/test_*.py")]
    there = {
        name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)
    }
    assert len(named) >= 20
    assert named <= there
