"""Workflows whose one step is a loop of plain code: what tools return goes into the messages by hand."""

from __future__ import annotations

import json

from llama_index.core import PromptTemplate
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.llms import ChatMessage
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step

from generator.choices import Choices
from generator.conversing import Application
from generator.llamaindex.applications import always
from generator.llamaindex.models import Chats, now
from generator.results import TEXTUAL
from generator.turns import Turn


class Allowed(BaseModel):
    """Whether a request is allowed."""

    reason: str


def registry(choices: Choices) -> Application:
    """A form is filled in first; then a model's calls are looked up in a registry of functions."""
    hops, shape = choices.number("hops"), choices["tool_result"]
    guard = Chats(tool="Allowed", argument="reason", hops=1)
    llm = Chats(tool=choices["tool_name"], hops=hops)

    def look(query: str) -> str:
        found = now().find(query)
        result = TEXTUAL["text" if shape == "nodes" else shape](found) if found else now().nothing
        return now().came(result if isinstance(result, str) else json.dumps(result, ensure_ascii=False))

    class Loop(Workflow):
        @step
        async def answer(self, ev: StartEvent) -> StopEvent:
            asked = PromptTemplate("Is this request allowed?\n{asked}")
            await guard.astructured_predict(Allowed, asked, asked=ev.query)
            messages = [ChatMessage("You help customers.", role="system"), ChatMessage(ev.query, role="user")]
            reply = await llm.achat(messages)
            while calls := reply.message.additional_kwargs.get("tool_calls"):
                told = [ChatMessage(look(given["query"]), role="tool") for _, given in calls]
                messages += [reply.message, *told]
                reply = await llm.achat(messages)
            return StopEvent(result=str(reply.message.content))

    async def answer(turn: Turn) -> str:
        return str(await Loop().run(query=turn.question))

    return always(answer, hops=hops, everything=True)
