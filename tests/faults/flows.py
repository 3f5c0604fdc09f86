"""Chains of another build than those of `chains`: a graph of LangGraph, and a workflow of LlamaIndex."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from llama_index.core.llms import ChatMessage
from llama_index.core.schema import NodeWithScore
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step

from fakes.receiver import Receiver
from faults.chains import Completes, Index, Model, Nodes
from faults.faults import DONT_KNOW, Setting
from steelyard.engine import evaluate_one
from steelyard.judge import LocalJudge
from steelyard.metrics import ContextSufficiency, Faithfulness
from steelyard.questions import Answer, Judge, Level, Question, Request, Sufficient, Supported, YesNo
from steelyard.record import Record
from steelyard.scores import Diagnosis
from steelyard.testing import ScriptedJudge
from steelyard_langchain import CallbackHandler
from steelyard_llamaindex import instrument, uninstrument

_PROMPT = ChatPromptTemplate.from_messages(
    [
        ("system", "You are a support agent. Answer from the sources; if you cannot, say so.\n\n{sources}"),
        ("human", "{question}"),
    ]
)


class State(TypedDict, total=False):
    """What the graph's nodes hand on."""

    question: str
    documents: list[Document]
    generation: str


def langgraph(setting: Setting) -> Record:
    """One turn of a graph that retrieves, ranks in a plain function, and generates."""
    kept, index, model = Receiver(), Index(setting=setting), Model(reply=setting.reply)

    def retrieve(state: State, config: RunnableConfig) -> State:
        return {"documents": index.invoke(state["question"], config)}

    def rank(state: State) -> State:
        return {"documents": list(setting.rerank(state["documents"]))}  # type: ignore[arg-type]

    def generate(state: State, config: RunnableConfig) -> State:
        sources = setting.shown([one.page_content for one in state["documents"]])
        said = (_PROMPT | model).invoke({"sources": sources, "question": state["question"]}, config)
        return {"generation": str(said.content)}

    graph = StateGraph(State)
    for name, node in (("retrieve", retrieve), ("rank", rank), ("generate", generate)):
        graph.add_node(name, node)
    for one, next_one in ((START, "retrieve"), ("retrieve", "rank"), ("rank", "generate"), ("generate", END)):
        graph.add_edge(one, next_one)
    graph.compile().invoke({"question": setting.case.question}, config={"callbacks": [CallbackHandler(kept)]})
    return kept.record


class Found(Event):
    """What the index returned."""

    nodes: list[NodeWithScore]


class Ranked(Event):
    """What was left of it."""

    nodes: list[NodeWithScore]


class Flow(Workflow):
    """Retrieves, ranks and asks the model, a step each."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(timeout=60)
        self.setting = setting
        self.query = setting.case.question

    @step
    async def retrieve(self, ev: StartEvent) -> Found:
        return Found(nodes=await Nodes(self.setting).aretrieve(self.query))

    @step
    async def rank(self, ev: Found) -> Ranked:
        return Ranked(nodes=list(self.setting.rerank(ev.nodes)))  # type: ignore[arg-type]

    @step
    async def answer(self, ev: Ranked) -> StopEvent:
        sources = self.setting.shown([one.node.get_content() for one in ev.nodes])
        messages = [
            ChatMessage(role="system", content=f"Use the sources.\n{sources}"),
            ChatMessage(role="user", content=self.query),
        ]
        said = await Completes(setting=self.setting).achat(messages)
        return StopEvent(result=str(said.message.content))


def workflow(setting: Setting) -> Record:
    """One turn of a workflow of LlamaIndex."""
    kept = Receiver()

    async def run() -> Any:
        return await Flow(setting).run(query=setting.case.question)

    instrument(kept)
    try:
        asyncio.run(run())
    finally:
        uninstrument()
    return kept.record


def perfect(setting: Setting) -> ScriptedJudge:
    """A judge that is always right about this turn."""
    case = setting.case

    def answer(question: Question, request: Request) -> Answer | None:
        shown = " ".join(context.text for context in request.view.contexts or ())
        match question:
            case Sufficient():
                if case.passage is None:
                    return Level(value=0.0, reason="Nothing about it.")
                return Level(value=3.0 if case.answer in shown else 1.0)
            case Supported(claim=claim):
                return YesNo(value=claim in shown or (case.answer in shown and claim in setting.right))
        return None

    return ScriptedJudge(answer)


def diagnosed(setting: Setting, record: Record, judge: Judge | None = None) -> Diagnosis | None:
    """What the engine says of a turn, with the local judge or another."""
    metrics = [Faithfulness(claims="sentences"), ContextSufficiency()]
    return asyncio.run(evaluate_one(record, metrics, judge=judge or LocalJudge())).diagnosis


__all__ = ["DONT_KNOW", "diagnosed", "perfect"]
