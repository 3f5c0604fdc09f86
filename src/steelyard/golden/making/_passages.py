"""Documents in passages that a question can be asked about."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from steelyard.errors import ConfigurationError
from steelyard.text import sentences

_LONGEST = 1_200
"""Characters of a passage; longer paragraphs are cut between sentences."""
_SHORTEST = 60
"""A passage of fewer characters holds too little to ask about."""
_KINDS = (".txt", ".md", ".rst", ".jsonl")
_HEADING = re.compile(r"^#{1,6}\s+(.*)$")
# A file is read as a whole.
_LARGEST = 64 * 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Passage:
    """A piece of a document."""

    id: str
    """Where it is from: the file's name and its number in it."""
    text: str = field(repr=False)


def read_passages(path: str | Path) -> list[Passage]:
    """Passages of a file, or of all files in a folder: `.txt`, `.md`, `.rst`, or `.jsonl` with `text`.

    Headings stand at the head of their passages. Passages that are too short to ask about, and ones that were
    there before, are left out.

    Raises:
        ConfigurationError: If there is no such file, none of its kind, or nothing to ask about in them.
    """
    root = Path(path)
    files = sorted(file for file in root.rglob("*") if file.suffix in _KINDS) if root.is_dir() else [root]
    if not root.exists() or not files:
        raise ConfigurationError(
            f"{str(path)!r} holds no documents ({', '.join(_KINDS)}); name a folder that does"
        )
    found: list[Passage] = []
    for file in files:
        if file.stat().st_size > _LARGEST:
            raise ConfigurationError(f"{str(file)!r} is larger than 64 MiB; give it in parts")
        text = file.read_text(encoding="utf-8", errors="replace")
        pieces = _lines(text, file) if file.suffix == ".jsonl" else _pieces(text)
        found += [Passage(id=f"{file.name}-{number}", text=piece) for number, piece in enumerate(pieces)]
    kept = usable(found)
    if not kept:
        raise ConfigurationError(
            f"{str(path)!r} holds no passage of at least {_SHORTEST} characters to ask about; "
            "give longer documents"
        )
    return kept


def usable(passages: Sequence[Passage]) -> list[Passage]:
    """Those that are long enough, each text once."""
    first: dict[str, Passage] = {}
    for passage in passages:
        if len(passage.text) >= _SHORTEST:
            # Boilerplate that stands in every document would else be asked about in each of them.
            first.setdefault(" ".join(passage.text.casefold().split()), passage)
    return list(first.values())


def _lines(text: str, file: Path) -> Iterable[str]:
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            yield " ".join(str(row["text"] if isinstance(row, dict) else row).split())
        except (ValueError, KeyError, RecursionError):
            raise ConfigurationError(
                f"{str(file)!r}, line {number}: not JSON with a 'text'; write {{\"text\": ...}} on each line"
            ) from None


def _pieces(text: str) -> Iterable[str]:
    """Paragraphs under their heading, short ones joined, long ones cut."""
    heading, held = "", ""
    for block in re.split(r"\n\s*\n", text):
        lines = block.strip().splitlines()
        if lines and (found := _HEADING.match(lines[0])) is not None:
            yield from _cut(heading, held)
            heading, held, lines = found.group(1).strip(), "", lines[1:]
        paragraph = " ".join(" ".join(lines).split())
        if held and len(held) + len(paragraph) > _LONGEST:
            yield from _cut(heading, held)
            held = ""
        held = f"{held} {paragraph}".strip()
    yield from _cut(heading, held)


def _cut(heading: str, text: str) -> Iterable[str]:
    piece = ""
    for sentence in sentences(text):
        if piece and len(piece) + len(sentence.text) > _LONGEST:
            yield f"{heading}: {piece}" if heading else piece
            piece = ""
        piece = f"{piece} {sentence.text}".strip()
    if piece:
        yield f"{heading}: {piece}" if heading else piece
