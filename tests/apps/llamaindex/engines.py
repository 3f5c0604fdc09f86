"""Query engines of LlamaIndex: plain, composed, and with passages that are not the nodes that were found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from llama_index.core import PromptTemplate, SummaryIndex, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.base.response.schema import Response
from llama_index.core.evaluation import ContextRelevancyEvaluator, FaithfulnessEvaluator, RelevancyEvaluator
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.node_parser import HierarchicalNodeParser, SentenceWindowNodeParser, get_leaf_nodes
from llama_index.core.postprocessor import (
    LLMRerank,
    LongContextReorder,
    MetadataReplacementPostProcessor,
    SimilarityPostprocessor,
)
from llama_index.core.query_engine import (
    CitationQueryEngine,
    CustomQueryEngine,
    RetrieverQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.response_synthesizers import ResponseMode
from llama_index.core.retrievers import AutoMergingRetriever, QueryFusionRetriever, RecursiveRetriever
from llama_index.core.schema import Document, IndexNode, NodeWithScore, QueryBundle
from llama_index.core.storage import StorageContext
from llama_index.core.tools import QueryEngineTool

from apps.app import BOTH, INVOKE, STREAM, Truth, script
from apps.island import (
    FARES,
    FERRY,
    LENS,
    LENS_ANSWER,
    MUSEUM,
    PRICE,
    PRICE_ANSWER,
    STORM,
    SUNDAY,
    SUNDAY_ANSWER,
)
from apps.llamaindex.pieces import Shelf, Vectors, completes, index

PAIR = Truth(question=SUNDAY, contexts=(FERRY, STORM), answer=SUNDAY_ANSWER)
ONE = Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER)
SPEAKS = completes(otherwise=SUNDAY_ANSWER)


def over(retriever: Any, *, llm: Any = SPEAKS, mode: str = "compact", **options: Any) -> RetrieverQueryEngine:
    """A query engine over a retriever."""
    return RetrieverQueryEngine.from_args(retriever, llm=llm, response_mode=ResponseMode(mode), **options)


async def ask(engine: Any, way: str, question: str = SUNDAY) -> str:
    """Query, and read the answer to its end."""
    if way == STREAM:
        return "".join(engine.query(question).response_gen)
    return str(await engine.aquery(question) if way == "ainvoke" else engine.query(question))


@script(ONE, framework="llamaindex", ways=BOTH)
async def index_as_query_engine(config: Any, way: str) -> str:
    """The starter: `index.as_query_engine()`."""
    return await ask(index(FERRY).as_query_engine(llm=SPEAKS), way)


@script(ONE, framework="llamaindex", ways=(STREAM,))
async def streamed_query_engine(config: Any, way: str) -> str:
    """`as_query_engine(streaming=True)`, and the pieces are printed."""
    return await ask(index(FERRY).as_query_engine(llm=SPEAKS, streaming=True), way)


@script(ONE, framework="llamaindex", ways=BOTH)
async def nodes_cut_by_similarity(config: Any, way: str) -> str:
    """A postprocessor drops what is not similar enough."""
    cut = SimilarityPostprocessor(similarity_cutoff=0.85)
    return await ask(over(Shelf(FERRY, STORM), node_postprocessors=[cut]), way)


@script(ONE, framework="llamaindex", ways=BOTH)
async def nodes_reranked_by_a_model(config: Any, way: str) -> str:
    """`LLMRerank`: a model is shown all nodes and names the best."""
    rank = LLMRerank(llm=completes(otherwise="Doc: 2, Relevance: 9"), top_n=1)
    return await ask(over(Shelf(STORM, FERRY), node_postprocessors=[rank]), way)


@script(
    Truth(question=SUNDAY, contexts=(FERRY, FARES, STORM), answer=SUNDAY_ANSWER),
    framework="llamaindex",
    ways=BOTH,
)
async def nodes_reordered(config: Any, way: str) -> str:
    """`LongContextReorder` puts the best nodes at both ends."""
    found = Shelf(FERRY, STORM, FARES)
    engine = over(found, node_postprocessors=[LongContextReorder()])
    return await ask(engine, way)


@script(
    Truth(question=PRICE, contexts=(FARES, STORM), answer=PRICE_ANSWER, relayed=True),
    framework="llamaindex",
    ways=BOTH,
)
async def answer_refined_node_by_node(config: Any, way: str) -> str:
    """`refine`: each node may improve the answer so far."""
    llm = completes(
        (("Grown-ups", "existing answer"), "never"), ("existing answer", PRICE_ANSWER), otherwise="12 and 3."
    )
    return await ask(over(Shelf(FARES, STORM), llm=llm, mode="refine"), way, PRICE)


@script(
    Truth(question=PRICE, contexts=(FARES, STORM), answer=PRICE_ANSWER), framework="llamaindex", ways=BOTH
)
async def answer_summarised_as_a_tree(config: Any, way: str) -> str:
    """`tree_summarize` over few nodes."""
    llm = completes(otherwise=PRICE_ANSWER)
    return await ask(over(Shelf(FARES, STORM), llm=llm, mode="tree_summarize"), way, PRICE)


@script(PAIR, framework="llamaindex", ways=BOTH)
async def prompt_of_ones_own(config: Any, way: str) -> str:
    """A text template of one's own, in another language."""
    template = PromptTemplate("Auszüge:\n{context_str}\nFrage: {query_str}\nAntwort:")
    return await ask(over(Shelf(FERRY, STORM), text_qa_template=template), way)


