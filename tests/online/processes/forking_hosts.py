"""Programs that fork or spawn in every usual way, each process taking turns: `forking_hosts.py HOST END`.

Every process notes the ids of its turns in `accepted`, and its own number in `ready` once it has taken them.
With END `stay` it then waits to be ended by a signal; with `leave` it goes the way that its host has.
"""

from __future__ import annotations

import asyncio
import importlib
import multiprocessing
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from steelyard.online import Monitor
from steelyard.record import Record
from steelyard.scores import Evaluation
from steelyard.sinks import SQLiteSink

warnings.simplefilter("ignore")
TURNS = 20
CHILDREN = 2
STAYS = sys.argv[-1] == "stay"


class Slow(SQLiteSink):
    """Takes its time, so that turns are pending when the signal comes."""

    pause = 0.2

    async def write(self, evaluations: Sequence[Evaluation]) -> None:
        await asyncio.sleep(self.pause)
        await super().write(evaluations)


monitor = Monitor(metrics=[], sinks=[Slow("results.db")], exit_timeout=40, spool=os.environ.get("SPOOL"))


def note(file: str, line: str) -> None:
    descriptor = os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def take(number: int) -> None:
    name = f"{os.getpid()}-{threading.get_ident()}-{number}-{time.monotonic_ns()}"
    monitor.submit(Record(id=name, question="q", answer="a"))
    note("accepted", name)


def work(_: object = None) -> None:
    for number in range(TURNS):
        take(number)
    note("ready", str(os.getpid()))
    while STAYS:
        time.sleep(0.05)


def forks() -> None:
    children = []
    for _ in range(CHILDREN):
        child = os.fork()
        if child == 0:
            work()
            return
        children.append(child)
    work()
    for child in children:
        os.waitpid(child, 0)


def forks_from_a_thread() -> None:
    def fork() -> None:
        if os.fork() == 0:
            work()
            return
        os.wait()

    threads = [threading.Thread(target=fork) for _ in range(CHILDREN)]
    for thread in threads:
        thread.start()
    work()
    for thread in threads:
        thread.join()


def multiprocesses(method: str) -> None:
    context = multiprocessing.get_context(method)
    children = [context.Process(target=work) for _ in range(CHILDREN)]  # type: ignore[attr-defined]
    for child in children:
        child.start()
    work()
    for child in children:
        child.join()


def executes(method: str) -> None:
    with ProcessPoolExecutor(CHILDREN, mp_context=multiprocessing.get_context(method)) as executor:
        list(executor.map(work, range(CHILDREN)))
    work()


def pools() -> None:
    with multiprocessing.get_context("fork").Pool(CHILDREN) as pool:
        pool.map(work, range(CHILDREN))
    work()


def billiard_pools() -> None:
    billiard = importlib.import_module("billiard")
    Slow.pause = 3  # its workers wait for a second before they end
    with billiard.Pool(CHILDREN) as pool:
        pool.map(work, range(CHILDREN))
        pool.close()
        pool.join()
    work()


def wsgi(environ: object, start_response: Callable[..., object]) -> list[bytes]:
    """For gunicorn: a turn with each request."""
    take(0)
    start_response("200 OK", [("content-type", "text/plain")])
    return [b"taken"]


async def asgi(scope: dict[str, str], receive: Callable[..., Any], send: Callable[..., Any]) -> None:
    """For uvicorn: a turn with each request."""
    if scope["type"] != "http":
        return
    take(0)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"taken"})


HOSTS: dict[str, Callable[[], None]] = {
    "os.fork": forks,
    "os.fork from a thread": forks_from_a_thread,
    "multiprocessing fork": lambda: multiprocesses("fork"),
    "multiprocessing spawn": lambda: multiprocesses("spawn"),
    "multiprocessing forkserver": lambda: multiprocesses("forkserver"),
    "executor fork": lambda: executes("fork"),
    "executor spawn": lambda: executes("spawn"),
    "pool": pools,
    "pool of billiard": billiard_pools,
}


def spin() -> None:
    """Turns of the parent, so that a sink writes while it forks."""
    for number in range(100):
        take(number)
        time.sleep(0.001)


if __name__ == "__main__":
    spinning = threading.Thread(target=spin)
    spinning.start()
    time.sleep(0.1)
    HOSTS[sys.argv[1]]()
    spinning.join()
