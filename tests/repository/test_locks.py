"""Locks in code that runs inside applications, which may fork at any moment."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PLAIN = re.compile(r"= threading\.(?:R?Lock|Condition)\(")
MADE_ANEW = {
    "_internal/forks.py": "what ForkLock is made of",
    "_internal/lifecycle.py": "made anew in a child",
    "online/monitor.py": "made anew in a child",
    "online/_run.py": "a child has a run of its own",
    "online/_canaries.py": "a child has a run of its own",
    "online/_sink_writer.py": "a child has a run of its own",
    "online/queue/_inbox.py": "a child has a run of its own",
    "steelyard_opentelemetry/_recorder.py": "made anew in a child",
    "steelyard_opentelemetry/_holding.py": "made anew in a child",
}
PROGRAMS = ("cli", "collect", "view")
"""Programs of our own, which do not fork while they serve."""


def test_no_lock_stays_held_in_a_forked_child() -> None:
    rooms = ROOT / "src" / "steelyard"
    files = [path for path in rooms.rglob("*.py") if path.relative_to(rooms).parts[0] not in PROGRAMS]
    files += (path for path in ROOT.glob("integrations/*/src/**/*.py"))
    found = {path.as_posix() for path in files if PLAIN.search(path.read_text(encoding="utf-8"))}
    assert len(files) > 250
    unknown = {path for path in found if not path.endswith(tuple(MADE_ANEW))}
    assert not unknown, "take steelyard._internal.forks.ForkLock, or make the lock anew in a child"