@script(
    Truth(question=SUNDAY, contexts=(f"{FERRY} {FARES}",), answer=SUNDAY_ANSWER),
    framework="llamaindex",
    ways=(INVOKE,),
)
async def sentences_searched_windows_shown(config: Any, way: str) -> str:
    """Sentence windows: one sentence is found, the window around it is shown."""
    parser = SentenceWindowNodeParser.from_defaults(window_size=9)
    nodes = parser.get_nodes_from_documents([Document(text=f"{FERRY} {FARES}")])
    found = VectorStoreIndex(nodes, embed_model=Vectors()).as_retriever(similarity_top_k=1)
    window = MetadataReplacementPostProcessor(target_metadata_key="window")
    return await ask(over(found, node_postprocessors=[window]), way)


@script(
    Truth(question=SUNDAY, contexts=(f"{FERRY} {STORM}",), answer=SUNDAY_ANSWER),
    framework="llamaindex",
    ways=(INVOKE,),
)
async def leaves_searched_parents_shown(config: Any, way: str) -> str:
    """Auto-merging: most leaves of a parent are found, so the parent is shown."""
    parser = HierarchicalNodeParser.from_defaults(chunk_sizes=[256, 48], chunk_overlap=0)
    nodes = parser.get_nodes_from_documents([Document(text=f"{FERRY} {STORM}")])
    storage = StorageContext.from_defaults()
    storage.docstore.add_documents(nodes)
    leaves = VectorStoreIndex(get_leaf_nodes(nodes), storage_context=storage, embed_model=Vectors())
    found = leaves.as_retriever(similarity_top_k=6)
    return await ask(over(AutoMergingRetriever(cast(Any, found), storage)), way)


@script(
    Truth(question=SUNDAY, contexts=(f"Source 1:\n{FERRY}", f"Source 2:\n{STORM}"), answer=SUNDAY_ANSWER),
    framework="llamaindex",
    ways=(INVOKE,),
)
async def numbered_citations(config: Any, way: str) -> str:
    """The citation engine shows nodes as numbered sources."""
    return await ask(CitationQueryEngine.from_args(index(), llm=SPEAKS, retriever=Shelf(FERRY, STORM)), way)


@script(PAIR, framework="llamaindex", ways=BOTH)
async def queries_fused(config: Any, way: str) -> str:
    """`QueryFusionRetriever` writes queries and fuses what they find."""
    fused = QueryFusionRetriever(
        [Shelf(FERRY, STORM)],
        llm=completes(otherwise="ferry timetable\nboats on Sunday"),
        num_queries=3,
        similarity_top_k=2,
        use_async=way == "ainvoke",
    )
    return await ask(over(fused), way)


