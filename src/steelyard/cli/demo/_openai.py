"""A chat model on any server that speaks OpenAI's protocol, for a demo that was told to use one."""

from __future__ import annotations

from typing import Any

import openai
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from openai.types.chat import ChatCompletionMessageParam
from pydantic import PrivateAttr

from steelyard.errors import ConfigurationError


class OpenAIChatModel(BaseChatModel):
    """Sends the prompt to a server; LangChain's own integration package is not needed."""

    name: str
    """The model's name."""
    base_url: str | None = None
    """The server; OpenAI's own where none is given."""
    api_key: str
    """The key."""
    _client: openai.OpenAI = PrivateAttr()

    def __init__(self, **data: Any) -> None:
        super().__init__(**data)
        self._client = openai.OpenAI(api_key=self.api_key, base_url=self.base_url, timeout=60)

    @property
    def _llm_type(self) -> str:
        return "openai"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        try:
            reply = self._client.chat.completions.create(
                model=self.name, messages=[_wire(message) for message in messages]
            )
        except openai.OpenAIError as error:
            raise ConfigurationError(f"the model {self.name!r} does not answer: {error}") from None
        text = reply.choices[0].message.content if reply.choices else None
        message = AIMessage(content=(text or "").strip())
        return ChatResult(generations=[ChatGeneration(message=message)])


def _wire(message: BaseMessage) -> ChatCompletionMessageParam:
    if message.type == "system":
        return {"role": "system", "content": message.text}
    return {"role": "user", "content": message.text}
