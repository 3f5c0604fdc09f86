"""Components of LangChain that need no network: a model that answers by its prompt, and stores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import InMemoryVectorStore

from apps.island import PASSAGES, embed
from fakes.langchain_models import SpeakingModel

Reply = str | AIMessage | Exception

PROMPTS: list[tuple[str, str]] = []
"""Every prompt that any model was sent, with its reply: what really happened."""


class Model(SpeakingModel):
    """Replies as the first rule says whose words all stand in the prompt."""

    rules: list[Any]

    def reply_to(self, messages: list[BaseMessage], manager: Any) -> AIMessage:
        prompt = "\n".join(str(message.content) for message in messages)
        reply: Reply = next(reply for words, reply in self.rules if all(word in prompt for word in words))
        if isinstance(reply, Exception):
            raise reply
        made = AIMessage(content=reply) if isinstance(reply, str) else reply.model_copy()
        PROMPTS.append((prompt, f"{made.content}{[call['args'] for call in made.tool_calls] or ''}"))
        return made


def model(*rules: tuple[str, Reply] | tuple[tuple[str, ...], Reply], otherwise: Reply = "Yes.") -> Model:
    """A model with rules, tried in order, and what it says where none holds."""
    plain = [((words,) if isinstance(words, str) else words, reply) for words, reply in rules]
    return Model(rules=[*plain, ((), otherwise)])


def calls(name: str, **arguments: Any) -> AIMessage:
    """A model's wish to call a tool, or its filled-in form where the tool is a schema."""
    call = {"name": name, "args": arguments, "id": f"call-{name}-{len(arguments)}", "type": "tool_call"}
    return AIMessage(content="", tool_calls=[call])


def documents(*texts: str, **metadata: Any) -> list[Document]:
    """Passages as the documents of a store, each with its source."""
    return [
        Document(id=f"p{number}", page_content=text, metadata={"source": f"island/{number}.md", **metadata})
        for number, text in ((PASSAGES.index(text) if text in PASSAGES else 99, text) for text in texts)
    ]


class Shelf(BaseRetriever):
    """Returns the same documents whatever is asked, unless a word of the query leads elsewhere."""

    found: list[Document]
    by_word: dict[str, list[Document]] = {}

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return next((list(found) for word, found in self.by_word.items() if word in query), list(self.found))


def shelf(*texts: str, by_word: Mapping[str, Sequence[str]] | None = None) -> Shelf:
    """A retriever that finds these passages, in this order."""
    return Shelf(
        found=documents(*texts),
        by_word={word: documents(*found) for word, found in (by_word or {}).items()},
    )


class WordVectors(Embeddings):
    """Embeds by words."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [embed(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return embed(text)


def store(*texts: str) -> InMemoryVectorStore:
    """A real vector store that holds these passages."""
    made = InMemoryVectorStore(WordVectors())
    made.add_documents(documents(*texts))
    return made


def joined(found: Sequence[Document]) -> str:
    """The passages with a blank line between them."""
    return "\n\n".join(document.page_content for document in found)


def prompt(text: str) -> ChatPromptTemplate:
    """A prompt of one user message."""
    return ChatPromptTemplate.from_template(text)


ANSWERING = prompt("Use only this context to answer.\n\n{context}\n\nQuestion: {question}")
"""The prompt of most tutorials."""


def answering(answer: str, template: ChatPromptTemplate = ANSWERING) -> Runnable[Any, str]:
    """Prompt, model and parser: what stands at the end of most chains."""
    return template | model(otherwise=answer) | StrOutputParser()


def by_key(name: str) -> Callable[[Mapping[str, Any]], Any]:
    """Reads a key of the input."""
    return lambda given: given[name]