class Chooses(BaseSelector):
    """Takes the engine of a number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts_dict: Any) -> None:
        pass

    def _select(self, choices: Any, query: QueryBundle) -> SelectorResult:
        return SelectorResult(selections=[SingleSelection(index=self.number, reason="")])

    async def _aselect(self, choices: Any, query: QueryBundle) -> SelectorResult:
        return self._select(choices, query)


def as_tool(name: str, found: str, answer: str) -> QueryEngineTool:
    """An engine over one passage, as a tool."""
    return QueryEngineTool.from_defaults(
        over(Shelf(found), llm=completes(otherwise=answer)), name=name, description=f"Knows about {name}."
    )


@script(Truth(question=LENS, contexts=(MUSEUM,), answer=LENS_ANSWER), framework="llamaindex", ways=BOTH)
async def routed_to_one_engine(config: Any, way: str) -> str:
    """A router engine takes one of two engines."""
    tools = [as_tool("ferries", FERRY, SUNDAY_ANSWER), as_tool("sights", MUSEUM, LENS_ANSWER)]
    return await ask(RouterQueryEngine(Chooses(1), tools, llm=SPEAKS), way, LENS)


class Splits(BaseQuestionGenerator):
    """Asks two sub-questions."""

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts_dict: Any) -> None:
        pass

    def generate(self, tools: Sequence[Any], query: QueryBundle) -> list[SubQuestion]:
        return [
            SubQuestion(sub_question="What does a dog pay?", tool_name="fares"),
            SubQuestion(sub_question="When does it leave?", tool_name="times"),
        ]

    async def agenerate(self, tools: Sequence[Any], query: QueryBundle) -> list[SubQuestion]:
        return self.generate(tools, query)


@script(
    Truth(question=PRICE, contexts=(FARES, FERRY), answer=PRICE_ANSWER, relayed=True),
    framework="llamaindex",
    ways=BOTH,
)
async def sub_questions(config: Any, way: str) -> str:
    """Sub-questions go to engines of their own; their answers make the answer."""
    engine = SubQuestionQueryEngine.from_defaults(
        [as_tool("fares", FARES, "A dog pays 3 euros."), as_tool("times", FERRY, "It leaves at 7:15 sharp.")],
        llm=completes(otherwise=PRICE_ANSWER),
        question_gen=Splits(),
        verbose=False,
        use_async=way == "ainvoke",
    )
    return await ask(engine, way, PRICE)


@script(
    Truth(question=PRICE, contexts=(FARES,), answer=PRICE_ANSWER, relayed=True),
    framework="llamaindex",
    ways=BOTH,
)
async def engine_asked_by_a_retriever(config: Any, way: str) -> str:
    """A `RecursiveRetriever` follows an index node to an engine, whose answer becomes a node."""
    engine = over(Shelf(FARES), llm=completes(otherwise="A dog pays 3 euros, a grown-up 12."))
    retriever = RecursiveRetriever(
        "root",
        retriever_dict={"root": Pointer(IndexNode(text="All about fares.", index_id="fares"))},
        query_engine_dict={"fares": engine},
    )
    answering = RetrieverQueryEngine.from_args(retriever, llm=completes(otherwise=PRICE_ANSWER))
    return await ask(answering, way, PRICE)


class Pointer(BaseRetriever):
    """Finds a node that stands for something else."""

    def __init__(self, node: IndexNode) -> None:
        super().__init__()
        self.node = node

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=self.node, score=0.9)]


@script(PAIR, framework="llamaindex", ways=BOTH)
async def imagined_passage_searched(config: Any, way: str) -> str:
    """HyDE: an imagined passage is embedded, the user's question is answered."""
    hyde = HyDEQueryTransform(llm=completes(otherwise="The Sunday boat departs in the morning."))
    return await ask(TransformQueryEngine(over(Shelf(FERRY, STORM)), hyde), way)


@script(PAIR, framework="llamaindex", ways=BOTH)
async def engine_of_ones_own(config: Any, way: str) -> str:
    """A `CustomQueryEngine` that joins the nodes' contents and calls the model."""

    class Own(CustomQueryEngine):
        def custom_query(self, query_str: str) -> str:
            found = Shelf(FERRY, STORM).retrieve(query_str)
            context = "\n\n".join(each.node.get_content() for each in found)
            return str(SPEAKS.complete(f"Context:\n{context}\n\nQuery: {query_str}\nAnswer: "))

    return await ask(Own(), way)


@script(
    Truth(question=SUNDAY, contexts=(FERRY, STORM), answer=SUNDAY_ANSWER, one_text=True),
    framework="llamaindex",
    ways=BOTH,
)
async def engine_that_asks_a_database(config: Any, way: str) -> str:
    """A `CustomQueryEngine` that looks passages up by its own means: only the prompt holds them."""

    class Own(CustomQueryEngine):
        def custom_query(self, query_str: str) -> str:
            context = "\n\n".join([FERRY, STORM])
            return str(SPEAKS.complete(f"Context:\n{context}\n\nQuery: {query_str}\nAnswer: "))

    return await ask(Own(), way)


@script(PAIR, framework="llamaindex", ways=BOTH)
async def index_of_everything(config: Any, way: str) -> str:
    """`SummaryIndex`: all nodes are read."""
    made = SummaryIndex.from_documents([Document(text=FERRY), Document(text=STORM)])
    return await ask(made.as_query_engine(llm=SPEAKS), way)


@script(PAIR, framework="llamaindex", ways=(INVOKE,))
def answer_checked_by_evaluators(config: Any) -> str:
    """Evaluators of LlamaIndex ask engines of their own about an answer; what they ask is nobody's turn."""
    response = cast(Response, over(Shelf(FERRY, STORM)).query(SUNDAY))
    checks = completes(("[RESULT]", "It fits.\n[RESULT] 4.0"), otherwise="YES")
    for evaluator in (FaithfulnessEvaluator, RelevancyEvaluator, ContextRelevancyEvaluator):
        evaluator(llm=checks).evaluate_response(query=SUNDAY, response=response)
    return str(response)
