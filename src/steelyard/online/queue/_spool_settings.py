"""How a spool file is used."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from steelyard._internal.redact import error_words
from steelyard.errors import ConfigurationError
from steelyard.online.queue._spool_file import check
from steelyard.online.queue._spool_schema import Durability


@dataclass(frozen=True, kw_only=True, slots=True)
class SpoolSettings:
    """A spool file and how it is used."""

    path: str | Path
    """The file; made if it is not there."""
    max_bytes: int = 1024**3
    """Size of what may be pending in it; more is skipped as `spool_full`."""
    durability: Durability = "normal"
    """`normal` survives a crash of the process, `full` also one of the machine."""
    lease_seconds: float = 60.0
    """Seconds after which a turn is taken over whose process has died."""
    evaluate: bool = True
    """Whether this process judges what is in it; False leaves that to `steelyard worker`."""

    def __post_init__(self) -> None:
        # The process may change its folder before the first turn.
        object.__setattr__(self, "path", Path(self.path).absolute())
        folder = Path(self.path).parent
        if not folder.is_dir():
            raise ConfigurationError(f"the spool's folder {str(folder)!r} does not exist; create it first")
        if self.durability not in get_args(Durability):
            raise ConfigurationError(f"durability must be 'normal' or 'full', not {self.durability!r}")
        if not self.max_bytes > 0 or not self.lease_seconds > 0:
            raise ConfigurationError("max_bytes and lease_seconds of a spool must be more than 0")
        if os.path.lexists(self.path):
            try:
                check(Path(self.path))
            except OSError as error:
                problem = f"the spool {str(self.path)!r} cannot be read: {error_words(error)}"
                raise ConfigurationError(problem) from None
