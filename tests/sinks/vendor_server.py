"""A loopback HTTP server that stands where a vendor's API would: keeps requests, answers as told."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Answer = tuple[int, Any]


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has left is no news."""


@dataclass
class VendorServer:
    answer: Callable[[Request], Answer] = lambda request: (200, {})
    delay: float = 0.0
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    busy: int = 0
    peak: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    drips: bool = False
    """Whether it answers with a byte now and then, and never to the end."""

    def __enter__(self) -> Self:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                outer.connections += 1
                super().setup()

            def handle_any(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                request = Request(
                    self.command,
                    self.path,
                    {name.lower(): value for name, value in self.headers.items()},
                    body,
                )
                outer.requests.append(request)
                outer.busy += 1
                outer.peak = max(outer.peak, outer.busy)
                time.sleep(outer.delay)
                outer.busy -= 1
                status, reply = outer.answer(request)
                content = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
                self.send_response(status)
                if status in (301, 302, 307):
                    self.send_header("Location", reply)
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content) + 1_000_000 * outer.drips))
                self.end_headers()
                self.wfile.write(content)
                while outer.drips:
                    self.wfile.write(b" ")
                    time.sleep(0.02)

            do_GET = do_POST = do_PATCH = handle_any

            def log_message(self, format: str, *args: Any) -> None: ...

        self.server = _Server(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"
