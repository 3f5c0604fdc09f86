from __future__ import annotations

import asyncio

import pytest
from dirty_equals import IsFloat, IsPositive, IsStr
from llama_index.core import PromptTemplate
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import CitationQueryEngine, RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llamaindex_parts import (
    ANSWER,
    BERLIN,
    FRANCE,
    PARIS,
    QUESTION,
    Fixed,
    Receiver,
    Scripted,
    engine,
    node,
    texts,
)
from pydantic import BaseModel

from steelyard.diagnosis import Experiments, Laboratory
from steelyard.errors import ConfigurationError
from steelyard.record import Context, record_to_dict
from steelyard_llamaindex import instrument, replay_of, uninstrument


def test_whole_record(receiver: Receiver) -> None:
    engine().query(QUESTION)
    whole = record_to_dict(receiver.record)
    assert whole.pop("timings") == {
        "started_at": IsFloat,
        "total": IsPositive,
        "retrieval": IsPositive,
        "generation": IsPositive,
    }
    assert whole.pop("trace")["framework"] == "llamaindex"
    assert whole.pop("id") == IsStr(regex=r"RetrieverQueryEngine\.query-.*")
    assert whole == {
        "schema": 2,
        "question": QUESTION,
        "contexts": [
            {"text": PARIS, "id": "d1", "score": 0.91, "rank": 0, "seen": 1.0},
            {"text": FRANCE, "id": "d2", "score": 0.55, "rank": 1, "seen": 1.0},
            {"text": BERLIN, "id": "d3", "score": 0.31, "rank": 2, "seen": 1.0},
        ],
        "contexts_source": "in_prompt",
        "answer": ANSWER,
        "origins": {
            "question": ["input"],
            "contexts": ["retriever Fixed"] * 3,
            "answer": ["reply of model Scripted"],
        },
    }


class Rerank(BaseNodePostprocessor):
    """Keeps the last two, last first."""

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return [
            NodeWithScore(node=each.node, score=1.0 - rank / 10) for rank, each in enumerate(nodes[:0:-1])
        ]


def test_reranked_contexts_are_what_the_model_saw(receiver: Receiver) -> None:
    engine(postprocessors=[Rerank()]).query(QUESTION)
    record = receiver.record
    assert texts(record) == [BERLIN, FRANCE]
    assert [context.score for context in record.contexts] == [1.0, 0.9]
    assert record.contexts_source == "in_prompt"
    assert [(context.text, context.in_prompt) for context in record.retrieved] == [
        (PARIS, False),
        (FRANCE, True),
        (BERLIN, True),
    ]


