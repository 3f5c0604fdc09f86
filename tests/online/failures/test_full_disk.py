"""A disk on which nothing can be written any more, and then again: the kernel refuses, nothing is mocked."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

import programs
from online.helpers import turn
from steelyard.online import Spool, SpoolSettings
from steelyard.online.queue._turns import Selected
from waiting import until

resource = pytest.importorskip("resource", reason="limits on the size of files are a thing of Unix")
pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs Linux's prlimit"),
]

_HOST = """
import json, resource, sys, time
from steelyard.online import Monitor, SpoolSettings
from steelyard.record import Record
from steelyard.testing import MemorySink

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

def law():
    s = monitor.stats()
    assert s.seen == s.accepted + sum(s.skipped.values())
    assert s.accepted == s.pending + s.evaluated + sum(s.dead.values()) + s.abandoned + s.spooled
    return s

def submit(name, count):
    for number in range(count):
        monitor.submit(Record(id=f"{name} {number}", question="q", answer="x" * 10_000))
    assert monitor.flush(60) == 0
    return law()

sink = MemorySink()
monitor = Monitor(metrics=[], sinks=[sink], spool=sys.argv[1])
before = submit("before", 20).spooled
limit(4096)
full = submit("full", 60)
limit(resource.RLIM_INFINITY)
deadline = time.monotonic() + 120
while monitor.stats().spool is None and time.monotonic() < deadline:
    time.sleep(0.05)
after = submit("after", 20)
assert monitor.flush(60) == 0
spool = monitor.stats().spool
monitor.close()
print(json.dumps({"before": before, "while full": full.spooled, "judged in memory": full.evaluated,
    "after": after.spooled - full.spooled, "delivered": len({e.record_id for e in sink.evaluations}),
    "dead": sum(after.dead.values()),
    "spool": [spool.accepted, spool.pending, spool.evaluated, sum(spool.dead.values())]}))
"""


def test_13_a_disk_that_is_full_and_then_not(tmp_path: Path) -> None:
    done = programs.run(["-c", _HOST, tmp_path / "s.db"], ours=True, timeout=150)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["before"] == told["while full"] == told["after"] == 20
    assert told["judged in memory"] == 60 and told["dead"] == 0
    assert told["delivered"] == 100
    assert told["spool"] == [40, 0, 40, 0]
    assert done.stderr.count("cannot be used") == done.stderr.count("works again") == 1


@pytest.mark.parametrize("recovers", [True, False])
def test_13_a_worker_whose_disk_is_full_works_again_or_says_so(tmp_path: Path, recovers: bool) -> None:
    path = tmp_path / "s.db"
    Spool(path).close()
    command = [*programs.STEELYARD, "worker", "--spool", str(path), "--judge", "local"]
    env = {**os.environ, "STEELYARD_SINKS": f"jsonl:{tmp_path / 'results.jsonl'}"}
    worker = programs.start(command, ours=True, live=True, cwd=tmp_path, env=env)
    assert worker.stderr is not None
    try:
        assert "judging what comes" in worker.stderr.readline()
        resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        spool = Spool(SpoolSettings(path=path).path)
        assert set(spool.put([Selected(turn(f"{number}"), 0.0, 1.0) for number in range(30)])) == {"new"}
        said = worker.stderr.readline()
        # It records nothing, so nothing is kept in its memory.
        assert "cannot be used" in said and "kept in memory" not in said
        if recovers:
            infinite = resource.RLIM_INFINITY
            resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (infinite, infinite))
            until(lambda: spool.counts().evaluated == 30 and not spool.counts().undelivered)
        counts = spool.counts()
        assert counts.accepted == 30 == counts.pending + counts.evaluated
        spool.close()
    finally:
        worker.send_signal(signal.SIGTERM)
        _, said = worker.communicate(timeout=150)
    assert worker.returncode == (0 if recovers else 1), said
    assert ("works again" in said) == recovers
    assert ("waits for the next worker" in said) == (not recovers)
    if recovers:
        assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 30
