from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from llama_index.core import Settings, SQLDatabase
from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.base.response.schema import StreamingResponse
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.indices.query.query_transform.base import DecomposeQueryTransform, HyDEQueryTransform
from llama_index.core.indices.struct_store import JSONQueryEngine
from llama_index.core.query_engine import (
    CitationQueryEngine,
    CustomQueryEngine,
    MultiStepQueryEngine,
    NLSQLTableQueryEngine,
    RetryQueryEngine,
    RouterQueryEngine,
    SQLJoinQueryEngine,
    SubQuestionQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever, RecursiveRetriever
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle
from llama_index.core.tools import QueryEngineTool
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
    texts,
)
from sqlalchemy import create_engine, text
from sqlalchemy.pool import StaticPool

BOTH = [False, True]


class Chooses(BaseSelector):
    """A selector that always takes the given engines."""

    indices: list[int]

    def __init__(self, *indices: int) -> None:
        self.indices = list(indices)

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts_dict: Any) -> None:
        pass

    def _select(self, choices: Any, query: QueryBundle) -> SelectorResult:
        return SelectorResult(selections=[SingleSelection(index=each, reason="") for each in self.indices])

    async def _aselect(self, choices: Any, query: QueryBundle) -> SelectorResult:
        return self._select(choices, query)


class Asks(BaseQuestionGenerator):
    """A generator of two fixed sub-questions."""

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts_dict: Any) -> None:
        pass

    def generate(self, tools: Any, query: QueryBundle) -> list[SubQuestion]:
        return [
            SubQuestion(sub_question="Which city?", tool_name="cities"),
            SubQuestion(sub_question="Which country?", tool_name="countries"),
        ]

    async def agenerate(self, tools: Any, query: QueryBundle) -> list[SubQuestion]:
        return self.generate(tools, query)


def tool(name: str, *keys: str, **options: Any) -> QueryEngineTool:
    return QueryEngineTool.from_defaults(engine(*keys, **options), name=name, description=name)


def run(asked: Any, asynchronous: bool) -> str:
    return str(asyncio.run(asked.aquery(QUESTION)) if asynchronous else asked.query(QUESTION))


@pytest.mark.parametrize("asynchronous", BOTH)
def test_router_over_several_engines(receiver: Receiver, asynchronous: bool) -> None:
    tools = [tool("cities", "d1", "d3"), tool("countries", "d2")]
    summarizer = get_response_synthesizer(llm=Scripted(), response_mode=cast(Any, "tree_summarize"))
    run(
        RouterQueryEngine(Chooses(0, 1), tools, llm=Scripted(), summarizer=cast(Any, summarizer)),
        asynchronous,
    )
    assert texts(receiver.record) == [PARIS, BERLIN, FRANCE]
    assert [context.hop for context in receiver.record.contexts] == [0, 0, 1]


def test_router_that_streams(receiver: Receiver) -> None:
    tools = [tool("cities", "d1", streaming=True)]
    response = cast(StreamingResponse, RouterQueryEngine(Chooses(0), tools, llm=Scripted()).query(QUESTION))
    assert receiver.drafts == []
    assert "".join(response.response_gen) == ANSWER
    assert (receiver.record.answer, texts(receiver.record)) == (ANSWER, [PARIS])


@pytest.mark.parametrize("use_async", BOTH)
@pytest.mark.parametrize("asynchronous", BOTH)
def test_sub_questions_rest_on_documents_not_on_answers(
    receiver: Receiver, asynchronous: bool, use_async: bool
) -> None:
    asked = SubQuestionQueryEngine.from_defaults(
        [tool("cities", "d1", "d3"), tool("countries", "d2")],
        llm=Scripted(),
        question_gen=Asks(),
        verbose=False,
        use_async=use_async,
    )
    run(asked, asynchronous)
    record = receiver.record
    assert (record.question, record.answer) == (QUESTION, ANSWER)
    assert texts(record) == [PARIS, BERLIN, FRANCE]
    assert [context.query for context in record.contexts] == ["Which city?", "Which city?", "Which country?"]
    assert [context.hop for context in record.contexts] == [0, 0, 1]


def test_a_passage_that_several_parts_cite_counts_once(receiver: Receiver) -> None:
    cited = [
        CitationQueryEngine(retriever=Fixed(*keys), llm=Scripted()) for keys in (("d1", "d2"), ("d2", "d1"))
    ]
    names = zip(("cities", "countries"), cited, strict=True)
    tools = [QueryEngineTool.from_defaults(one, name=name, description=name) for name, one in names]
    asked = SubQuestionQueryEngine.from_defaults(
        tools, llm=Scripted(), question_gen=Asks(), verbose=False, use_async=False
    )
    asked.query(QUESTION)
    assert texts(receiver.record) == [f"Source 1:\n{PARIS}", f"Source 2:\n{FRANCE}"]


def test_sub_question_that_fails(receiver: Receiver) -> None:
    def fail(prompt: str) -> str:
        raise ValueError("down")

    tools = [tool("cities", "d1", say=fail, mode="simple_summarize"), tool("countries", "d2")]
    asked = SubQuestionQueryEngine.from_defaults(
        tools, llm=Scripted(), question_gen=Asks(), verbose=False, use_async=False
    )
    asked.query(QUESTION)
    record = receiver.record
    assert (record.status, record.answer) == ("ok", ANSWER)
    assert record.notes == ("a step failed and the run went on: ValueError: down",)


