"""Retrievers, postprocessors, synthesizers, templates and tools of LlamaIndex."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from llama_index.core import PromptTemplate
from llama_index.core.llms import LLM
from llama_index.core.postprocessor import LongContextReorder, SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import FunctionTool, QueryEngineTool, RetrieverTool

from generator.choices import Choices
from generator.llamaindex.models import Chats, Completes, now
from generator.results import TEXTUAL
from generator.templates import template_of
from generator.turns import Turn

RETRIEVERS = ("shelf", "fusion", "metadata")
KEEPING = ("postprocessor", "similarity", "reorder", "rerank")
MODES = ("compact", "refine", "tree_summarize", "accumulate", "simple_summarize")
TOOLS = ("function", "engine", "retriever")
TOOL_RESULTS = (*TEXTUAL, "nodes")


WRAPS = {
    "no": "{asked}",
    "reminder": "Please remember that the tables are all that you may use for this.\n{asked}",
    "marked": "<|im_start|>user\n{asked}<|im_end|>\n<|im_start|>assistant\n",
    "dated": "It is now {hour}:15:{at}.\nUse this for words such as yesterday.\n\nQuestion: {asked}",
}
"""What code puts around the user's words before the framework is given them."""


def wrapped(choices: Choices, turn: Turn) -> str:
    """The user's words as code hands them to the framework."""
    chance = choices.random("hour", turn.id)
    hour, at = chance.randint(0, 23), chance.random()
    return WRAPS[choices["wrapped"]].format(asked=turn.question, hour=hour, at=at)


class Shelf(BaseRetriever):
    """Finds what the turn says; what is not to be shown has a low score."""

    def __init__(self, metadata: dict[str, Any] | None = None, hop: int | None = None) -> None:
        super().__init__()
        self.noted, self.hop = metadata or {}, hop

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        turn = now()
        found = turn.find(query_bundle.query_str) if self.hop is None else turn.found[self.hop]
        return nodes(turn, found, self.noted)


def nodes(turn: Turn, texts: Sequence[str], metadata: dict[str, Any] | None = None) -> list[NodeWithScore]:
    """Passages as nodes."""
    made = [TextNode(text=text, metadata=dict(metadata or {})) for text in texts]
    for node in made:
        turn.came(node.get_content(MetadataMode.LLM))
    return [
        NodeWithScore(node=node, score=(0.9 if node.text in turn.shown else 0.1) - at / 100)
        for at, node in enumerate(made)
    ]


class KeepsShown(BaseNodePostprocessor):
    """Keeps what the turn shows, in the order of the retriever or in the other."""

    turned: bool = False

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        found = list(reversed(nodes)) if self.turned else nodes
        return [each for each in found if getattr(each.node, "text", "") in now().shown]


def retriever(choices: Choices) -> BaseRetriever:
    """What finds nodes."""
    kind = choices["retriever"]
    if kind == "metadata":
        return Shelf({"file_name": "guide.pdf", "page_label": "3"})
    if kind == "fusion":
        return QueryFusionRetriever(
            [Shelf()],
            llm=Completes(role="queries"),
            num_queries=2,
            similarity_top_k=20,
            use_async=choices["way"] in ("ainvoke", "astream"),
        )
    return Shelf()


def kept(choices: Choices) -> list[BaseNodePostprocessor]:
    """What leaves nodes out. A fusion's scores are its own, so that a cut by score would take all."""
    kind = choices["keeping"]
    if kind == "similarity" and choices["retriever"] != "fusion":
        return [SimilarityPostprocessor(similarity_cutoff=0.5)]
    if kind == "reorder":
        return [KeepsShown(), LongContextReorder()]
    return [KeepsShown(turned=kind == "rerank")]


class Sources(BaseNodePostprocessor):
    """Notes the sources that the citation engine makes of nodes; leaves them as they are."""

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        for at, each in enumerate(nodes, 1):
            text = now().came(f"Source {at}:\n{each.node.get_content()}")
            now().came(f"{each.node.get_metadata_str(MetadataMode.LLM)}\n\n{text}")
        return nodes


_ROLE = "You answer for the front desk of a small office, briefly and in plain words."


def prompt_template(choices: Choices) -> PromptTemplate | None:
    """A template of the corpus as LlamaIndex takes it; none for the framework's own."""
    if choices["prompting"] == "own":
        return None
    text = template_of(choices).text().replace("{history}", "")
    text = text.replace("{context}", "{context_str}").replace("{question}", "{query_str}")
    if choices["prompting"] == "bound":
        # Filled in when the application was made: part of its instructions, and no evidence.
        return PromptTemplate("{role}\n\n" + text).partial_format(role=_ROLE)
    return PromptTemplate(text)


def speaker(choices: Choices, role: str = "answer") -> LLM:
    """A model, of the kind that completes or of the one that chats."""
    return Chats(role=role) if choices["model"] == "chats" else Completes(role=role)


def mode(choices: Choices) -> str:
    """The response mode; streams come only from modes that make one answer."""
    made = choices["mode"]
    return "compact" if made == "accumulate" and choices["way"] in ("stream", "astream") else made


def engine(choices: Choices, role: str = "") -> RetrieverQueryEngine:
    """A query engine over a retriever."""
    made = mode(choices)
    role = role or ("accumulate" if made in ("refine", "accumulate") else "answer")
    template = prompt_template(choices)
    templates: dict[str, Any] = {} if template is None else {"text_qa_template": template}
    if made == "tree_summarize" and template is not None:
        templates = {"summary_template": template}
    synthesizer = get_response_synthesizer(
        # A chat model cannot stream what is completed.
        llm=Completes(role=role) if made == "refine" else speaker(choices, role),
        response_mode=ResponseMode(made),
        streaming=choices["way"] in ("stream", "astream") and role == "answer",
        **templates,
    )
    return RetrieverQueryEngine(
        retriever(choices), response_synthesizer=synthesizer, node_postprocessors=kept(choices)
    )


def tool(choices: Choices) -> Any:
    """The one tool of an agent."""
    name, kind = choices["tool_name"], choices["tool"]
    if kind == "engine":
        simple = choices.replace(way="invoke", mode="compact")
        return QueryEngineTool.from_defaults(engine(simple, "relay"), name=name, description="Looks it up.")
    if kind == "retriever":
        return RetrieverTool.from_defaults(Shelf(), name=name, description="Looks it up.")
    shape = choices["tool_result"]

    def look(query: str) -> Any:
        """Looks something up."""
        turn = now()
        found = turn.find(query)
        if not found:
            is_form = choices["told_nothing"] == "form"
            return turn.came(json.dumps({"error": turn.nothing}) if is_form else turn.nothing)
        result = nodes(turn, found) if shape == "nodes" else TEXTUAL[shape](found)
        turn.came(str(result))
        return result

    return FunctionTool.from_defaults(look, name=name)
