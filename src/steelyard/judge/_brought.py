"""A client of the openai package that the user has brought along, as a sender."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import openai

from steelyard.judge.endpoint import HTTPReply

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class BroughtClient:
    """Sends what the client would send; its errors become replies again, so that they are named as others.

    Args:
        client: It is used as it is, and closed by whoever made it.
    """

    def __init__(self, client: AsyncOpenAI) -> None:
        self._client = client

    async def exchange(self, path: str, body: Mapping[str, Any]) -> HTTPReply:
        """Post through the client's general method: `chat.completions.create` converts by type hints."""
        try:
            reply = await self._client.post(path, cast_to=openai.HttpxBinaryResponseContent, body=body)
        except openai.APIStatusError as error:
            return HTTPReply(error.status_code, error.response.headers, error.response.content)
        except openai.APITimeoutError as error:
            raise TimeoutError from error
        except openai.APIConnectionError as error:
            raise error.__cause__ or error from None
        return HTTPReply(reply.response.status_code, reply.response.headers, reply.content)

    async def aclose(self) -> None:
        """Nothing: the client belongs to whoever made it."""
