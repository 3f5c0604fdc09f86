from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from steelyard.alarms import _targets
from steelyard.sinks import _attributes

DOCUMENT = (Path(__file__).parents[2] / "docs" / "reference" / "emitted.md").read_text()
NAMES = {value for name, value in vars(_attributes).items() if name.isupper() and isinstance(value, str)}


def test_every_name_has_a_stability() -> None:
    assert NAMES - {_attributes.SCOPE} == set(_attributes.STABILITY)


@pytest.mark.parametrize("name", sorted(_attributes.STABILITY))
def test_the_document_tells_every_name_with_its_stability(name: str) -> None:
    rows = [row for row in DOCUMENT.splitlines() if row.startswith(f"| `{name}` |")]
    assert rows, f"docs/reference/emitted.md does not tell {name!r}"
    assert f"| {_attributes.STABILITY[name]} |" in rows[0]


def test_the_document_tells_no_name_that_is_not_written() -> None:
    tables = DOCUMENT[DOCUMENT.index("## Events and spans") :]
    told = set(re.findall(r"^\| `([a-z_.]+)` \|", tables, re.MULTILINE))
    assert told <= set(_attributes.STABILITY)


def test_the_document_tells_the_names_of_an_alarm_s_event() -> None:
    named = set(re.findall(r'"(steelyard\.alarm(?:\.\w+)?)"', inspect.getsource(_targets)))
    assert len(named) >= 5
    assert [name for name in sorted(named) if f"`{name}`" not in DOCUMENT] == []