@pytest.mark.parametrize("asynchronous", BOTH)
def test_multi_step(receiver: Receiver, asynchronous: bool) -> None:
    steps = iter(["Which country?", "Which city?"])
    transform = Scripted(say=lambda prompt: next(steps))
    from llama_index.core.indices.query.query_transform.base import StepDecomposeQueryTransform

    asked = MultiStepQueryEngine(
        engine("d1", "d2"),
        StepDecomposeQueryTransform(llm=transform),
        response_synthesizer=get_response_synthesizer(llm=Scripted()),
        num_steps=2,
        index_summary="cities",
    )
    run(asked, asynchronous)
    record = receiver.record
    assert (record.question, record.answer) == (QUESTION, ANSWER)
    assert texts(record) == [PARIS, FRANCE]
    assert record.contexts[0].query == "Which country?"


@pytest.mark.parametrize("asynchronous", BOTH)
@pytest.mark.parametrize("kind", ["hyde", "decompose"])
def test_transformed_queries_keep_the_user_s_words(receiver: Receiver, kind: str, asynchronous: bool) -> None:
    model = Scripted(say=lambda prompt: "Capital of France?")
    transform: Any = HyDEQueryTransform(llm=model) if kind == "hyde" else DecomposeQueryTransform(llm=model)
    run(TransformQueryEngine(engine("d1"), transform, {"index_summary": "cities"}), asynchronous)
    record = receiver.record
    assert (record.question, record.answer, texts(record)) == (QUESTION, ANSWER, [PARIS])
    assert record.contexts[0].query == (None if kind == "hyde" else "Capital of France?")
    assert record.standalone_question is None


def test_retries_keep_the_last_attempt(receiver: Receiver) -> None:
    from llama_index.core.evaluation import RelevancyEvaluator

    verdicts = iter(["NO", "YES"])
    judge = RelevancyEvaluator(llm=Scripted(say=lambda prompt: next(verdicts)))
    RetryQueryEngine(engine("d1"), judge, max_retries=2).query(QUESTION)
    records = receiver.records
    assert [record.question for record in records] == [QUESTION]
    assert texts(records[0]) == [PARIS]


SQL = "SELECT name, altitude FROM huts ORDER BY altitude DESC LIMIT 1"
ROWS = "[('Talwacht', 2680)]"
SAID = {
    "synthesize a response from the query": "Talwacht is highest.",
    "create a syntactically correct": SQL,
    "New question:": "Which country is Talwacht in?",
    "Some choices are given below": '[{"choice": 1, "reason": "It has the altitudes."}]',
}


def says(prompt: str) -> str:
    return next((reply for part, reply in SAID.items() if part in prompt), ANSWER)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> NLSQLTableQueryEngine:
    """An engine for which a model writes SQL."""
    monkeypatch.setattr(Settings, "_embed_model", MockEmbedding(embed_dim=4))
    monkeypatch.setattr(Settings, "_llm", Scripted(say=says))
    database = create_engine("sqlite://", poolclass=StaticPool)
    with database.begin() as connection:
        connection.execute(text("create table huts (name text, altitude int)"))
        connection.execute(text("insert into huts values ('Grieshof', 2120), ('Talwacht', 2680)"))
    return NLSQLTableQueryEngine(SQLDatabase(database, include_tables=["huts"]), tables=["huts"])


def test_the_rows_of_a_table_are_passages_and_its_schema_is_none(
    receiver: Receiver, table: NLSQLTableQueryEngine
) -> None:
    assert run(table, False) == "Talwacht is highest."
    assert texts(receiver.record) == [ROWS]


@pytest.mark.parametrize("asynchronous", BOTH)
def test_a_value_that_was_looked_up_is_a_passage_and_the_schema_of_the_data_is_none(
    receiver: Receiver, asynchronous: bool
) -> None:
    value: Any = {"name": "Talwacht", "altitude": 2680}
    schema: Any = {"type": "array", "items": {"properties": {"name": {"type": "string"}, "altitude": {}}}}
    asked = JSONQueryEngine(
        json_value=[value],
        json_schema=schema,
        llm=Scripted(say=lambda prompt: "$[0]" if "Value at path" not in prompt else ANSWER),
        output_processor=lambda path, data: data[0],
    )
    assert run(asked, asynchronous) == ANSWER
    assert (texts(receiver.record), receiver.record.notes) == ([str(value)], ())


def test_rows_stay_passages_if_another_engine_goes_on_from_them(
    receiver: Receiver, table: NLSQLTableQueryEngine
) -> None:
    huts = QueryEngineTool.from_defaults(table, description="huts")
    joined = SQLJoinQueryEngine(huts, tool("countries", "d2", say=says))
    assert run(joined, False) == ANSWER
    assert texts(receiver.record) == [ROWS, FRANCE]


def test_what_an_engine_within_a_retriever_says_by_itself_is_no_passage(receiver: Receiver) -> None:
    class Greets(CustomQueryEngine):
        def custom_query(self, query_str: str) -> str:
            return str(Scripted(say=lambda _: "Hello! Ask me about capitals.").complete(query_str))

    class Points(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            return [NodeWithScore(node=IndexNode(text="All about capitals.", index_id="capitals"), score=0.9)]

    found = RecursiveRetriever(
        "root", retriever_dict={"root": Points()}, query_engine_dict={"capitals": Greets()}
    )
    assert str(engine(retriever=found).query("Good morning to you")) == ANSWER
    assert (texts(receiver.record), receiver.record.evidence) == ([], None)
