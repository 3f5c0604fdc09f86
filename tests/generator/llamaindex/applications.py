"""Applications of LlamaIndex: engines, chats, agents, workflows, and parts that plain code calls."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core import PromptTemplate
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import (
    CitationQueryEngine,
    CustomQueryEngine,
    RetrieverQueryEngine,
    RouterQueryEngine,
)
from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer
from llama_index.core.schema import NodeWithScore
from llama_index.core.selectors import LLMSingleSelector, PydanticSingleSelector
from llama_index.core.tools import QueryEngineTool, ToolMetadata
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step

from generator.choices import Choices
from generator.conversing import Answer, Application
from generator.llamaindex.models import Chats, Completes, Picks, now
from generator.llamaindex.parts import (
    Shelf,
    Sources,
    engine,
    kept,
    mode,
    nodes,
    prompt_template,
    retriever,
    speaker,
    tool,
    wrapped,
)
from generator.texts import JOINERS
from generator.turns import Turn


def always(answer: Answer, **more: Any) -> Application:
    """An application that remembers nothing."""
    return Application(answer=lambda: answer, **more)


async def asked(made: Any, way: str, question: str) -> str:
    """What a query engine answers, in a way."""
    if way == "stream":
        return "".join(made.query(question).response_gen)
    if way == "astream":
        response = await made.aquery(question)
        return "".join([piece async for piece in response.async_response_gen()])
    return str(await made.aquery(question) if way == "ainvoke" else made.query(question))


def query_engine(choices: Choices) -> Application:
    """`RetrieverQueryEngine`, in every mode."""
    made = engine(choices)
    way = choices["way"] if mode(choices) in ("compact", "simple_summarize", "tree_summarize") else "ainvoke"
    return always(lambda turn: asked(made, way, wrapped(choices, turn)))


def citation(choices: Choices) -> Application:
    """The citation engine, which numbers its sources."""
    made = CitationQueryEngine.from_args(
        None,  # type: ignore[arg-type]
        llm=speaker(choices),
        retriever=retriever(choices),
        node_postprocessors=[*kept(choices), Sources()],
        citation_chunk_size=4000,
    )
    return always(lambda turn: asked(made, in_one_piece(choices), turn.question))


def in_one_piece(choices: Choices) -> str:
    """The way of an engine that does not stream."""
    return "ainvoke" if choices["way"] in ("ainvoke", "astream") else "invoke"


def router(choices: Choices) -> Application:
    """A router between two engines, chosen by a model."""
    inner = engine(choices.replace(way="invoke"))
    tools = [QueryEngineTool.from_defaults(inner, description=about) for about in ("Rules.", "People.")]
    made = RouterQueryEngine(
        LLMSingleSelector.from_defaults(llm=Completes(role="pick")), tools, llm=speaker(choices)
    )
    return always(lambda turn: asked(made, in_one_piece(choices), turn.question))


def custom(choices: Choices) -> Application:
    """A `CustomQueryEngine` that fills its prompt itself; of nodes, or of texts of its own."""
    given, join = prompt_template(choices.replace(prompting="template")), JOINERS[choices["joining"]]
    look, own = retriever(choices), choices["outside"] == "yes"
    picks, selector = choices["picking"] == "form", PydanticSingleSelector.from_defaults(llm=Picks())
    assert given is not None
    template = given

    class Own(CustomQueryEngine):
        def custom_query(self, query_str: str) -> str:
            turn = now()
            if not own:
                look.retrieve(query_str)
            elif picks:
                selector.select([ToolMetadata("Rules."), ToolMetadata("People.")], query_str)
            text = turn.came(join(turn.shown))
            return str(speaker(choices).complete(template.format(context_str=text, query_str=query_str)))

    made = Own()
    return always(lambda turn: asked(made, in_one_piece(choices), turn.question))


def chat(choices: Choices) -> Application:
    """Chat engines, each with its memory."""
    kind, way = choices["chat"], choices["way"]

    def begin() -> Answer:
        memory = ChatMemoryBuffer.from_defaults(token_limit=50_000)
        made: Any
        if kind == "condense_question":
            inner = engine(choices.replace(mode="compact", way="invoke", model="completes"))
            made = CondenseQuestionChatEngine.from_defaults(inner, llm=Completes(), memory=memory)
        else:
            build: Any = {"context": ContextChatEngine, "condense_plus": CondensePlusContextChatEngine}[kind]
            made = build.from_defaults(
                retriever(choices), llm=Chats(), memory=memory, node_postprocessors=kept(choices)
            )

        async def answer(turn: Turn) -> str:
            if way == "stream":
                return "".join(made.stream_chat(turn.question).response_gen)
            if way == "astream":
                response = await made.astream_chat(turn.question)
                return "".join([piece async for piece in response.async_response_gen()])
            return str(await made.achat(turn.question) if way == "ainvoke" else made.chat(turn.question))

        return answer

    return Application(answer=begin)


class RuledMemory(ChatMemoryBuffer):
    """A memory that was set up with a text, which every prompt shows and no answer rests on."""

    rules: str = "You are speaking for the front desk. Be brief, and never promise a refund."

    def get(self, input: str | None = None, initial_token_count: int = 0, **more: Any) -> list[ChatMessage]:
        rules = ChatMessage(role="system", content=self.rules)
        return [rules, *super().get(input, initial_token_count, **more)]


def agent(choices: Choices) -> Application:
    """A function agent, or a workflow of one, with one tool."""
    hops = choices.number("hops") if choices["calling"] == "yes" else 0
    given = tool(choices)
    name = given.metadata.name
    relays = choices["tool"] == "engine"
    argument = "query" if choices["tool"] == "function" else "input"
    llm = Chats(tool=name, hops=hops, argument=argument)
    system = "You help customers. Use the tool." if choices["agent_prompt"] == "system" else None

    def begin() -> Answer:
        made: Any
        if choices["agent"] == "workflow":
            made = AgentWorkflow.from_tools_or_functions([given], llm=llm, system_prompt=system)
            for each in made.agents.values():
                each.streaming = False
        else:
            made = FunctionAgent(tools=[given], llm=llm, system_prompt=system, streaming=False)
        context = Context(made) if choices["history"] == "stored" else None
        memory = RuledMemory.from_defaults(token_limit=50_000) if choices["history"] == "memory" else None

        async def answer(turn: Turn) -> str:
            more: dict[str, Any] = {"ctx": context} if context else {}
            if memory is not None:
                more["memory"] = memory
            if choices["history"] == "sent" and turn.history:
                pairs = [(("user", q), ("assistant", a)) for q, a in turn.history]
                more["chat_history"] = [
                    ChatMessage(role=role, content=text) for pair in pairs for role, text in pair
                ]
            return str(await made.run(user_msg=wrapped(choices, turn), **more))

        return answer

    return Application(answer=begin, hops=hops, everything=not relays)


class Part(BaseModel):
    """A step of a plan."""

    text: str
    tool: str


class Plan(BaseModel):
    """What a model planned."""

    steps: list[Part]


class Found(Event):
    """What was retrieved, and what had been planned before."""

    nodes: list[NodeWithScore]
    plan: Plan | None = None


def workflow(choices: Choices) -> Application:
    """A workflow: retrieve, keep, then a synthesizer or a prompt filled in by hand."""
    look, keep, join = retriever(choices), kept(choices), JOINERS[choices["joining"]]
    by_hand, own = choices["prompting"] != "own", choices["outside"] == "yes"
    key = choices["start_key"]
    template = prompt_template(choices)

    class Flow(Workflow):
        def __init__(self, asked: str) -> None:
            super().__init__()
            self.made_with = asked

        @step
        async def retrieve(self, ctx: Context, ev: StartEvent) -> Found:
            turn, question = now(), getattr(self if key == "made_with" else ev, key)
            await ctx.store.set("asked", question)
            plan = None
            if choices["outlined"] == "yes":
                reply = await Completes(role="outline").acomplete(f"Plan how to answer this.\n{question}")
                plan = Plan.model_validate_json(str(reply))
            found = nodes(turn, turn.find(question)) if own else await look.aretrieve(question)
            for each in keep:
                found = each.postprocess_nodes(found, query_str=question)
            return Found(nodes=found, plan=plan)

        @step
        async def answer(self, ctx: Context, ev: Found) -> StopEvent:
            question = await ctx.store.get("asked")
            if by_hand and template is not None:
                text = now().came(join([getattr(each.node, "text", "") for each in ev.nodes]))
                filled = template.format(context_str=text, query_str=question)
                if ev.plan is not None:
                    filled = f"The whole plan consists of these steps: {ev.plan.steps}\n\n{filled}"
                return StopEvent(result=str(await speaker(choices).acomplete(filled)))
            synthesizer = get_response_synthesizer(llm=speaker(choices), response_mode=ResponseMode.COMPACT)
            return StopEvent(result=await synthesizer.asynthesize(question, ev.nodes))

    async def answer(turn: Turn) -> str:
        given = {} if key == "made_with" else {key: turn.question}
        return str(await Flow(turn.question).run(start_event=StartEvent(**given)))

    return always(answer)


def separate(choices: Choices) -> Application:
    """A retriever, then a synthesizer, a model or an engine that is sent a prompt, called by plain code."""
    if choices["asking"] == "in_parts":
        return in_parts(choices)
    look, keep, join = retriever(choices), kept(choices), JOINERS[choices["joining"]]
    template = prompt_template(choices)

    if choices["filling"] == "predict" and template is not None:
        return predicted(choices, template)
    is_asked = choices["asking"] == "engine" and template is not None and choices["outside"] == "no"
    simple = choices.replace(way="ainvoke", mode="compact", prompting="own")

    async def answer(turn: Turn) -> str:
        if is_asked:  # its nodes are gone on with, and its answer thrown away
            found = (await engine(simple, "tried").aquery(turn.question)).source_nodes
        elif choices["searching"] == "thread" and turn.shown:
            found = await asyncio.to_thread(look.retrieve, turn.question)
        else:
            found = look.retrieve(turn.question)
        for each in keep if not is_asked else ():
            found = each.postprocess_nodes(found, query_str=turn.question)
        if template is None:
            synthesizer = get_response_synthesizer(llm=speaker(choices), response_mode=ResponseMode.COMPACT)
            return str(synthesizer.synthesize(turn.question, nodes=found))
        text = turn.came(join([getattr(each.node, "text", "") for each in found]))
        filled = template.format(context_str=text, query_str=turn.question)
        if choices["outside"] == "yes":
            return str(await SimpleChatEngine.from_defaults(llm=Chats()).achat(filled))
        if choices["asking"] == "again":  # what was found is kept, and the first answer thrown away
            await completed(speaker(choices, "tried"), choices["way"], filled)
        return await completed(speaker(choices), choices["way"], filled)

    return always(answer)


def predicted(choices: Choices, template: PromptTemplate) -> Application:
    """A model fills in a template itself with what a retriever or plain code found."""
    look, join = retriever(choices), JOINERS[choices["joining"]]

    async def answer(turn: Turn) -> str:
        found = turn.shown
        if choices["looking"] == "retriever":
            found = tuple(one.text for one in look.retrieve(turn.question) if one.text in turn.shown)
        given = {"context_str": turn.came(join(found)), "query_str": turn.question}
        model: Any = speaker(choices)
        if choices["way"] == "invoke":
            return str(model.predict(template, **given))
        return str(await model.apredict(template, **given))

    return always(answer)


def in_parts(choices: Choices) -> Application:
    """An engine for each file answers the question, then a model is sent what they answered."""
    files = [Shelf(hop=hop) for hop in (0, 1)]

    async def answer(turn: Turn) -> str:
        if not all(turn.found):
            only = RetrieverQueryEngine.from_args(files[bool(turn.found[1])], llm=Completes())
            return str(await only.aquery(turn.question))
        made = [RetrieverQueryEngine.from_args(one, llm=Completes(role="accumulate")) for one in files]
        parts = [str(await one.aquery(turn.question)) for one in made]
        turn.relayed.append(turn.prompt)
        told = "\n".join(f"File {at}: {text}" for at, text in enumerate(parts))
        filled = f"Make one answer of these of several files.\n\n{told}\n\nQuestion: {turn.question}\nAnswer:"
        return await completed(speaker(choices), choices["way"], filled)

    return Application(answer=lambda: answer, hops=2, everything=True)


async def completed(model: Any, way: str, prompt: str) -> str:
    """What a model replies to a prompt that no engine sent it, in a way."""
    messages = [ChatMessage(role="user", content=prompt)]
    if way == "stream":
        return "".join(piece.delta for piece in model.stream_chat(messages))
    if way == "astream":
        return "".join([piece.delta async for piece in await model.astream_chat(messages)])
    return str(await model.acomplete(prompt) if way == "ainvoke" else model.complete(prompt))
