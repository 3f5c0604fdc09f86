"""The address of a queue on a broker, taken apart and checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import SplitResult, parse_qsl, urlsplit

from steelyard._internal.redact import redacted_url
from steelyard.errors import ConfigurationError

NATS = frozenset({"nats", "tls"})
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NATS_OPTIONS = frozenset({"queue", "replicas", "credentials"})


def is_address(path: object) -> bool:
    """Whether this names a server rather than a file."""
    return isinstance(path, str) and "://" in path


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Where a broker is, and which of its queues is meant."""

    scheme: str
    """`nats`, or `tls` for NATS with TLS."""
    servers: tuple[str, ...] = field(repr=False)
    """Addresses for the client, with user and password; several for a NATS cluster."""
    shown: str
    """The address as it may be logged."""
    queue: str
    """The name that streams, subjects and queues on the broker begin with."""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What else stood behind the question mark."""

    @classmethod
    def of(cls, url: str) -> Self:
        """Take an address apart.

        Raises:
            ConfigurationError: If it cannot be one; the message shows no password.
        """
        shown = redacted_url(url)
        try:
            parts = urlsplit(url)
            options = dict(parse_qsl(parts.query, keep_blank_values=True))
        except ValueError:
            raise ConfigurationError("the spool's address cannot be read as a URL") from None
        if parts.scheme not in NATS:
            raise ConfigurationError(
                f"the spool {shown!r} is neither a file nor a broker; addresses begin with nats:// or tls://"
            )
        if not parts.netloc.rpartition("@")[2]:
            raise ConfigurationError(f"the spool's address {shown!r} names no host")
        queue = options.pop("queue", "steelyard")
        if not _NAME.fullmatch(queue):
            raise ConfigurationError(
                f"queue={queue!r} in the spool's address: a name has up to 64 letters, digits, '_' and '-'"
            )
        _check_nats(options)
        return cls(parts.scheme, _servers(parts), shown, queue, options)


def _check_nats(options: Mapping[str, str]) -> None:
    if unknown := set(options) - _NATS_OPTIONS:
        raise ConfigurationError(
            f"the spool's address has no option {min(unknown)!r}; there are "
            f"{', '.join(sorted(_NATS_OPTIONS))}"
        )
    replicas = options.get("replicas", "1")
    if replicas not in {"1", "3", "5"}:
        raise ConfigurationError(f"replicas={replicas!r} in the spool's address must be 1, 3 or 5")


def _servers(parts: SplitResult) -> tuple[str, ...]:
    user, at, hosts = parts.netloc.rpartition("@")
    return tuple(f"{parts.scheme}://{user}{at}{host.strip()}" for host in hosts.split(",") if host.strip())
