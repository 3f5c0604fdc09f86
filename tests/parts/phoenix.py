"""Real servers in environments of their own, which are made once and kept in the user's cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers import free_port

VERSION = "20.26.1"
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "steelyard-tests"


class NotInstallable(Exception):
    """Phoenix cannot be installed here."""


@contextmanager
def phoenix_server() -> Iterator[str]:
    """The address of a server that answers.

    Raises:
        NotInstallable: If there is no such package.
    """
    python, port = installed(f"phoenix-{VERSION}", f"arize-phoenix=={VERSION}"), free_port()
    with tempfile.TemporaryDirectory() as folder, open(Path(folder) / "log", "w+") as log:
        env = {key: value for key, value in os.environ.items() if not key.startswith(("PHOENIX_", "OTEL_"))}
        env |= {
            "PHOENIX_WORKING_DIR": folder,
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(port),
            "PHOENIX_GRPC_PORT": str(free_port()),
            "PHOENIX_TELEMETRY_ENABLED": "false",
        }
        command = [str(python), "-m", "phoenix.server.main", "serve"]
        server = subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT)
        try:
            until_it_answers(f"http://127.0.0.1:{port}/healthz", server, Path(log.name))
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(120)


def installed(name: str, *packages: str) -> Path:
    """The interpreter of an environment with some packages in it, which is made once.

    Raises:
        NotInstallable: If they cannot be installed here.
    """
    folder = _CACHE / f"{name}-py{sys.version_info.major}{sys.version_info.minor}"
    python, done = folder / "bin" / "python", folder / "installed"
    if not done.exists():
        venv.create(folder, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "-q", *packages]
        done_so = subprocess.run(command, capture_output=True, text=True, check=False)
        if done_so.returncode:
            raise NotInstallable(f"{packages[0]} cannot be installed: {done_so.stderr.strip()[-200:]}")
        done.touch()
    return python


def until_it_answers(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=60):
                return
        except (OSError, urllib.error.URLError):
            time.sleep(0.2)
    raise AssertionError(f"the server did not answer: {log.read_text()[-2000:]}")
