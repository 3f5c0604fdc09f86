"""Files that hold what users asked and were answered: a new one is for its owner alone."""

from __future__ import annotations

import os


def owners_alone(path: str, flags: int) -> int:
    """The `opener` of such a file; one that exists keeps its permissions."""
    return os.open(path, flags, 0o600)
