"""Parts for the tests: real components of LlamaIndex whose documents and words are fixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from fakes.llamaindex_models import Call, ChatModel, CompletionModel, replied
from fakes.receiver import Receiver as Receiver
from steelyard.record import Record

CORE = tuple(int(part) for part in version("llama-index-core").split(".")[:3])
QUESTION = "What is the capital of France?"
ANSWER = "The capital of France is Paris."
PARIS = "Paris is the capital of France."
FRANCE = "France is a country in Europe."
BERLIN = "Berlin is the capital of Germany."
TEXTS = {"d1": (PARIS, 0.91), "d2": (FRANCE, 0.55), "d3": (BERLIN, 0.31)}


def node(key: str) -> NodeWithScore:
    text, score = TEXTS[key]
    return NodeWithScore(node=TextNode(id_=key, text=text), score=score)


class Fixed(BaseRetriever):
    """Finds the same documents whatever it is asked."""

    def __init__(self, *keys: str, error: Exception | None = None) -> None:
        super().__init__()
        self.keys = keys or ("d1", "d2", "d3")
        self.error = error

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self.error is not None:
            raise self.error
        return [node(key) for key in self.keys]


class Scripted(CompletionModel):
    """Says what a function of its prompt says."""

    window: int = 8000
    say: Callable[[str], str] = lambda prompt: ANSWER

    def says(self, prompt: str) -> str:
        return self.say(prompt)


class Caller(ChatModel):
    """Follows a script: either a text, or a call of a tool with its arguments."""

    script: list[str | Call]

    def replies(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        done = sum(message.role == MessageRole.ASSISTANT for message in messages)
        line = self.script[min(done, len(self.script) - 1)]
        return replied(line) if isinstance(line, str) else replied("", [line])


def engine(
    *keys: str,
    mode: str = "compact",
    streaming: bool = False,
    say: Callable[[str], str] | None = None,
    postprocessors: Sequence[Any] = (),
    retriever: BaseRetriever | None = None,
    llm: Any = None,
    **options: Any,
) -> RetrieverQueryEngine:
    """A query engine over fixed documents."""
    model = llm or Scripted(say=say or (lambda prompt: ANSWER))
    synthesizer = get_response_synthesizer(
        llm=model, response_mode=ResponseMode(mode), streaming=streaming, **options
    )
    return RetrieverQueryEngine(
        retriever=retriever or Fixed(*keys),
        response_synthesizer=synthesizer,
        node_postprocessors=list(postprocessors),
    )


def texts(record: Record) -> list[str]:
    return [context.text for context in record.contexts]
