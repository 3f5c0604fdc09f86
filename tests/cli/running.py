"""Running the command line in this process, as its entry point does."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from steelyard.cli import main


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Standard output as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass
class Steelyard:
    """`steelyard`, callable with its arguments."""

    capture: pytest.CaptureFixture[str]
    patch: pytest.MonkeyPatch

    def __call__(self, *arguments: str | Path, columns: int = 100) -> Outcome:
        self.patch.setattr(sys, "argv", ["steelyard", *map(str, arguments)])
        self.patch.setenv("COLUMNS", str(columns))
        self.capture.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        out, err = self.capture.readouterr()
        code = left.value.code
        return Outcome(code if isinstance(code, int) else 0, out, err)


def write_lines(path: Path, *lines: object) -> Path:
    """Write a file of JSON lines; a string goes in as it is."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path
