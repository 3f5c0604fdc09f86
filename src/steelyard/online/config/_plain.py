"""The options of a Monitor that mean the same in code, in a variable and in a file, declared once."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import TIMEOUT_MAX
from typing import get_args

from steelyard.errors import ConfigurationError
from steelyard.questions import Fuse
from steelyard.record import check_user_key

_WHOLE = ("concurrency", "max_queue", "max_queue_bytes")
_SECONDS = ("deadline", "mask_timeout", "sink_timeout")
_MAY_BE_NONE = ("exit_timeout", "throttle")
_SHARES = ("screen_rate", "screen_floor")
_MOST = 2**40


@dataclass(frozen=True, kw_only=True)
class PlainOptions:
    """Numbers, switches and words: their names, types, defaults, meaning and checks stand here only."""

    store_content: bool = True
    """Whether results carry the turn's texts; without, they have numbers and positions."""
    score_guesses: bool = False
    """Whether turns are judged by passages that were guessed from a prompt."""
    user_key: str = field(default="", repr=False)
    """The key under which users are hashed; empty: who asked is not stored."""
    sample_key: str = field(default="", repr=False)
    """The key of the hash that picks turns; empty: callers can choose what is picked."""
    fuse: Fuse = "view"
    """How questions share requests: `view`, `record` or `off`."""
    concurrency: int = 8
    """Turns judged at the same time."""
    deadline: float = 120.0
    """Seconds for judging one turn."""
    mask_timeout: float = 10.0
    """Seconds that a mask may take."""
    sink_timeout: float = 10.0
    """Seconds for one write to a sink."""
    max_queue: int = 10_000
    """Turns that may wait; the newest is dropped if there are more."""
    max_queue_bytes: int = 64 * 1024 * 1024
    """Roughly how many bytes they may keep alive."""
    exit_timeout: float = 5.0
    """Seconds that `close` and the end of the program wait for what is pending."""
    throttle: float = 0.0
    """Turns judged per minute at most; 0 for no limit."""
    screen_rate: float = 1.0
    """With a screen: the share of turns that it scores."""
    screen_floor: float = 0.3
    """With a screen: the share of its own rate that every turn keeps, however sure the screen is of it."""
    screen_file: str = ""
    """With a screen: the file that keeps what it has learnt from the judge; empty: it learns nothing."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigurationError: Naming the option.
        """
        for name in _WHOLE:
            value = getattr(self, name)
            # True is a whole number to Python, and never meant as one.
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < _MOST:
                raise ConfigurationError(f"{name} must be a whole number of at least 1, not {value!r}")
        for name in (*_SECONDS, *_MAY_BE_NONE):
            value = getattr(self, name)
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_number or not 0 <= value <= TIMEOUT_MAX or (name in _SECONDS and not value):
                unit = "turns a minute" if name == "throttle" else "seconds"
                least = "" if name in _MAY_BE_NONE else " above 0"
                raise ConfigurationError(f"{name} must be a number of {unit}{least}, not {value!r}")
        self._check_shares()
        check_user_key(self.user_key)
        check_user_key(self.sample_key, "sample_key")
        if self.fuse not in get_args(Fuse):
            raise ConfigurationError(f"fuse must be one of {', '.join(get_args(Fuse))}, not {self.fuse!r}")

    def _check_shares(self) -> None:
        for name in _SHARES:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
                raise ConfigurationError(f"{name} must be a number from 0 to 1, not {value!r}")
