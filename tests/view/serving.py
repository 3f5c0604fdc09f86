"""The pages in this process, and served by one of their own, as `steelyard serve` does it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

import programs
from steelyard.online import Monitor
from steelyard.view import app

SERVE = """
import socket, sys, uvicorn
from steelyard.view import app
listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen()
print(listening.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app(sys.argv[1]), log_level="warning")).run(sockets=[listening])
"""


@dataclass(frozen=True)
class Server:
    """A process that serves a results file."""

    address: str
    pid: int


@contextmanager
def serving(db: Path) -> Iterator[Server]:
    """A server on a port of its own, until the block ends."""
    with programs.start(["-c", SERVE, str(db)], ours=True, live=True) as server:
        assert server.stdout is not None
        try:
            yield Server(f"http://127.0.0.1:{server.stdout.readline().strip()}", server.pid)
        finally:
            server.terminate()


def opened(browser: Any, width: int, scheme: str) -> tuple[Any, list[str]]:
    """A new page of a browser, and what it says goes wrong."""
    view = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    errors: list[str] = []
    view.on("console", lambda message: errors.append(message.text))
    view.on("pageerror", lambda error: errors.append(str(error)))
    return view, errors


def client(
    db: str,
    *,
    token: str | None = None,
    read_only: bool = False,
    host: str = "127.0.0.1",
    monitor: Monitor | None = None,
    spool: Path | None = None,
) -> httpx.AsyncClient:
    """A client of the pages of a results file."""
    pages = app(db, token=token, read_only=read_only, monitor=monitor, spool=spool)
    transport = httpx.ASGITransport(app=pages)
    return httpx.AsyncClient(transport=transport, base_url=f"http://{host}")
