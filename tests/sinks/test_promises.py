"""docs/check/promises.md names the tests that hold the promises of the other pages."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from pathlib import Path

import pytest

from sinks.making import make_evaluation, make_score
from steelyard.results import connect_readonly
from steelyard.sinks import SQLiteSink

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def test_each_test_that_the_document_names_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", (DOCS / "check" / "promises.md").read_text()))
    files = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("integrations/*/tests/**/test_*.py")]
    there = {
        name
        for file in files
        for name in re.findall(r"^ *(?:async )?def (test_\w+)", file.read_text(), re.MULTILINE)
    }
    assert len(named) >= 200
    assert named <= there, named - there


def test_the_query_of_the_document_gives_the_weighted_mean_and_can_change_nothing(tmp_path: Path) -> None:
    [query] = re.findall(r"```sql\n(.*?)```", (DOCS / "reference" / "results.md").read_text(), re.DOTALL)
    rare = make_evaluation("a", make_score(value=1.0, inclusion_probability=0.1, id="a"))
    certain = make_evaluation("b", make_score(value=0.0, inclusion_probability=1.0, id="b"))
    asyncio.run(SQLiteSink(tmp_path / "results.db").write([rare, certain]))
    with connect_readonly(tmp_path / "results.db") as connection:
        [row] = connection.execute(query)
        assert tuple(row) == ("faithfulness", 2, pytest.approx(10 / 11))
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute("DELETE FROM scores")
