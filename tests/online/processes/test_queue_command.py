"""`steelyard queue`: dead letters out of a spool file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from online.helpers import turn
from steelyard.online import Spool
from steelyard.online.queue._turns import Selected

STEELYARD = str(Path(sys.executable).with_name("steelyard"))


def queue(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [STEELYARD, "queue", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=150)


def test_dead_letters_are_listed_replayed_and_dropped(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "turns.db")
    spool.put([Selected(turn(name), 0.0, 1.0) for name in ("first", "second", "third")])
    for leased in spool.lease_turns(3):
        spool.dead_letter(leased, "KeyError" if leased.turn.record.id == "second" else "poison")
    listed = queue(tmp_path, "list", "--spool", "turns.db")
    assert listed.stdout.splitlines() == ["poison\t1\tfirst", "KeyError\t1\tsecond", "poison\t1\tthird"]
    replayed = queue(tmp_path, "replay", "--spool", "turns.db", "--cause", "KeyError")
    assert replayed.stdout == "replayed: 1 (KeyError 1)\n"
    [leased] = spool.lease_turns(3)
    assert leased.turn.record.id == "second"
    assert queue(tmp_path, "drop", "--spool", "turns.db").stdout == "dropped: 2 (poison 2)\n"
    assert queue(tmp_path, "list", "--spool", "turns.db").stdout == ""
    shown = queue(tmp_path, "--spool", "turns.db").stdout
    assert "dead\t2" in shown and "  poison\t2" in shown
    spool.close()


def test_a_queue_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = queue(tmp_path, "--spool", "nothing.db")
    assert (missing.returncode, "there is no spool" in missing.stderr) == (2, True)
    assert not (tmp_path / "nothing.db").exists()
