"""Who writes, and what was written before: replies are kept beside the set, so that work resumes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from steelyard.judge.chat import Written
from steelyard.scores import Usage

Blocks = Sequence[tuple[str, str]]


class Writer(Protocol):
    """A model that writes JSON after a schema; `steelyard.judge.chat.ChatWriter` is one."""

    @property
    def name(self) -> str:
        """Its name, with the model."""

    async def write(self, instruction: str, blocks: Blocks, schema: Mapping[str, Any]) -> Written:
        """Write an object."""


class Journal:
    """Replies by request, one a line, in a file that only its owner can read.

    The same request is not sent again: work that was interrupted goes on, and the same seed and documents
    make the same set. The file holds what the model wrote about the documents; delete it to have it written
    anew.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: dict[str, Mapping[str, Any]] = {}
        self.hits = 0
        """Replies that were there already."""
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                try:
                    row = json.loads(line)
                    self._known[row["key"]] = row["data"]
                except (ValueError, KeyError, TypeError):
                    continue  # the half line of a process that was killed

    async def write(
        self, writer: Writer, instruction: str, blocks: Blocks, schema: Mapping[str, Any]
    ) -> Written:
        """The known reply, or a new one, which is kept."""
        parts = json.dumps([writer.name, instruction, blocks, schema])
        key = hashlib.sha256(parts.encode("utf-8", "replace")).hexdigest()[:32]
        if key in self._known:
            self.hits += 1
            return Written(data=self._known[key], usage=Usage())
        written = await writer.write(instruction, blocks, schema)
        self._known[key] = written.data
        if self._path is not None:
            self._path.touch(mode=0o600)
            with self._path.open("a", encoding="utf-8") as file:
                # On a line of its own, whatever a process that was killed left at the end.
                file.write("\n" + json.dumps({"key": key, "data": written.data}, ensure_ascii=False) + "\n")
        return written
