"""Engines made of engines: sub-questions, imagined passages; and an agent that reasons in text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent, ReActAgent
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.objects import ObjectIndex
from llama_index.core.query_engine import SubQuestionQueryEngine, TransformQueryEngine
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import QueryEngineTool
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step

from generator.choices import Choices
from generator.conversing import Answer, Application
from generator.llamaindex.applications import always, asked, in_one_piece, workflow
from generator.llamaindex.models import Chats, Completes, Reasons, now
from generator.llamaindex.parts import engine, speaker, tool
from generator.turns import Turn


class Splits(BaseQuestionGenerator):
    """Asks two sub-questions of one engine, one for each search of the turn."""

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts_dict: Any) -> None:
        pass

    def generate(self, tools: Sequence[Any], query: QueryBundle) -> list[SubQuestion]:
        return [SubQuestion(sub_question=each, tool_name="pages") for each in now().queries]

    async def agenerate(self, tools: Sequence[Any], query: QueryBundle) -> list[SubQuestion]:
        return self.generate(tools, query)


def sub_questions(choices: Choices) -> Application:
    """Sub-questions go to an engine; what it answers makes the answer."""
    inner = engine(choices.replace(way="invoke", mode="compact"), "relay")
    made = SubQuestionQueryEngine.from_defaults(
        [QueryEngineTool.from_defaults(inner, name="pages", description="All pages.")],
        llm=Completes(),
        question_gen=Splits(),
        verbose=False,
        use_async=False,
    )
    return always(lambda turn: asked(made, in_one_piece(choices), turn.question), hops=2)


def imagined(choices: Choices) -> Application:
    """HyDE: a passage that a model imagines is searched for, the user's question is answered."""
    made = TransformQueryEngine(
        engine(choices.replace(way="invoke")), HyDEQueryTransform(llm=Completes(role="rewrite"))
    )
    return always(lambda turn: asked(made, in_one_piece(choices), turn.question))


def reasoning(choices: Choices) -> Application:
    """The ReAct agent: calls and answers are lines of text; its tools may be found in an index of them."""
    one = tool(choices.replace(tool="function"))
    hops = choices.number("hops") if choices["calling"] == "yes" else 0

    def begin() -> Answer:
        given: dict[str, Any] = {"tools": [one]}
        if choices["tools"] == "found":
            every = ObjectIndex.from_objects([one], index_cls=VectorStoreIndex, embed_model=MockEmbedding(8))
            given = {"tool_retriever": every.as_retriever()}
        made = ReActAgent(**given, llm=Reasons(tool=one.metadata.name, hops=hops), streaming=False)

        async def answer(turn: Turn) -> str:
            return str(await made.run(user_msg=turn.question))

        return answer

    return Application(answer=begin, hops=hops, everything=True)


class Noted(Event):
    """What an agent found out."""

    notes: str


def researched(choices: Choices) -> Application:
    """A workflow by itself, or one whose agent finds out what another prompt makes the answer of."""
    if choices["researching"] == "itself":
        return workflow(choices)
    one = tool(choices.replace(tool="function"))
    llm = Chats(role="relay", tool=one.metadata.name, hops=1)
    made = FunctionAgent(tools=[one], llm=llm, system_prompt="You find things out.", streaming=False)
    given = {"agent": made, "llm": llm} if choices["researching"] == "agent_given" else {}

    class Flow(Workflow):
        @step
        async def look(self, ev: StartEvent) -> Noted:
            task = f"Find out what this needs:\n<task>{now().rewritten}</task>\n\nSay only what you found."
            return Noted(notes=str(await made.run(user_msg=task)))

        @step
        async def write(self, ev: Noted) -> StopEvent:
            filled = f"Write a report.\n\n<topic>{now().question}</topic>\n<notes>{ev.notes}</notes>"
            return StopEvent(result=str(await speaker(choices).acomplete(filled)))

    async def answer(turn: Turn) -> str:
        told: dict[str, Any] = {"subject": turn.question, **({"parts": given} if given else {})}
        return str(await Flow().run(start_event=StartEvent(**told)))

    return always(answer, everything=True)
