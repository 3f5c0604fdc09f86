"""How busy the machine is, for bounds of processor time."""

from __future__ import annotations

import json
import time

_QUIET = 0.0026


def slowness() -> float:
    """How many times slower a core is now, where others share its caches and its clock."""
    text, began = "a\n" * 100_000, time.thread_time()
    json.loads(json.dumps(text))
    return max(1.0, (time.thread_time() - began) / _QUIET)
