"""What the documentation shows, works: its Python blocks are run, its links lead somewhere."""

from __future__ import annotations

import asyncio
import doctest
import importlib
import os
import re
import sqlite3
from pathlib import Path
from typing import get_args

import pytest

import programs
from apps.corpus import FAMILIES
from sinks.making import make_evaluation, make_score
from steelyard.errors import Cause
from steelyard.recording.provenance import NOTES
from steelyard.results import connect_readonly
from steelyard.sinks import SQLiteSink

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "integrations").glob("*/README.md")),
]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


def scripts() -> list[tuple[str, str]]:
    """Each page's `python` blocks as one script (an excerpt that does not run alone is marked `py`)."""
    found = [
        (name, "\n".join(BLOCK.findall(page.read_text()))) for name, page in zip(NAMES, PAGES, strict=True)
    ]
    return [(name, script) for name, script in found if script]


@pytest.mark.parametrize(("name", "script"), scripts(), ids=[name for name, _ in scripts()])
def test_python_blocks_run(name: str, script: str, tmp_path: Path) -> None:
    env = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")}
    env["PYTHONWARNINGS"] = "ignore"
    done = programs.run(["-c", script], source=script, ours=True, cwd=tmp_path, env=env)
    assert done.returncode == 0, f"{name}:\n{done.stderr[-2000:]}"


@pytest.mark.parametrize("script", sorted(ROOT.glob("benchmarks/*.py")), ids=lambda path: path.stem)
def test_benchmarks_find_what_they_import(script: Path) -> None:
    code = f"import runpy, sys; sys.path[0] = {str(script.parent)!r}; runpy.run_path({str(script)!r})"
    done = programs.run(["-c", code], source=script.read_text(), ours=True)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize(("name", "page"), list(zip(NAMES, PAGES, strict=True)), ids=NAMES)
def test_links_lead_somewhere(name: str, page: Path) -> None:
    broken = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert not broken, f"{name} links to {broken}"


@pytest.mark.parametrize(("name", "page"), list(zip(NAMES, PAGES, strict=True)), ids=NAMES)
def test_pages_are_read_alike_on_the_site(name: str, page: Path) -> None:
    """There a fence has a word and a title at most, and a line stands between a heading and a table."""
    fences = re.findall(r"^```(.*)$", page.read_text(), re.MULTILINE)
    assert [fence for fence in fences if not re.fullmatch(r'\w*( title="[^"]*")?', fence)] == []
    assert re.findall(r"^#+ .*\n\|.*", page.read_text(), re.MULTILINE) == []
    if name.startswith("docs/"):
        outside = [link for link in LINK.findall(page.read_text()) if _leaves_docs(page, link)]
        assert not outside, f"{name}: write `path`; the site has no {outside}"


def _leaves_docs(page: Path, link: str) -> bool:
    return not (page.parent / link).resolve().is_relative_to(ROOT / "docs")


def test_pages_that_the_code_names_are_there() -> None:
    named = {
        name
        for folder in ("src", "integrations", "scripts", "benchmarks", "examples")
        for path in (ROOT / folder).rglob("*.py")
        for name in re.findall(r"docs/[\w/-]+\.md", path.read_text(encoding="utf-8"))
    }
    assert len(named) >= 10
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_every_note_and_every_family_of_shapes_is_explained() -> None:
    page = (ROOT / "docs" / "reference" / "recording.md").read_text()
    for name, meaning in NOTES.items():
        assert f"| `{name}` | {meaning} |" in page
    for family in (family for families in FAMILIES.values() for family in families):
        assert f"`{family.replace('.', '/')}`" in page


def test_every_cause_of_a_failed_score_is_explained() -> None:
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    lacks = {"missing_contexts", "missing_question", "missing_reference", "missing_reference_contexts"}
    words = {word for cause in get_args(Cause) for word in (get_args(cause) or (cause,))}
    assert [cause for cause in sorted(words - lacks) if f"`{cause}`" not in page] == []


EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs(example: Path, tmp_path: Path) -> None:
    env = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")}
    done = programs.run([example], source=example.read_text(), cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stderr, done.stderr[-3000:]
    assert done.stdout.strip(), "an example shows something"


SOURCES = [ROOT / "src", *ROOT.glob("integrations/*/src")]


def test_what_docstrings_show_is_so() -> None:
    tried, failed = 0, []
    for source in SOURCES:
        for file in source.rglob("*.py"):
            if ">>> " not in file.read_text(encoding="utf-8"):
                continue
            name = ".".join(file.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
            done = doctest.testmod(importlib.import_module(name))
            tried += done.attempted
            failed += [name] * done.failed
    assert tried > 100 and not failed


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
