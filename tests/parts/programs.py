"""Runs test programs as processes of their own that find their frameworks already imported.

`import llama_index.core` alone takes two seconds of CPU, and some sixty programs of the tests need it, or
LangChain, or both. Here one process for each worker imports the frameworks, does nothing else, and forks a
child for each program. A child is as separate from the tests and from other children as any process: it has
its own descriptors, environment, folder and exit. Steelyard itself is not imported beforehand, so that each
program runs its start as a user's would, unless that is not what a test is about (`ours`): one process more
holds Steelyard as well, since a command takes a second of CPU to be imported.

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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, Protocol, Self

_ENVIRONMENT = dict(os.environ)
"""What modules see while they are imported beforehand: nothing that a test has set."""
PARENT = Path(__file__).with_name("programs_parent.py")
FRAMEWORKS = ("langchain", "langchain_classic", "langchain_core", "langgraph", "llama_index", "openai")
"""What may be imported beforehand: large, without threads and without effects at import."""
_IMPORTS = re.compile(rf"^\s*(?:from|import) ((?:{'|'.join(FRAMEWORKS)})(?:\.\w+)*)\b", re.MULTILINE)
STEELYARD = ("-c", "from steelyard.cli import main; main()")
"""The command, as `python` takes it."""
_OURS = (
    *("aiohttp", "opentelemetry.sdk.trace", "rich.table", "tokenizers", "uvicorn", "steelyard_opentelemetry"),
    *(f"steelyard.{name}" for name in ("cli.commands._queue", "cli._judges", "sinks", "testing", "view")),
)
"""What is imported beforehand where the import of Steelyard is not what is tested."""


class Program(Protocol):
    """A program that runs; the parts of `subprocess.Popen` that tests need."""

    args: Any
    pid: int
    returncode: int | Any
    stdout: Any
    stderr: Any

    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: Any) -> None: ...
    def communicate(self, *, timeout: float | None = None) -> tuple[str, str]: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, number: int, /) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


def run(
    command: Sequence[str | Path],
    *,
    source: str = "",
    ours: bool = False,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, like `subprocess.run`, its output captured.

    Args:
        command: What follows `python`: a file, `-m` and a module, or `-c` and code; then arguments.
        source: Text whose imports of frameworks are to be there beforehand.
        ours: Whether Steelyard is to be there as well.
        cwd: The folder that it runs in.
        env: All of its environment; the tests' own by default.
        timeout: Seconds after which it is ended and `subprocess.TimeoutExpired` raised.
    """
    program = start(command, source=source, ours=ours, cwd=cwd, env=env)
    try:
        out, errors = program.communicate(timeout=timeout)
    except BaseException:
        program.kill()
        raise
    return subprocess.CompletedProcess(program.args, program.returncode, out, errors)


def start(
    command: Sequence[str | Path],
    *,
    source: str = "",
    ours: bool = False,
    live: bool = False,
    session: bool = False,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Program:
    """Start a program and go on; see `run`.

    `live` makes its streams pipes, to be read as it runs. Else it may write without end before anybody reads.
    `session` gives it a session of its own, which can be sent a signal as a whole.
    """
    words = [str(word) for word in command]
    env = dict(os.environ if env is None else env)
    if not hasattr(os, "pidfd_open"):
        pipe, whole = subprocess.PIPE, [sys.executable, *words]
        return subprocess.Popen(
            whole, cwd=cwd, env=env, stdout=pipe, stderr=pipe, text=True, start_new_session=session
        )
    asked = {
        "words": words,
        "imports": sorted({*_IMPORTS.findall(source), *(_OURS if ours else ())}),
        "cwd": str(cwd or Path.cwd()),
        "env": env,
        "session": session,
    }
    return _Forked(_parent(ours), words, asked, live=live)


class _Forked:
    """A child of the process that holds the frameworks."""

    def __init__(self, parent: str, words: list[str], asked: dict[str, Any], *, live: bool) -> None:
        self.args = words
        self.returncode: int | Any = None
        self._live = live
        self._told: tuple[str, str] | None = None
        (self.stdout, out), (self.stderr, errors) = _stream(live=live), _stream(live=live)
        self._line = socket.socket(socket.AF_UNIX)
        self._line.connect(parent)
        text = json.dumps(asked).encode()
        socket.send_fds(self._line, [len(text).to_bytes(8)], [out, errors])
        self._line.sendall(text)
        self.pid = int.from_bytes(_exactly(self._line, 8))
        if live:
            os.close(out)
            os.close(errors)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: Any) -> None:
        self.communicate()

    def communicate(self, *, timeout: float | None = None) -> tuple[str, str]:
        """Wait for the end, and give what was written to both streams and not read yet."""
        if self._told is not None:
            return self._told
        if self._live:
            with ThreadPoolExecutor(2) as reading:
                parts = [reading.submit(_rest, stream) for stream in (self.stdout, self.stderr)]
                try:
                    self._told = parts[0].result(timeout), parts[1].result(timeout)
                except TimeoutError:
                    self.send_signal(signal.SIGKILL)
                    raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
        self.wait(timeout)
        if self._told is None:
            self.stdout.seek(0)
            self.stderr.seek(0)
            self._told = self.stdout.read(), self.stderr.read()
        self.stdout.close()
        self.stderr.close()
        return self._told

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end."""
        if self.returncode is None:
            if not select.select([self._line], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = int.from_bytes(_exactly(self._line, 8), signed=True)
            self._line.close()
        return int(self.returncode)

    def poll(self) -> int | None:
        """Its exit status, if it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def send_signal(self, number: int, /) -> None:
        """Send it a signal, if it runs."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)
        self.communicate()


def _stream(*, live: bool) -> tuple[IO[str], int]:
    """What the tests read, and the descriptor that a program writes to."""
    if live:
        read, written = os.pipe()
        return open(read), written
    file = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed when read
    return file, file.fileno()


def _rest(stream: IO[str]) -> str:
    """All that nobody has read yet, if somebody may."""
    return "" if stream.closed else stream.read()


def _exactly(line: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = line.recv(size - len(found))
        if not part:
            raise RuntimeError("the process that holds the frameworks has ended")
        found += part
    return found


@functools.cache
def _parent(ours: bool) -> str:
    """Start this worker's parent of programs, or the one that holds Steelyard; the address of its socket."""
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
