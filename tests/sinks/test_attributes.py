from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from steelyard.alarms import _targets
from steelyard.sinks import _attributes

DOCUMENT = (Path(__file__).parents[2] / "docs" / "reference" / "emitted.md").read_text()
NAMES = {value for name, value in vars(_attributes).items() if name.isupper() and isinstance(value, str)}
NAMES.remove(_attributes.SCOPE)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_the_document_tells_every_name_with_its_stability(name: str) -> None:
    rows = [row for row in DOCUMENT.splitlines() if row.startswith(f"| `{name}` |")]
    assert rows, f"docs/reference/emitted.md does not tell {name!r}"
    stability = {"stable", "development", "openinference", "common", "steelyard"} & set(rows[0].split(" | "))
    assert len(stability) == 1 and (name.startswith("steelyard.")) == (stability == {"steelyard"})


def test_the_document_tells_no_name_that_is_not_written() -> None:
    tables = DOCUMENT[DOCUMENT.index("## Events and spans") :]
    told = set(re.findall(r"^\| `([a-z_.]+)` \|", tables, re.MULTILINE))
    assert told <= NAMES


def test_the_document_tells_the_names_of_an_alarm_s_event() -> None:
    named = set(re.findall(r'"(steelyard\.alarm(?:\.\w+)?)"', inspect.getsource(_targets)))
    assert len(named) >= 5
    assert [name for name in sorted(named) if f"`{name}`" not in DOCUMENT] == []
