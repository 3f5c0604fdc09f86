"""`steelyard serve`: where it listens, and what it holds after many requests."""

from __future__ import annotations

import re
import urllib.request
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

pytest.importorskip("starlette", reason="starlette is not installed")

import programs
from report.parts import NOON, results, turn
from steelyard.cli._app import build
from steelyard.errors import ConfigurationError
from steelyard.results.queries import Scope
from steelyard.view._site import CloserLooks
from view.serving import serving
from waiting import until

STATM = Path("/proc/self/statm")
PAGE = 4096


def pages_of(number: int) -> str:
    """A page, and hardly ever the same one twice."""
    if not number % 20:
        return f"/?metric=faithfulness&since={10_000 + number}d"  # by far the longest to make
    return (
        f"/turns?text=word{number}",
        f"/turn?id=r{number % 300}",
        f"/trace/{number:032x}",
        f"/turns?tag=tag{number}&version=v{number}",
        f"/api/new?time={NOON + number}&id=r{number}",
    )[number % 5]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not STATM.is_file(), reason="the memory of a process is read from /proc")
def test_a_thousand_requests_leave_the_memory_of_a_server_flat(tmp_path: Path) -> None:
    db = results(tmp_path / "s.db", [turn(n, (n % 10) / 10, at=NOON + n * 600) for n in range(300)])
    with serving(db) as server, httpx.Client(base_url=server.address, timeout=60) as client:

        def ask(first: int, count: int) -> int:
            """The server's memory in bytes after these requests."""
            for number in range(first, first + count):
                assert client.get(pages_of(number)).status_code in (200, 404)
            return int(Path(f"/proc/{server.pid}/statm").read_text().split()[1]) * PAGE

        before = ask(0, 300)
        after = ask(300, 1_000)
    assert after - before < 6e6, f"{before / 1e6:.1f} MB grew to {after / 1e6:.1f} MB"


def test_an_open_address_without_a_token_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STEELYARD_VIEW_TOKEN", raising=False)
    db = str(results(tmp_path / "a.db", [turn(1, 0.5)]))
    done = CliRunner().invoke(build(), ["serve", "--db", db, "--host", "0.0.0.0"])
    assert isinstance(done.exception, ConfigurationError)
    assert "STEELYARD_VIEW_TOKEN" in str(done.exception)


def test_the_port_that_is_said_is_the_one_that_listens(tmp_path: Path) -> None:
    db = str(results(tmp_path / "a.db", [turn(1, 0.5)]))
    command = [*programs.STEELYARD, "serve", "--db", db, "--port", "0"]
    with programs.start(command, ours=True, live=True, cwd=tmp_path) as serving:
        try:
            assert serving.stderr is not None
            said = re.search(r"http://127\.0\.0\.1:([0-9]+)/", serving.stderr.readline())
            assert said is not None and said[1] != "0"
            with urllib.request.urlopen(said[0], timeout=30) as page:
                assert page.status == 200
        finally:
            serving.terminate()


def test_a_closer_look_that_failed_shows_nothing_and_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steelyard.view._site._FRESH", 0.0)
    db = results(tmp_path / "s.db", [turn(n, 0.5) for n in range(9)])
    looks, away = CloserLooks(str(db)), db.rename(tmp_path / "away.db")
    assert looks.get("all", Scope(), wait=60) is None
    assert looks.get("all", Scope(), wait=60) is None, "what could not be read is not shown as nothing found"
    away.rename(db)
    until(lambda: looks.get("all", Scope(), wait=60))
    first = looks.get("all", Scope(), wait=60)
    assert first is not None and [one.metric for one in first.metrics] == ["faithfulness"]
    until(lambda: (later := looks.get("all", Scope(), wait=60)) and later.at > first.at)
