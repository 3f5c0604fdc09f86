"""docs/results.md and docs/production.md name the tests that hold their promises."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("document", ["results.md", "production.md"])
def test_each_test_that_the_document_names_exists(document: str) -> None:
    text = (ROOT / "docs" / document).read_text().partition("## Which test holds which promise")[2]
    named = set(re.findall(r"`(test_\w+)`", text))
    files = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("integrations/*/tests/test_*.py")]
    there = {
        name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)
    }
    assert len(named) >= 20
    assert named <= there, named - there
