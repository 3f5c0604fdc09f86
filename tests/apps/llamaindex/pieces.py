"""Components of LlamaIndex that need no network: a model that answers by its prompt, vectors of words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llama_index.core import VectorStoreIndex
from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from apps.island import PASSAGES, embed
from fakes.llamaindex_models import Call, ChatModel, CompletionModel, replied

Rules = Sequence[tuple[tuple[str, ...], Any]]


def _by_rule(rules: Rules, prompt: str) -> Any:
    return next(reply for words, reply in rules if all(word in prompt for word in words))


class Completes(CompletionModel):
    """Replies as the first rule says whose words all stand in the prompt."""

    rules: Any

    def says(self, prompt: str) -> str:
        return str(_by_rule(self.rules, prompt))


class Chats(ChatModel):
    """The same with tools: a rule's reply is a text, or a list of calls."""

    rules: Any

    def replies(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        reply = _by_rule(self.rules, "\n".join(str(message.content) for message in messages))
        return replied(reply) if isinstance(reply, str) else replied("", reply)


def completes(*rules: tuple[str | tuple[str, ...], str], otherwise: str) -> Completes:
    """A completion model with rules, tried in order."""
    return Completes(rules=_plain(rules, otherwise))


def chats(*rules: tuple[str | tuple[str, ...], str | list[Call]], otherwise: str | list[Call]) -> Chats:
    """A chat model with rules, tried in order."""
    return Chats(rules=_plain(rules, otherwise))


def _plain(rules: Sequence[tuple[Any, Any]], otherwise: Any) -> list[tuple[tuple[str, ...], Any]]:
    return [*(((w,) if isinstance(w, str) else w, reply) for w, reply in rules), ((), otherwise)]


class Vectors(BaseEmbedding):
    """Embeds by words."""

    def _get_query_embedding(self, query: str) -> list[float]:
        return embed(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return embed(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return embed(text)


def node(text: str, **metadata: Any) -> TextNode:
    """A passage as a node."""
    number = PASSAGES.index(text) if text in PASSAGES else 99
    return TextNode(id_=f"n{number}", text=text, metadata=metadata)


def index(*texts: str) -> VectorStoreIndex:
    """A real index of these passages."""
    return VectorStoreIndex([node(text) for text in texts], embed_model=Vectors())


class Shelf(BaseRetriever):
    """Finds the same nodes whatever it is asked, unless a word of the query leads elsewhere."""

    def __init__(self, *texts: str, choose: Callable[[str], Sequence[str]] | None = None) -> None:
        super().__init__()
        self.choose = choose or (lambda query: texts)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self.choose(query_bundle.query_str)
        return [NodeWithScore(node=node(text), score=0.9 - at / 10) for at, text in enumerate(found)]
