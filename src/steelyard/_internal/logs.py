"""Log lines that never harm what writes them."""

from __future__ import annotations

import logging
from typing import Any


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
