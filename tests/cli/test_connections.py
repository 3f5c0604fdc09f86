"""Connections of the commands that listen: none is held for nothing."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed")

import uvicorn
from starlette.types import Receive, Scope, Send

from steelyard.cli import _server

GET = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
ENDLESS = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"


async def refuses(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers without reading a body."""
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": b"no"})


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    monkeypatch.setattr(_server, "_LOOK", 0.6)
    http = _server.bounded_protocol()
    server = uvicorn.Server(uvicorn.Config(refuses, http=http, log_level="critical", lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield listening.getsockname()
        server.should_exit = True
        thread.join()


@pytest.mark.parametrize("sent", [b"", GET])
def test_a_connection_on_which_no_request_comes_is_closed(address: tuple[str, int], sent: bytes) -> None:
    with socket.create_connection(address, timeout=30) as connection:
        connection.sendall(sent)
        assert connection.recv(1) == b""


def test_a_refused_body_without_end_is_not_read_for_ever(address: tuple[str, int]) -> None:
    until = time.monotonic() + 30
    with socket.create_connection(address, timeout=30) as connection:
        connection.sendall(ENDLESS)
        assert b"413" in connection.recv(1000)
        with contextlib.suppress(ConnectionError):
            while time.monotonic() < until:
                connection.sendall(b"1\r\na\r\n")
                time.sleep(0.005)
        assert time.monotonic() < until


def test_a_connection_that_is_used_stays(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=30) as connection:
        for _ in range(5):
            connection.sendall(GET + b"\r\n")
            assert b"413" in connection.recv(1000)
            time.sleep(0.2)
