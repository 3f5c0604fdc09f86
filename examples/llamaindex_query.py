"""A query engine, plain and streaming: the added lines are `instrument` and what prints the scores.

Runs offline: the model is a stand-in, the judge is the embedded one.
"""

from __future__ import annotations

from typing import Any

from llama_index.core import MockEmbedding, Settings, VectorStoreIndex
from llama_index.core.llms import CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.schema import TextNode

from steelyard import Evaluation, Monitor
from steelyard_llamaindex import instrument

ANSWER = "The lighthouse was built in 1811. It is 35 metres high."


class Model(CustomLLM):
    """Stands for your LLM."""

    @property
    def metadata(self) -> LLMMetadata:
        """Nothing special."""
        return LLMMetadata()

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Answer."""
        return CompletionResponse(text=ANSWER)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        """Answer word by word."""
        return (CompletionResponse(text=word, delta=f"{word} ") for word in ANSWER.split())


def show(evaluation: Evaluation) -> None:
    """Print the scores of a turn."""
    for score in evaluation.scores:
        print(f"{score.metric}: {score.value if score.value is not None else score.cause}")


Settings.llm = Model()
Settings.embed_model = MockEmbedding(embed_dim=8)
index = VectorStoreIndex(
    [
        TextNode(text="The lighthouse was built in 1811 and is still in service."),
        TextNode(text="It is 35 metres high."),
    ]
)

monitor = Monitor()
monitor.on_evaluation(show)
instrument(monitor)

print(index.as_query_engine().query("When was the lighthouse built, and how high is it?"))
for piece in index.as_query_engine(streaming=True).query("How high is the lighthouse?").response_gen:  # type: ignore[union-attr]
    print(piece, end="", flush=True)
print()
monitor.flush(timeout=20)  # in a script; a server just goes on
