"""Runs test programs as processes of their own that find their frameworks already imported.

`import llama_index.core` alone takes two seconds of CPU, and some sixty programs of the tests need it, or
LangChain, or both. Here one process for each worker imports the frameworks, does nothing else, and forks a
child for each program. A child is as separate from the tests and from other children as any process: it has
its own descriptors, environment, folder and exit. Steelyard itself is never imported beforehand, so that each
program runs its start as a user's would.

Programs that test the import of a framework, and hosts that cannot fork so, use `subprocess` as ever.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_ENVIRONMENT = dict(os.environ)
"""What modules see while they are imported beforehand: nothing that a test has set."""
PARENT = Path(__file__).with_name("programs_parent.py")
FRAMEWORKS = ("langchain", "langchain_classic", "langchain_core", "langgraph", "llama_index", "openai")
"""What may be imported beforehand: large, without threads and without effects at import."""
_IMPORTS = re.compile(rf"^\s*(?:from|import) ((?:{'|'.join(FRAMEWORKS)})(?:\.\w+)*)\b", re.MULTILINE)


class Program:
    """A program that runs; the few methods of `subprocess.Popen` that tests need."""

    def __init__(self, command: list[str], process: subprocess.Popen[str] | _Forked) -> None:
        self.args = command
        self._process = process

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for the end, and give what was written to both streams."""
        return self._process.communicate(timeout=timeout)

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    @property
    def returncode(self) -> int | None:
        """The exit status, once `communicate` has returned."""
        return self._process.returncode


def run(
    command: Sequence[str | Path],
    *,
    source: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, like `subprocess.run`, its output captured.

    Args:
        command: What follows `python`: a file, `-m` and a module, or `-c` and code; then arguments.
        source: Text whose imports of frameworks are to be there beforehand.
        cwd: The folder that it runs in.
        env: All of its environment; the tests' own by default.
        timeout: Seconds after which it is ended and `subprocess.TimeoutExpired` raised.
    """
    program = start(command, source=source, cwd=cwd, env=env)
    try:
        out, errors = program.communicate(timeout=timeout)
    except BaseException:
        program.kill()
        raise
    return subprocess.CompletedProcess(program.args, program.returncode or 0, out, errors)


def start(
    command: Sequence[str | Path],
    *,
    source: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Program:
    """Start a program and go on; see `run`."""
    words = [str(word) for word in command]
    env = dict(os.environ if env is None else env)
    if not hasattr(os, "pidfd_open"):
        pipe = subprocess.PIPE
        whole = [sys.executable, *words]
        return Program(words, subprocess.Popen(whole, cwd=cwd, env=env, stdout=pipe, stderr=pipe, text=True))
    imports = sorted(set(_IMPORTS.findall(source)))
    return Program(words, _Forked(_parent(), words, imports, str(cwd or Path.cwd()), env))


class _Forked:
    """A child of the process that holds the frameworks."""

    def __init__(
        self, parent: str, words: list[str], imports: list[str], cwd: str, env: dict[str, str]
    ) -> None:
        self.returncode: int | None = None
        self._words = words
        self._told = "", ""
        self._out = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed when read
        self._err = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._line = socket.socket(socket.AF_UNIX)
        self._line.connect(parent)
        asked = json.dumps({"words": words, "imports": imports, "cwd": cwd, "env": env}).encode()
        socket.send_fds(self._line, [len(asked).to_bytes(8)], [self._out.fileno(), self._err.fileno()])
        self._line.sendall(asked)
        self._pid = int.from_bytes(_exactly(self._line, 8))

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        if self.returncode is None:
            if not select.select([self._line], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self._words, timeout or 0)
            self.returncode = int.from_bytes(_exactly(self._line, 8), signed=True)
            self._line.close()
            with self._out, self._err:
                self._out.seek(0)
                self._err.seek(0)
                self._told = self._out.read(), self._err.read()
        return self._told

    def kill(self) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            self.communicate()


def _exactly(line: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = line.recv(size - len(found))
        if not part:
            raise RuntimeError("the process that holds the frameworks has ended")
        found += part
    return found


@functools.cache
def _parent() -> str:
    """Start this worker's parent of programs; the address of its socket."""
    folder, owner = tempfile.mkdtemp(prefix="programs-"), os.getpid()
    address = os.path.join(folder, "socket")
    command = [sys.executable, str(PARENT), address]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, env=_ENVIRONMENT)

    def end() -> None:
        # A child that a test forks and lets exit runs this too; the folder is still in use then.
        if os.getpid() == owner:
            process.communicate()  # closes its standard input, which it takes for the end
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    for _ in _until(120):
        if os.path.exists(address + ".ready"):
            return address
    raise RuntimeError("the process that holds the frameworks did not start")


def _until(seconds: float) -> Iterator[None]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.01)
