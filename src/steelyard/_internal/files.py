"""Files that hold what users asked and were answered: a new one is for its owner alone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def owners_alone(path: str, flags: int) -> int:
    """The `opener` of such a file; one that exists keeps its permissions."""
    return os.open(path, flags, 0o600)


def replace_file(path: str | os.PathLike[str], text: str, *, private: bool = False) -> None:
    """Write a file as a whole, or leave it as it was; raises OSError.

    One that exists keeps its permissions; a new one is for its owner alone where it is `private`.
    """
    place = Path(path)
    # In the same folder: a rename is one step only within a file system.
    beside = place.with_name(f".{place.name}.{os.getpid()}")
    beside.unlink(missing_ok=True)
    with open(beside, "x", encoding="utf-8", opener=owners_alone if private else None) as file:
        file.write(text)
    if place.exists():
        shutil.copymode(place, beside)
    beside.replace(place)
