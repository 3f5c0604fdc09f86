"""Parts of LlamaIndex that plain Python calls one by one. No engine is around them."""

from __future__ import annotations

from typing import Any

from llama_index.core.llms import ChatMessage
from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer
from llama_index.core.schema import MetadataMode, NodeWithScore

from apps.app import Truth, script
from apps.island import FERRY, STORM, SUNDAY, SUNDAY_ANSWER
from apps.llamaindex.engines import ONE, SPEAKS, over
from apps.llamaindex.pieces import Shelf, completes, index, node

ROOTLESS: Any = dict.fromkeys(
    ("instrument", "openinference", "openllmetry"), ("turns", "question", "contexts", "answer")
)
"""Where no run is around the calls, a recorder may say `record` instead of joining what it cannot join."""


@script(
    ONE,
    framework="llamaindex",
    rootless=True,
    allowed_notes=ROOTLESS,
)
def retrieve_then_synthesize(config: Any) -> str:
    """Retriever and synthesizer are called one after the other, without an engine around them."""
    found = Shelf(FERRY).retrieve(SUNDAY)
    synthesizer = get_response_synthesizer(llm=SPEAKS, response_mode=ResponseMode.COMPACT)
    return str(synthesizer.synthesize(SUNDAY, nodes=found))


@script(
    ONE,
    framework="llamaindex",
    rootless=True,
    allowed_notes=ROOTLESS,
)
def retrieve_then_complete(config: Any) -> str:
    """A retriever, an f-string and `llm.complete`: the shortest script."""
    found = index(FERRY).as_retriever(similarity_top_k=1).retrieve(SUNDAY)
    context = "\n".join(each.node.get_content(metadata_mode=MetadataMode.NONE) for each in found)
    return str(SPEAKS.complete(f"Context:\n{context}\nQuestion: {SUNDAY}"))


@script(ONE, framework="llamaindex", rootless=True, allowed_notes=ROOTLESS)
def retrieve_then_stream(config: Any) -> str:
    """A page streams what the model says to messages of its own, the passages in the system's."""
    found = Shelf(FERRY).retrieve(SUNDAY)
    context = "\n\n".join(f"[{at}] {each.node.get_content()}" for at, each in enumerate(found, 1))
    system = ChatMessage(role="system", content=f"Answer from the sources.\n\n### Sources ###\n{context}")
    stream = SPEAKS.stream_chat([system, ChatMessage(role="user", content=SUNDAY)])
    return "".join(piece.delta or "" for piece in stream)


@script(
    ONE,
    framework="llamaindex",
    rootless=True,
    allowed_notes={"instrument": ("question",)},
    parts=(Truth(question="Sunday timetable of the ferry", contexts=(FERRY,), answer=SUNDAY_ANSWER),),
)
def query_written_before_the_engine_is_asked(config: Any) -> str:
    """A function lets a model write the query, and asks an engine with it: two calls without a root."""
    writes = completes(otherwise="Sunday timetable of the ferry")
    query = str(writes.complete(f"Turn this into a query for a search engine: {SUNDAY}"))
    return str(over(Shelf(FERRY)).query(query))


@script(ONE, framework="llamaindex", rootless=True, allowed_notes=ROOTLESS)
def synthesizer_that_is_given_nodes(config: Any) -> str:
    """Nodes come out of code of the application, such as a query of a vector store."""
    synthesizer = get_response_synthesizer(llm=SPEAKS, response_mode=ResponseMode.COMPACT)
    synthesizer.synthesize("Summarize the page for an index.", nodes=[NodeWithScore(node=node(STORM))])
    return str(synthesizer.synthesize(SUNDAY, nodes=[NodeWithScore(node=node(FERRY), score=0.5)]))
