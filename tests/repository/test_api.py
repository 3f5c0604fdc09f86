"""The page of public names: true, small, and all that the other pages use."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import runpy
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
API = runpy.run_path(str(ROOT / "scripts" / "api.py"))
PUBLIC = API["PUBLIC"]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.py")),
]


def test_the_pages_say_what_the_docstrings_say() -> None:
    """`python scripts/api.py` was run."""
    folder = ROOT / "docs" / "reference"
    there = {"api.md", *(f"python/{path.name}" for path in (folder / "python").iterdir())}
    assert {name: (folder / name).read_text(encoding="utf-8") for name in there} == API["pages"]()


KEPT = Path(__file__).with_name("public.txt")


def shown(name: str, value: Callable[..., Any]) -> str:
    """A signature with its defaults; of a default that no text stands for, its type."""
    told = {
        one.name: "" if one.default is one.empty else "=" + repr(one.default).partition(" at 0x")[0]
        for one in inspect.signature(value).parameters.values()
    }
    given = [f"{parameter}{default}" for parameter, default in told.items()]
    return f"{name}({', '.join(given)})"


def surface() -> Iterator[str]:
    for package, names in PUBLIC.items():
        for name in names:
            value = getattr(importlib.import_module(package), name)
            if not callable(value) or not getattr(value, "__module__", "").startswith("steelyard"):
                yield f"{package}.{name}: {', '.join(API['choices'](value))}"
                continue
            made = value.__init__ if inspect.isclass(value) else value
            yield shown(f"{package}.{name}", made) if inspect.isfunction(made) else f"{package}.{name}"
            for member, method in sorted(vars(value).items()):
                if not member.startswith("_") and inspect.isfunction(method):
                    yield shown(f"    {member}", method)


def test_no_public_name_takes_anything_else_by_default_unsaid() -> None:
    """With a line in the changelog, `OUTPUTS=write` keeps the names and their defaults anew."""
    found = "".join(f"{line}\n" for line in surface())
    if os.environ.get("OUTPUTS") == "write":
        KEPT.write_text(found, encoding="utf-8")
    assert found == KEPT.read_text(encoding="utf-8")


def test_what_is_public_can_be_kept_in_mind() -> None:
    """At most 250 names, each described."""
    described = [API["described"](package, name) for package, names in PUBLIC.items() for name in names]
    assert len(described) <= 250
    assert all(described)


def test_every_list_of_public_names_is_on_the_page() -> None:
    """A name that only other rooms use is exported `as` itself, and no `__all__` holds it."""
    sources = [*ROOT.glob("src/**/*.py"), *ROOT.glob("integrations/*/src/**/*.py")]
    listing = {
        ".".join(path.with_suffix("").parts[path.parts.index("src") + 1 :]).removesuffix(".__init__")
        for path in sources
        if re.search(r"^__all__ = ", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert listing == set(PUBLIC)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_and_examples_import_public_names_only(page: Path) -> None:
    """What a reader copies stays."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python[^\n]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    imported = [node for source in ([text] if page.suffix == ".py" else blocks) for node in _imports(source)]
    unknown = {
        f"{node.module}.{alias.name}"
        for node in imported
        if node.module and node.module.partition(".")[0].startswith("steelyard")
        for alias in node.names
        if alias.name not in PUBLIC.get(node.module, ())
    }
    assert not unknown


def _imports(source: str) -> list[ast.ImportFrom]:
    try:
        tree = ast.parse(textwrap.dedent(source))
    except SyntaxError:  # an excerpt that is no whole program
        return []
    return [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
