"""What a NATS server answers, and what its errors mean to a queue."""

from __future__ import annotations

import json
from typing import NoReturn

from nats.aio.msg import Msg
from nats.js.api import PubAck
from nats.js.errors import APIError

from steelyard._internal.redact import error_words
from steelyard.online.queue.broker._broker import Refused

FULL = frozenset({10002, 10023, 10047, 10054, 10077})
"""Codes of the server for: no room, in the account, the server or the stream, or too large a message."""
NOT_LAST = 10071
"""Its code for: there is a message under this subject already."""


def answer_of(answer: Msg) -> PubAck | Exception:
    """What the server says of a message that was published."""
    said = json.loads(answer.data)
    if "error" not in said:
        return PubAck.from_response(said)
    try:
        APIError.from_error(said["error"])
    except APIError as error:
        return error
    raise AssertionError("an error is raised")


def acknowledged(answer: Msg) -> PubAck:
    """The server's confirmation of a message that was published.

    Raises:
        APIError: If it says that it has not stored it.
    """
    found = answer_of(answer)
    if isinstance(found, Exception):
        raise found
    return found


def refuse(error: Exception) -> NoReturn:
    """Raise an error of the server's as one that comes again.

    Raises:
        Refused: Always.
    """
    raise Refused(words(error)) from None


def words(error: Exception) -> str:
    """An error by its type, and by the server's own description, which names no secrets."""
    described = getattr(error, "description", None)
    return f"{error_words(error)}: {described}" if described else error_words(error)
