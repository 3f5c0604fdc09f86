"""The tutorials as what they ask their reader to do: files to save, commands to type."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
NAMES = ("langchain", "llamaindex", "opentelemetry", "python")
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]*)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_AT_THE_END = ", at the end"


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
    """The blocks of a tutorial, in order; a block of a kind that nobody could follow is an error."""
    found = []
    for language, title, text in _BLOCK.findall((FOLDER / f"{name}.md").read_text(encoding="utf-8")):
        if language == "sh":
            status = re.fullmatch(r"(?:exits with (\d))?", title)
            assert status, title
            found.append(Step(text=text, status=int(status[1] or 0)))
        else:
            assert title, text
            is_added = title.endswith(_AT_THE_END)
            found.append(Step(text=text, file=title.removesuffix(_AT_THE_END), is_added=is_added))
    return found
