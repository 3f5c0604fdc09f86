"""Prints how large the project is: lines, files and exported names by room, tests apart.

python scripts/size.py [ROOT]
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Size:
    """What some files come to."""

    lines: int = 0
    files: int = 0
    names: int = 0

    def add(self, path: Path) -> None:
        """Count a file, docstrings and blank lines included."""
        text = path.read_text(encoding="utf-8")
        self.lines += text.count("\n")
        self.files += 1
        if path.name == "__init__.py":
            self.names += len(exported(text))


def exported(text: str) -> list[str]:
    """What `__all__` of a package lists."""
    for node in ast.parse(text).body:
        targets = node.targets if isinstance(node, ast.Assign) else ()
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            return list(ast.literal_eval(node.value))  # type: ignore[attr-defined]
    return []


def rooms(root: Path) -> Iterator[tuple[str, Path]]:
    """Every file of the packages and its room; tests have one of their own."""
    for path in sorted((root / "src" / "steelyard").rglob("*.py")):
        place = path.relative_to(root / "src" / "steelyard").parts
        yield (place[0] if len(place) > 1 else "(top)"), path
    for path in sorted((root / "integrations").rglob("*.py")):
        place = path.relative_to(root).parts
        yield ("tests" if "tests" in place else "/".join(place[:2])), path
    for path in sorted((root / "tests").rglob("*.py")):
        yield "tests", path


def main(root: Path) -> None:
    """Print the table."""
    sizes: defaultdict[str, Size] = defaultdict(Size)
    for room, path in rooms(root):
        sizes[room].add(path)
        if room != "tests":
            sizes["src and integrations"].add(path)
    tests = sizes.pop("tests", Size())
    whole = sizes.pop("src and integrations")
    rows = [*sorted(sizes.items()), ("src and integrations", whole), ("tests", tests)]
    print(f"{'room':<30}{'lines':>8}{'files':>7}{'exported':>10}")
    for room, size in rows:
        print(f"{room:<30}{size.lines:>8,}{size.files:>7,}{size.names:>10,}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
