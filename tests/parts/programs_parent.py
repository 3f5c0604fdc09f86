"""The process that imports frameworks and forks a child for each program; see `programs`.

It has one thread. Every request comes over a connection of its own, which is told the child's id and later
its exit status. Its end is that of its standard input.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import selectors
import socket
import sys
import types
import warnings
from pathlib import Path
from typing import Any

Request = dict[str, Any]


def serve(address: str) -> Request | None:
    """Fork a child for each request; only a child returns one."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    Path(address + ".ready").touch()
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fd == sys.stdin.fileno():
                return None
            if key.fileobj is not listener:
                selector.unregister(key.fd)
                end(key.fd, *key.data)
                continue
            connection, _ = listener.accept()
            request, descriptors = received(connection)
            begin(request["imports"])
            pid = fork()
            if pid == 0:
                for other in list(selector.get_map().values()):
                    if other.data:
                        other.data[1].close()
                        os.close(other.fd)
                selector.close()
                listener.close()
                connection.close()
                become(request, descriptors)
                return request
            for descriptor in descriptors:
                os.close(descriptor)
            connection.sendall(pid.to_bytes(8))
            selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, connection))


def received(connection: socket.socket) -> tuple[Request, list[int]]:
    """One request, and the descriptors of both its streams."""
    size, descriptors, _, _ = socket.recv_fds(connection, 8, 2)
    with connection.makefile("rb") as stream:
        request: Request = json.loads(stream.read(int.from_bytes(size)))
    return request, descriptors


def end(watched: int, pid: int, connection: socket.socket) -> None:
    """Tell how a child has ended, if anyone still wants to know."""
    os.close(watched)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        connection.sendall(status.to_bytes(8, signed=True))
    except BrokenPipeError:
        pass
    finally:
        connection.close()


def begin(imports: list[str]) -> None:
    """Import frameworks, and keep every child's collections off them."""
    missing = [name for name in imports if name not in sys.modules]
    if not missing:
        return
    gc.disable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in missing:
            try:
                importlib.import_module(name)
            except ImportError:  # the program will say so itself
                continue
    gc.collect()
    gc.freeze()
    gc.enable()


def fork() -> int:
    """Fork; libraries of linear algebra have threads of their own, which they make anew in a child."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def become(request: Request, descriptors: list[int]) -> None:
    """Take the streams, the folder and the environment of the program."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, stream in zip((nothing, *descriptors), (0, 1, 2), strict=True):
        os.dup2(descriptor, stream)
        os.close(descriptor)
    if request["session"]:
        os.setsid()
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    encoding = os.environ.get("PYTHONIOENCODING")
    # Anew: those of this process remember whether they could be sought in.
    sys.stdin = open(0, encoding=encoding, closefd=False)  # noqa: SIM115 - the program's, to its end
    sys.stdout = open(1, "w", encoding=encoding, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding, "backslashreplace", closefd=False)  # noqa: SIM115
    del sys.path[0]
    for folder in reversed(os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        if folder:
            sys.path.insert(0, folder)
    for action in reversed(os.environ.get("PYTHONWARNINGS", "").split(",")):
        if action:
            warnings.simplefilter(action)  # type: ignore[arg-type]


def execute(words: list[str]) -> None:
    """Run a program as `python` would; what it raises ends the process."""
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    if words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        sys.path.insert(0, "")
        exec(compile(words[1], "<string>", "exec"), main.__dict__)
    elif words[0] == "-m":
        sys.argv = words[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path.insert(0, str(Path(words[0]).parent))
        code = compile(Path(words[0]).read_bytes(), words[0], "exec")
        main.__file__ = words[0]
        exec(code, main.__dict__)


if __name__ == "__main__":
    program = serve(sys.argv[1])
    if program is not None:
        execute(program["words"])