@pytest.mark.parametrize("mode", ["compact", "refine", "tree_summarize", "simple_summarize", "accumulate"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_response_modes(receiver: Receiver, mode: str, asynchronous: bool) -> None:
    asked = engine(mode=mode)
    response = asyncio.run(asked.aquery(QUESTION)) if asynchronous else asked.query(QUESTION)
    record = receiver.record
    assert (record.question, record.answer, record.status) == (QUESTION, str(response), "ok")
    assert texts(record) == [PARIS, FRANCE, BERLIN]
    assert record.contexts_source == "in_prompt"
    assert ANSWER in record.answer


def test_no_text_mode_has_contexts_and_no_answer(receiver: Receiver) -> None:
    engine(mode="no_text").query(QUESTION)
    record = receiver.record
    assert (texts(record), record.answer, record.status) == ([PARIS, FRANCE, BERLIN], "", "ok")
    assert record.contexts_source == "retrieved"


def test_nothing_found(receiver: Receiver) -> None:
    class Nothing(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            return []

    engine(retriever=Nothing()).query(QUESTION)
    assert (receiver.record.contexts, receiver.record.status) == ((), "ok")
    assert receiver.record.answer == "Empty Response"


def test_a_table_without_rows_is_nothing_found(receiver: Receiver) -> None:
    class Rows(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            return [NodeWithScore(node=TextNode(text="[]"))]

    engine(retriever=Rows(), text_qa_template=PromptTemplate("{context_str}: {query_str}")).query(QUESTION)
    assert (texts(receiver.record), receiver.record.retrieved) == ([], ())


def test_passages_that_were_all_left_out_are_retrieved_and_no_contexts(receiver: Receiver) -> None:
    cut = SimilarityPostprocessor(similarity_cutoff=0.99)
    RetrieverQueryEngine.from_args(Fixed("d1", "d2"), llm=Scripted(), node_postprocessors=[cut]).query(
        QUESTION
    )
    record = receiver.record
    assert (record.contexts, record.answer, record.notes) == ((), "Empty Response", ())
    assert [context.text for context in record.retrieved] == [PARIS, FRANCE]


def test_a_query_bundle_is_a_question(receiver: Receiver) -> None:
    engine().query(QueryBundle(QUESTION, custom_embedding_strs=["something else"]))
    assert receiver.record.question == QUESTION


def test_fused_retrievers_are_stages(receiver: Receiver) -> None:
    parts: list[BaseRetriever] = [Fixed("d1", "d2"), Fixed("d1", "d3")]
    fusion = QueryFusionRetriever(parts, llm=Scripted(), num_queries=1, use_async=False, similarity_top_k=3)
    engine(retriever=fusion).query(QUESTION)
    record = receiver.record
    assert sorted(texts(record)) == sorted([PARIS, FRANCE, BERLIN])
    assert {context.hop for context in record.contexts} == {0}
    assert [(stage.name, len(stage.contexts)) for stage in record.stages] == [("Fixed", 2), ("Fixed", 2)]
    assert record.retrieved == ()


def test_citations_keep_the_sources_as_the_model_saw_them(receiver: Receiver) -> None:
    cited = CitationQueryEngine(retriever=Fixed("d1", "d3"), llm=Scripted())
    cited.query(QUESTION)
    record = receiver.record
    assert texts(record) == [f"Source 1:\n{PARIS}", f"Source 2:\n{BERLIN}"]
    assert [context.text for context in record.retrieved] == [PARIS, BERLIN]


def test_metadata_that_the_model_sees_belongs_to_the_text(receiver: Receiver) -> None:
    class Dated(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            return [NodeWithScore(node=TextNode(text=PARIS, metadata={"year": 2024}), score=None)]

    engine(retriever=Dated()).query(QUESTION)
    assert texts(receiver.record) == [f"year: 2024\n\n{PARIS}"]
    assert receiver.record.contexts[0].score is None


def test_structured_answers_are_json(receiver: Receiver) -> None:
    class City(BaseModel):
        name: str

    answered = engine(say=lambda prompt: '{"name": "Paris"}', output_cls=City)
    response = answered.query(QUESTION)
    assert receiver.record.answer == str(response) == '{"name":"Paris"}'


def test_the_same_passage_twice_is_one_context(receiver: Receiver) -> None:
    engine("d1", "d1", "d2").query(QUESTION)
    assert texts(receiver.record) == [PARIS, FRANCE]


def test_nodes_without_text_are_noted(receiver: Receiver) -> None:
    class Pictures(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            return [node("d1"), NodeWithScore(node=TextNode(text=""), score=0.1)]

    engine(retriever=Pictures()).query(QUESTION)
    assert texts(receiver.record) == [PARIS]
    assert receiver.record.notes == ("1 retrieved nodes have no text",)


def test_retriever_called_alone_is_no_turn(receiver: Receiver) -> None:
    Fixed().retrieve(QUESTION)
    Scripted().complete("anything")
    assert receiver.records == []


def test_engine_from_parts_called_by_hand(receiver: Receiver) -> None:
    asked = RetrieverQueryEngine(Fixed(), get_response_synthesizer(llm=Scripted()))
    nodes = asked.retrieve(QueryBundle(QUESTION))
    response = asked.synthesize(QueryBundle(QUESTION), nodes[:2])
    record = receiver.record
    assert (record.question, record.answer) == (QUESTION, str(response))
    assert (texts(record), record.contexts_source) == ([PARIS, FRANCE], "in_prompt")
    assert [note for note in record.notes if "record(question)" in note] == list(record.notes)


HANDED = (Context(text="The lamp was lit in 1920.", id="x", score=0.5), Context(text="It is red."))


@pytest.mark.parametrize("streaming", [False, True])
def test_an_engine_answers_from_what_it_is_handed_and_is_not_recorded(streaming: bool) -> None:
    receiver, prompts = Receiver(), []

    def say(prompt: str) -> str:
        prompts.append(prompt)
        return "In 1920."

    instrument(receiver)
    try:
        laboratory = Laboratory(
            Experiments(replay=replay_of(engine("d1", "d2", say=say, streaming=streaming)))
        )
        assert asyncio.run(laboratory.replay(QUESTION, HANDED)) == "In 1920."
    finally:
        uninstrument()
    assert all(one.text in prompts[-1] for one in HANDED)
    assert QUESTION in prompts[-1]
    assert PARIS not in prompts[-1]
    assert receiver.records == []


def test_what_cannot_synthesize_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="that can synthesize, not str"):
        replay_of("an engine")  # type: ignore[arg-type]
