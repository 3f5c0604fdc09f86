"""A query engine as a function that answers from passages it is handed, for experiments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from steelyard.errors import ConfigurationError
from steelyard.record import Context
from steelyard.recording import unrecorded


def replay_of(engine: BaseQueryEngine) -> Callable[[str, Sequence[Context]], str]:
    """A query engine of LlamaIndex without its retrieval, for `steelyard.diagnosis.Experiments`.

    Its synthesizer answers from the passages it is handed; no retriever and no postprocessor runs, and
    nothing is traced.

    Args:
        engine: One that can `synthesize`, as `index.as_query_engine()` makes.

    Returns:
        `replay(question, contexts)`.

    Raises:
        ConfigurationError: If it cannot.
    """
    if getattr(type(engine), "synthesize", None) in (None, BaseQueryEngine.synthesize):
        raise ConfigurationError(
            f"replay_of takes a query engine that can synthesize, not {type(engine).__name__}; write "
            "replay(question, contexts) yourself"
        )

    def replay(question: str, contexts: Sequence[Context]) -> str:
        # A passage's text has the metadata that the model was shown already.
        nodes = [NodeWithScore(node=_node(one), score=one.score) for one in contexts]
        with unrecorded():
            found: Any = engine.synthesize(QueryBundle(question), nodes)
            whole = found.get_response() if hasattr(found, "get_response") else found
        return str(whole)

    return replay


def _node(context: Context) -> TextNode:
    return TextNode(text=context.text, **({"id_": context.id} if context.id else {}))
