"""`steelyard serve`: where it listens, whom it refuses, and what it holds after many requests."""

from __future__ import annotations

import asyncio
import os
import re
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

pytest.importorskip("starlette", reason="starlette is not installed")

import programs
from report.parts import NOON, results, turn
from steelyard.cli._app import build
from steelyard.errors import ConfigurationError
from steelyard.results.queries import Scope
from steelyard.view import app
from steelyard.view._site import CloserLooks
from view.serving import client, serving
from waiting import until

STATM = Path("/proc/self/statm")
PAGE = 4096
TOKEN = "a-token-of-some-length"


@pytest.fixture
def db(tmp_path: Path) -> str:
    return str(results(tmp_path / "s.db", [turn(n, n / 10, at=NOON + n) for n in range(9)]))


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


async def test_a_server_may_start_and_end_it(db: str) -> None:
    told: list[str] = []
    asked = iter(["lifespan.startup", "lifespan.shutdown"])

    async def receive() -> dict[str, str]:
        return {"type": next(asked)}

    async def send(message: Any) -> None:
        told.append(message["type"])

    await app(db)({"type": "lifespan", "asgi": {"version": "3.0"}}, receive, send)
    assert told == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


async def test_another_host_name_is_refused(db: str) -> None:
    async with client(db, host="rebound.example") as http:
        assert (await http.get("/turns")).status_code == 421


async def test_a_token_opens_the_pages_and_nothing_else_does(db: str) -> None:
    async with client(db, token=TOKEN, host="results.example") as http:
        assert (await http.get("/turns")).headers["location"] == "/login"
        assert (await http.get("/api/new")).status_code == 401
        assert (await http.get("/turns/static/")).status_code == 303
        assert (await http.get("/turns", headers={"cookie": f"steelyard_session={TOKEN}"})).status_code == 303
        basic = await http.get("/api/new", headers={"authorization": f"Basic {TOKEN}"})
        assert basic.status_code == 401
        for wrong in ({"token": "wrong"}, {"padding": "x" * 5_000, "token": TOKEN}):
            assert (await http.post("/login", data=wrong)).status_code == 401
        given = await http.post("/login", data={"token": TOKEN})
        cookie = given.headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=lax" in cookie and TOKEN not in cookie
        assert "Secure" not in cookie
        assert (await http.get("/turns")).status_code == 200
        secure = await http.post("https://results.example/login", data={"token": TOKEN})
        assert "Secure" in secure.headers["set-cookie"]
    async with client(db, token=TOKEN) as http:
        bearer = {"authorization": f"Bearer {TOKEN}"}
        assert (await http.get("/turns", headers=bearer)).status_code == 200
        assert (await http.head("/turns", headers=bearer)).status_code == 200
    with pytest.raises(ConfigurationError):
        app(db, token="fifteen letters")


async def test_a_body_that_never_comes_is_not_waited_for(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steelyard.view._requests._SECONDS_FOR_A_BODY", 0.05)

    async def endless() -> AsyncIterator[bytes]:
        yield b"token="
        await asyncio.Event().wait()

    async with client(db, token=TOKEN) as http, asyncio.timeout(60):
        assert (await http.post("/login", content=endless())).status_code == 401


async def test_mounted_in_another_application_its_links_stay_under_the_mount(db: str) -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    outer = Starlette(routes=[Mount("/results", app=app(db, token=TOKEN, hosts=["RAG.example"]))])
    transport = httpx.ASGITransport(app=outer)
    async with httpx.AsyncClient(transport=transport, base_url="http://rag.example") as http:
        assert (await http.get("/results/turns")).headers["location"] == "/results/login"
        script = await http.get("/results/static/view.js")
        assert script.status_code == 200 and script.headers["cache-control"] != "no-store"
        assert (await http.delete("/results/turns")).status_code == 401
        assert (await http.delete("/results/turns", headers={"origin": "http://evil"})).status_code == 403
        given = await http.post("/results/login", data={"token": TOKEN})
        assert given.headers["location"] == "/results/"
        page = await http.get("/results/turns")
        assert page.status_code == 200
        assert set(re.findall('(?:href|src|action)="(/[a-z]+)', page.text)) == {"/results"}
        assert (await http.get("/results/turns", headers={"host": "other.example"})).status_code == 421


async def test_a_database_that_goes_and_comes_back_is_said_and_shown(db: str, tmp_path: Path) -> None:
    async with client(db) as http:
        os.rename(db, tmp_path / "away.db")
        gone = await http.get("/turns")
        assert gone.status_code == 503 and "there is no results file" in gone.text
        os.rename(tmp_path / "away.db", db)
        assert (await http.get("/turns")).status_code == 200
