"""A spool, in a file or on a broker, and how it is used."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from steelyard._internal.redact import error_words
from steelyard.errors import ConfigurationError
from steelyard.online.queue._spool_file import check
from steelyard.online.queue._spool_schema import Durability
from steelyard.online.queue.broker._address import BrokerAddress, is_address


@dataclass(frozen=True, kw_only=True, slots=True)
class SpoolSettings:
    """Where picked turns are kept until they are judged and delivered: a file, or a queue on a broker."""

    path: str | Path = field(repr=False)
    """The file, made if it is not there; or a broker's address: `nats://HOST:PORT` or `amqp://HOST:PORT`."""
    max_bytes: int = 1024**3
    """Size of what may be pending in it; more is skipped as `spool_full`. On a broker it counts where the
    stream or queue is created; one that is there keeps its own."""
    durability: Durability = "normal"
    """For a file: `normal` survives a crash of the process, `full` also one of the machine."""
    lease_seconds: float = 60.0
    """Seconds after which a turn is taken over whose process has died. NATS keeps what its consumer was
    created with; RabbitMQ gives turns back as soon as a connection ends."""
    evaluate: bool = True
    """Whether this process judges what is in it; False leaves that to `steelyard worker`."""
    fallback: str | Path | None = field(default=None, repr=False)
    """Beside a broker, in a process that does not judge: a file that takes turns while the broker cannot be
    used, and gives them to the broker afterwards."""
    address: BrokerAddress | None = field(init=False, repr=False, compare=False, default=None)
    """The broker's address, taken apart; None for a file."""
    shown: str = field(init=False, compare=False, default="")
    """The path or address as it may be shown: without user, password and options."""
    beside: SpoolSettings | None = field(init=False, repr=False, compare=False, default=None)
    """How the fallback is used."""

    def __post_init__(self) -> None:
        if self.durability not in get_args(Durability):
            raise ConfigurationError(f"durability must be 'normal' or 'full', not {self.durability!r}")
        if not self.max_bytes > 0 or not self.lease_seconds > 0:
            raise ConfigurationError("max_bytes and lease_seconds of a spool must be more than 0")
        if isinstance(self.path, str) and is_address(self.path):
            self._check_address(self.path)
        else:
            self._check_file()
        self._check_fallback()

    def _check_fallback(self) -> None:
        if self.fallback is None:
            return
        if self.address is None or self.evaluate:
            raise ConfigurationError("fallback is for a broker's address with evaluate=False")
        beside = SpoolSettings(
            path=self.fallback, max_bytes=self.max_bytes, lease_seconds=self.lease_seconds, evaluate=False
        )
        if beside.address is not None:
            raise ConfigurationError("fallback must be a file, not another broker's address")
        object.__setattr__(self, "beside", beside)

    def _check_address(self, path: str) -> None:
        address = BrokerAddress.of(path)
        object.__setattr__(self, "address", address)
        object.__setattr__(self, "shown", address.shown)
        if self.durability != "normal":
            raise ConfigurationError("durability is for a spool file; how a broker stores is its own setting")

    def _check_file(self) -> None:
        # The process may change its folder before the first turn.
        object.__setattr__(self, "path", Path(self.path).absolute())
        object.__setattr__(self, "shown", str(self.path))
        folder = Path(self.path).parent
        if not folder.is_dir():
            raise ConfigurationError(f"the spool's folder {str(folder)!r} does not exist; create it first")
        if os.path.lexists(self.path):
            try:
                check(Path(self.path))
            except OSError as error:
                problem = f"the spool {str(self.path)!r} cannot be read: {error_words(error)}"
                raise ConfigurationError(problem) from None
