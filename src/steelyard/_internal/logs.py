"""Log lines that never harm what writes them."""

from __future__ import annotations

import logging
from collections.abc import Hashable
from typing import Any

from steelyard._internal.bounded import BoundedDict

# Kinds may be made of names from outside, so there is a bound; a kind that was forgotten is said again.
_REMEMBERED = 1000


class WarnOnce:
    """Logs each kind of problem once.

    Each owner has an object of its own, so two Monitors each log their own problems.

    Args:
        logger: Where the lines go.
    """

    def __init__(self, logger: SafeLogger) -> None:
        self._logger = logger
        self._known: BoundedDict[Hashable, None] = BoundedDict(max_items=_REMEMBERED)

    def __call__(
        self,
        kind: Hashable,
        message: str,
        *args: object,
        level: int = logging.WARNING,
        exc_info: BaseException | bool | None = None,
    ) -> bool:
        """Log a problem unless one of the same kind was logged before; says whether it was logged.

        Args:
            kind: What counts as the same problem.
            message: The line, in the format of `logging`.
            *args: What its placeholders stand for.
            level: A level of `logging`.
            exc_info: An exception whose traceback is logged too.
        """
        if kind in self._known:
            return False
        self._known[kind] = None
        self._logger.log(level, message, *args, exc_info=exc_info)
        return True

    def over(self, kind: Hashable) -> bool:
        """A problem has passed, and is logged again when it comes back; says whether it had been logged."""
        return self._known.pop(kind, self) is None


class SafeLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger whose calls never raise.

    Handlers and filters are the application's, and one that raises would end whatever wrote the line: a
    worker of ours, or the application's own call of `submit`.

    Args:
        name: The logger's name; applications set its level and handlers as usual.
    """

    def __init__(self, name: str) -> None:
        super().__init__(logging.getLogger(name), {})

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Write a line, of the place that called."""
        # One frame more between the caller and the logger than a logger by itself has.
        kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
        try:
            super().log(level, msg, *args, **kwargs)
        except Exception:  # noqa: BLE001 - there is nowhere left to tell it
            return
