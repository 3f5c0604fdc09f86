"""The tutorials as what they ask their reader to do: files to save, commands to type."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
NAMES = ("langchain", "llamaindex", "opentelemetry", "python")
_BLOCK = re.compile(r"^([^\n]+)\n\n```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""The line before a block, which says what to do with it, its language, and the block."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One block of a tutorial."""

    text: str
    file: str = ""
    """The file to save it in; empty of commands."""
    is_added: bool = False
    """Whether it goes to the file's end."""
    status: int = 0
    """What the last command exits with."""

    def save(self, folder: Path) -> None:
        path = folder / self.file
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_text() if self.is_added else ""
        path.write_text(f"{before}\n{self.text}" if before else self.text)

    @property
    def commands(self) -> Sequence[str]:
        return self.text.splitlines()


def steps(name: str) -> list[Step]:
    """The blocks of a tutorial, in order; of a file, the line before it ends with its name."""
    page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    found = []
    for before, language, text in _BLOCK.findall(page):
        if language == "sh":
            status = re.search(r"exits with (\d)\b[^.]*:$", before)
            found.append(Step(text=text, status=int(status[1]) if status else 0))
        else:
            named = re.search(r"`([^`]+)`:$", before)
            assert named, f"where does this go? {text}"
            found.append(Step(text=text, file=named[1], is_added="to the end of" in before))
    assert len(found) == page.count("\n```") // 2
    return found
