"""A real Phoenix server in an environment of its own, which is made once and kept in the user's cache."""

from __future__ import annotations

import os
import socket
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
    python, port = _python(), _free_port()
    with tempfile.TemporaryDirectory() as folder, open(Path(folder) / "log", "w+") as log:
        env = {key: value for key, value in os.environ.items() if not key.startswith(("PHOENIX_", "OTEL_"))}
        env |= {
            "PHOENIX_WORKING_DIR": folder,
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(port),
            "PHOENIX_GRPC_PORT": str(_free_port()),
            "PHOENIX_TELEMETRY_ENABLED": "false",
        }
        command = [str(python), "-m", "phoenix.server.main", "serve"]
        server = subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait(f"http://127.0.0.1:{port}/healthz", server, Path(log.name))
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(120)


def _python() -> Path:
    """The interpreter of an environment with Phoenix in it."""
    folder = _CACHE / f"phoenix-{VERSION}-py{sys.version_info.major}{sys.version_info.minor}"
    python, done = folder / "bin" / "python", folder / "installed"
    if not done.exists():
        venv.create(folder, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "-q", f"arize-phoenix=={VERSION}"]
        installed = subprocess.run(command, capture_output=True, text=True, check=False)
        if installed.returncode:
            raise NotInstallable(f"arize-phoenix cannot be installed: {installed.stderr.strip()[-200:]}")
        done.touch()
    return python


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _wait(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=60):
                return
        except (OSError, urllib.error.URLError):
            time.sleep(0.2)
    raise AssertionError(f"Phoenix did not answer: {log.read_text()[-2000:]}")
