"""A server that has answered many requests holds no more than one that has answered a few."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

pytest.importorskip("starlette", reason="starlette is not installed")

from report.parts import NOON, results, turn
from view.serving import serving

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
