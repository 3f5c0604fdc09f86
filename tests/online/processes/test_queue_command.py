"""`steelyard queue`: dead letters out of a spool file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from online.helpers import FAITHFUL, kind_judge, turn
from online.spooling import check_spool
from steelyard.online import Monitor, Spool, SpoolSettings
from steelyard.online.queue._turns import Selected
from steelyard.testing import MemorySink
from waiting import until

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


def test_results_of_a_sink_that_was_renamed_are_handed_on(tmp_path: Path) -> None:
    class Away(MemorySink):
        async def write(self, evaluations: object) -> None:
            raise OSError("away")

    spool = SpoolSettings(path=tmp_path / "turns.db", max_bytes=15_000)
    before = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[Away(name="old\x1b]0;")], spool=spool)
    for number in range(100):
        before.submit(turn(str(number)))
    # Until results fill the file, so that nothing more is judged.
    until(lambda: before.stats().skipped.get("spool_full", 0) and not before.stats().pending)
    until(lambda: check_spool(before.stats()).waiting)
    before.close(0)
    [waiting] = check_spool(before.stats()).waiting.values()
    for wrong in (("move", "--sink", "old"), ("show", "--sink", "old"), ("drop", "--sink", "o", "--to", "n")):
        assert queue(tmp_path, *wrong, "--spool", "turns.db").returncode == 2
    moved = queue(tmp_path, "move", "--spool", "turns.db", "--sink", "old\x1b]0;", "--to", "new")
    assert moved.stdout.startswith(f"moved: {waiting} that waited for old") and "\x1b" not in moved.stdout
    after = MemorySink(name="new")
    monitor = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[after], spool=spool)
    monitor.start()
    assert monitor.flush(60) == 0
    assert len(after.by_record) == check_spool(monitor.stats()).accepted > waiting > 0


def test_a_queue_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = queue(tmp_path, "--spool", "nothing.db")
    assert (missing.returncode, "there is no spool" in missing.stderr) == (2, True)
    assert not (tmp_path / "nothing.db").exists()
