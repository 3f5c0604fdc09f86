"""This machine's own names: who listens there only needs no token, and answers to no other name."""

from __future__ import annotations

from typing import Final

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
